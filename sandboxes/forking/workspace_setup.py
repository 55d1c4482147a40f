"""What a base state of any tier is prepared with: set-up commands, the workspace's owner, what git knows of it."""

from __future__ import annotations

import logging
import os
import posixpath
from collections.abc import Mapping, Sequence

from sandboxes import Sandbox, SetupFailed, Workspace
from sandboxes.forking.image_user import OWN
from sandboxes.forking.shell import run_script
from sandboxes.forking.workspace_files import Repository, names

__all__ = ["SETUP_TIMEOUT_S", "give", "listed", "run_all", "settled_in"]

SETUP_TIMEOUT_S = 3600.0
_LISTING_TIMEOUT_S = 120.0
_TAIL_BYTES = 4000
_SHOWN = 2000
"""Characters of a command."""
_GIT = ("git", "-c", "core.fsmonitor=false", "-c", "safe.directory=*")
_REPOSITORIES = 'test -e .git || for each in */.git .[!.]*/.git; do test ! -e "$each" || echo "${each%/.git}"; done'
log = logging.getLogger(__name__)


def run_all(box: Sandbox, commands: Sequence[str], env: Mapping[str, str]) -> None:
    """Run shell commands, each after the one before.

    Raises:
        SetupFailed: one returned non-zero.
    """
    for command in commands:
        done = run_script(box, command, timeout_s=SETUP_TIMEOUT_S, env=env)
        if done.exit_code:
            tail = (done.stdout + done.stderr)[-_TAIL_BYTES:].decode(errors="replace")
            raise SetupFailed(f"`{_head(command)}` ended with exit code {done.exit_code}:\n{tail}")


def _head(command: str) -> str:
    return command if len(command) <= _SHOWN else f"{command[:_SHOWN]}..."


def give(box: Sandbox, user: int, group: int) -> None:
    """Make the workspace theirs who run commands in it: an action has no capability to write to others' files."""
    done = box.exec(["/bin/sh", "-c", OWN, "sh", str(user), str(group)], timeout_s=SETUP_TIMEOUT_S)
    if done.stdout:
        log.info("the workspace belonged to others; it is given to user %d", user)


def settled_in(box: Sandbox, workspace: Workspace, workdir: str) -> str:
    """Where the workspace of an image is: a folder of `workdir`, the first by name, if the repository may be there and
    is."""
    if workspace.path is not None or not workspace.nested:
        return workdir
    done = box.exec(["/bin/sh", "-c", _REPOSITORIES], timeout_s=_LISTING_TIMEOUT_S, cwd=workdir)
    folder, _, _ = done.stdout.decode("utf-8", "surrogateescape").partition("\n")
    return posixpath.join(workdir, folder) if folder else workdir


def listed(box: Sandbox) -> Repository:
    """What git, run inside, says of a repository that came with the image."""
    done = box.exec([*_GIT, "ls-files", "-z"], timeout_s=_LISTING_TIMEOUT_S)
    if done.exit_code or done.stdout_bytes > len(done.stdout):
        return Repository()
    place = box.exec([*_GIT, "rev-parse", "--git-path", "info/exclude"], timeout_s=_LISTING_TIMEOUT_S).stdout
    try:
        exclude = box.read(os.fsdecode(place.rstrip(b"\n"))).decode("utf-8", "surrogateescape")
    except OSError:
        exclude = ""
    return Repository(names(done.stdout), exclude)
