"""Runs git on this machine: every git command of Ramify's own process goes through this module.

Invariant: no program that a repository names ever runs. Git gets a directory with Ramify's own settings, and none of
the user's or the machine's settings. Filters, monitors, signatures and helpers can only be named in settings; hooks are
disabled, and data is fetched only from one of Ramify's directories into another.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from sandboxes import GitFailed, GitTooSlow

TIMEOUT_S = 120.0
_NOWHERE = "/nonexistent"
_ENVIRONMENT = {
    "LC_ALL": "C",
    "HOME": _NOWHERE,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
}
_FROM_HERE = {"GIT_ALLOW_PROTOCOL": "file"}
_OPTIONS = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.quotePath": "true",
    "diff.ignoreSubmodules": "all",
    "submodule.recurse": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
}


class Git:
    """A repository of Ramify's own, created if it does not exist. Only its own settings apply.

    `guarded`: refuse paths that some file system treats as `.git`. Trees of sandboxes may contain any name.
    """

    def __init__(self, directory: Path, work_tree: Path | None = None, *, guarded: bool = False) -> None:
        self.directory = directory.absolute()  # git runs in another working directory
        self._work_tree = work_tree and work_tree.absolute()
        self._options = _OPTIONS | dict.fromkeys(("core.protectNTFS", "core.protectHFS"), str(guarded).lower())
        for name in ("objects", "refs"):
            (directory / name).mkdir(parents=True, exist_ok=True)
        if not (directory / "HEAD").exists():
            (directory / "HEAD").write_text("ref: refs/heads/none\n")

    def run(
        self,
        *command: str,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        fine: tuple[int, ...] = (0,),
        timeout_s: float = TIMEOUT_S,
    ) -> bytes:
        """Run a git command and return its stdout.

        Raises:
            GitFailed: the exit code is not in `fine`, or git is not installed.
            GitTooSlow: the command took longer than `timeout_s`.
        """
        place = {"GIT_DIR": str(self.directory)}
        if self._work_tree:
            place["GIT_WORK_TREE"] = str(self._work_tree)
        options = [part for setting in self._options.items() for part in ("-c", "=".join(setting))]
        return _run(
            command, place | dict(env or {}), options, self._work_tree or self.directory, stdin, fine, timeout_s
        )

    @classmethod
    def init(cls, folder: Path) -> Git:
        """Make an empty repository in a folder, which is its work tree.

        Raises:
            GitFailed, GitTooSlow: as `run`.
        """
        _run(("init", "--quiet", "--template=", "--initial-branch=main", str(folder.absolute())), {})
        return cls.within(folder)

    @classmethod
    def clone(cls, source: Path, folder: Path, *, timeout_s: float = TIMEOUT_S) -> Git:
        """Clone a bundle, or a repository of Ramify's own, into a new folder without checking out files.

        Raises:
            GitFailed, GitTooSlow: as `run`.
        """
        command = ("clone", "--quiet", "--no-checkout", "--no-local", "--template=")
        _run((*command, str(source.absolute()), str(folder.absolute())), _FROM_HERE, timeout_s=timeout_s)
        return cls.within(folder)

    @classmethod
    def within(cls, folder: Path) -> Git:
        """Open the repository that `init` or `clone` made in a folder."""
        return cls(folder / ".git", folder, guarded=True)

    def fetch(self, source: Git, *references: str, depth: Literal[1] | None = None) -> None:
        """Fetch commits from another repository that is open in this process.

        Raises:
            GitFailed, GitTooSlow: as `run`.
        """
        shallow = [] if depth is None else [f"--depth={depth}"]
        command = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", *shallow)
        self.run(*command, str(source.directory), *references, env=_FROM_HERE)


def users_excludes() -> str:
    """Return the path of the user's global ignore file, which may not exist. The user's settings, which are trusted,
    name it."""
    own = {key: os.environ[key] for key in ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL") if key in os.environ}
    command = ("config", "--global", "--includes", "--type=path", "--get", "core.excludesFile")
    try:
        output = _run(command, {"GIT_DIR": _NOWHERE, "GIT_CONFIG_GLOBAL": None, **own})
    except GitFailed:
        return str(Path(os.environ.get("XDG_CONFIG_HOME") or Path("~/.config").expanduser(), "git", "ignore"))
    return os.fsdecode(output.rstrip(b"\n"))


def version() -> str:
    """Return the version of git, as git reports it.

    Raises:
        GitFailed, GitTooSlow: as `Git.run`.
    """
    return _run(("--version",), {}).decode(errors="replace").strip().removeprefix("git version ")


def _run(
    command: Sequence[str],
    environment: Mapping[str, str | None],
    options: Sequence[str] = (),
    place: Path = Path(os.sep),
    stdin: bytes = b"",
    fine: tuple[int, ...] = (0,),
    timeout_s: float = TIMEOUT_S,
) -> bytes:
    """Run git. It is searched in absolute folders only, because `place` may be a repository with a program `git`.

    Environment variables that are None are removed.
    """
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    path = os.pathsep.join(folder for folder in folders if folder.startswith(os.sep))
    program = shutil.which("git", path=path)
    if program is None:
        raise GitFailed(command[0], "there is no git on this machine; install it (Debian, Ubuntu: apt install git)")
    variables: dict[str, str | None] = {**_ENVIRONMENT, "PATH": path, **environment}
    try:
        done = subprocess.run(
            [program, *options, *command],
            input=stdin,
            capture_output=True,
            env={name: value for name, value in variables.items() if value is not None},
            cwd=place,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise GitTooSlow(command[0], timeout_s, place) from error
    if done.returncode not in fine:
        raise GitFailed(command[0], done.stderr.decode(errors="replace").strip() or f"exit code {done.returncode}")
    return done.stdout
