"""Steps that prepare a base state with any provider: set-up commands, the workspace's owner, and its repository."""

from __future__ import annotations

import logging
import os
import posixpath
from collections.abc import Mapping, Sequence

from sandboxes import Sandbox, SetupFailed, Workspace
from sandboxes.forking.image_user import OWN
from sandboxes.forking.shell import run_script
from sandboxes.forking.workspace_files import Repository, names

SETUP_TIMEOUT_S = 3600.0
_LISTING_TIMEOUT_S = 120.0
_TAIL_BYTES = 4000
_SHOWN = 2000
"""How many characters of a command an error message shows."""
_GIT = ("git", "-c", "core.fsmonitor=false", "-c", "safe.directory=*")
_REPOSITORIES = 'test -e .git || for each in */.git .[!.]*/.git; do test ! -e "$each" || echo "${each%/.git}"; done'
log = logging.getLogger(__name__)


def run_all(box: Sandbox, commands: Sequence[str], env: Mapping[str, str]) -> None:
    """Run shell commands in order.

    Raises:
        SetupFailed: a command returned non-zero.
    """
    for command in commands:
        done = run_script(box, command, timeout_s=SETUP_TIMEOUT_S, env=env)
        if done.exit_code:
            tail = (done.stdout + done.stderr)[-_TAIL_BYTES:].decode(errors="replace")
            raise SetupFailed(
                f"the set-up command `{_head(command)}` ended with exit code {done.exit_code}; correct it and try "
                f"again:\n{tail}"
            )


def _head(command: str) -> str:
    return command if len(command) <= _SHOWN else f"{command[:_SHOWN]}..."


def give(box: Sandbox, user: int, group: int) -> None:
    """Give the workspace to the user who runs actions, because actions cannot write to other users' files."""
    done = box.exec(["/bin/sh", "-c", OWN, "sh", str(user), str(group)], timeout_s=SETUP_TIMEOUT_S)
    if done.stdout:
        log.info("the workspace belonged to another user; it now belongs to user %d", user)


def workspace_folder(box: Sandbox, workspace: Workspace, workdir: str) -> str:
    """Return the image's workspace folder: `workdir`, or if nested, the first folder in it with a repository."""
    if workspace.path is not None or not workspace.nested:
        return workdir
    done = box.exec(["/bin/sh", "-c", _REPOSITORIES], timeout_s=_LISTING_TIMEOUT_S, cwd=workdir)
    folder, _, _ = done.stdout.decode("utf-8", "surrogateescape").partition("\n")
    return posixpath.join(workdir, folder) if folder else workdir


def listed(box: Sandbox) -> Repository:
    """Return what git inside the sandbox reports about a repository that came with the image."""
    done = box.exec([*_GIT, "ls-files", "-z"], timeout_s=_LISTING_TIMEOUT_S)
    if done.exit_code or done.stdout_bytes > len(done.stdout):
        return Repository()
    place = box.exec([*_GIT, "rev-parse", "--git-path", "info/exclude"], timeout_s=_LISTING_TIMEOUT_S).stdout
    try:
        exclude = box.read(os.fsdecode(place.rstrip(b"\n"))).decode("utf-8", "surrogateescape")
    except OSError:
        exclude = ""
    return Repository(names(done.stdout), exclude)
