"""Git patches between two sets of files, byte-exact, made in a private repository that nobody else sees."""

from __future__ import annotations

import logging
import os
import subprocess
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sandboxes import SandboxError

__all__ = ["MAX_FILE_BYTES", "Difference", "Git", "Side", "applied", "fitting", "ignored", "patch", "shown"]

log = logging.getLogger(__name__)

MAX_FILE_BYTES = 64 << 20
MAX_BYTES = 256 << 20
"""Of all that a patch replaces, and of all that it brings."""
_TIMEOUT_S = 120.0
_NO_CONFIG = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
_PLAIN = ("-c", "core.protectNTFS=false", "-c", "core.protectHFS=false", "-c", "core.quotePath=true")


@dataclass(frozen=True, slots=True)
class Side:
    """A file or a symbolic link at one of two moments."""

    kind: str
    """`f` or `l`; anything else is unknown to git."""
    mode: int
    content: bytes
    """A link's target."""

    @property
    def git_mode(self) -> str:
        """As a tree has it."""
        if self.kind == "l":
            return "120000"
        return "100755" if self.mode & 0o100 else "100644"


@dataclass(frozen=True, slots=True)
class Difference:
    """A path at two moments; None where nothing was there."""

    path: str
    old: Side | None
    new: Side | None


def fitting(sizes: Mapping[str, tuple[int | None, int | None]]) -> list[str]:
    """The paths that a patch can hold, of those that differ; sizes are in bytes, before and after, None where nothing
    is. A new file that is too large is taken for what a command left lying about: it is left out, and that is said.

    Raises:
        SandboxError: a file that was there before is too large, or all are together.
    """
    kept = {}
    for path, (old, new) in sizes.items():
        size = max(old or 0, new or 0)
        if size <= MAX_FILE_BYTES:
            kept[path] = (old or 0) + (new or 0)
        elif old is None:
            _say_left_out(path, size)
        else:
            raise SandboxError(
                f"{path!r} was changed and has {size >> 20} MiB, more than a patch takes ({MAX_FILE_BYTES >> 20} MiB a "
                "file); put it back, or have what changes it write to a new file"
            )
    total = sum(kept.values())
    if total > MAX_BYTES:
        largest = max(kept, key=kept.__getitem__)
        raise SandboxError(
            f"{len(kept)} files differ, {total >> 20} MiB in all, more than a patch takes ({MAX_BYTES >> 20} MiB); the "
            f"largest is {largest!r}; list in .gitignore what does not belong to the repository"
        )
    return list(kept)


@cache
def _say_left_out(path: str, size: int) -> None:
    """Once, however often the state is looked at."""
    log.warning(
        "%r (%d MiB) is left out of the patch: a new file may have %d MiB", path, size >> 20, MAX_FILE_BYTES >> 20
    )


def patch(differences: Sequence[Difference]) -> bytes:
    """The patch from the old sides to the new ones."""
    if not differences:
        return b""
    with tempfile.TemporaryDirectory(prefix="ramify-patch-") as directory:
        git = Git(Path(directory, "git"))
        old = git.tree((each.path, each.old) for each in differences)
        new = git.tree((each.path, each.new) for each in differences)
        return shown(git, old, new)


def shown(git: Git, old: str, new: str) -> bytes:
    """The patch from one tree of a repository to another."""
    return git.run("diff-tree", "-p", "--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv",
                   "--no-color", "--src-prefix=a/", "--dst-prefix=b/", old, new)  # fmt: skip


def applied(patch: bytes, before: Callable[[str], Side | None]) -> dict[str, Side | None]:
    """What a git patch makes of each path that it touches; `before` says what is there. For places without a git.

    Raises:
        SandboxError: git does not apply it; a link is involved; a path leads out of the workspace.
    """
    with tempfile.TemporaryDirectory(prefix="ramify-apply-") as directory:
        git, work_tree = _with_work_tree(Path(directory))
        listing = git.run("apply", "--numstat", "-z", stdin=patch)
        paths = [os.fsdecode(entry.split(b"\t", 2)[2]) for entry in listing.split(b"\0") if entry]
        for path in paths:
            if path.startswith("/") or ".." in path.split("/"):
                raise SandboxError(f"the patch names {path!r}, which is not in the workspace")
            side = before(path)
            if side is not None:
                place = work_tree / path
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(side.content)
                place.chmod(side.mode)
        git.run("apply", "--whitespace=nowarn", stdin=patch)
        return {path: _found(work_tree / path) for path in paths}


def _found(place: Path) -> Side | None:
    if place.is_symlink():
        raise SandboxError(f"{place.name} is a link, which cannot be made without git in the sandbox")
    return Side("f", place.stat().st_mode & 0o777, place.read_bytes()) if place.is_file() else None


def ignored(paths: Collection[str], rules: Mapping[str, str], exclude: str) -> frozenset[str]:
    """Those that git would ignore. `rules` are the `.gitignore` files by path, `exclude` is `info/exclude`."""
    if not paths or not (rules or exclude):
        return frozenset()
    with tempfile.TemporaryDirectory(prefix="ramify-ignore-") as directory:
        git, work_tree = _with_work_tree(Path(directory))
        for path, text in rules.items():
            place = work_tree / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(text.encode("utf-8", "surrogateescape"))
        (git.directory / "info").mkdir()
        (git.directory / "info" / "exclude").write_bytes(exclude.encode("utf-8", "surrogateescape"))
        listing = b"".join(os.fsencode(path) + b"\0" for path in paths)
        found = git.run("check-ignore", "-z", "--stdin", "--no-index", stdin=listing, fine=(0, 1))
    return frozenset(os.fsdecode(path) for path in found.split(b"\0") if path)


def _with_work_tree(directory: Path) -> tuple[Git, Path]:
    """A repository in an empty directory, and its work tree."""
    work_tree = directory / "tree"
    work_tree.mkdir()
    return Git(directory / "git", work_tree), work_tree


class Git:
    """A repository of our own, made where there is none yet. It heeds no settings but its own."""

    def __init__(self, directory: Path, work_tree: Path | None = None) -> None:
        self.directory = directory.absolute()  # git is run elsewhere
        self._work_tree = work_tree and work_tree.absolute()
        for name in ("objects", "refs"):
            (directory / name).mkdir(parents=True, exist_ok=True)
        if not (directory / "HEAD").exists():
            (directory / "HEAD").write_text("ref: refs/heads/none\n")
        self._trees = 0

    def run(
        self, *command: str, stdin: bytes = b"", env: Mapping[str, str] | None = None, fine: tuple[int, ...] = (0,)
    ) -> bytes:
        """What a git command prints."""
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "LC_ALL": "C",
            "HOME": str(self.directory),
            "GIT_DIR": str(self.directory),
            **_NO_CONFIG,
            **(env or {}),
        }
        if self._work_tree:
            environment["GIT_WORK_TREE"] = str(self._work_tree)
        done = subprocess.run(
            ["git", *_PLAIN, *command],
            input=stdin,
            capture_output=True,
            env=environment,
            cwd=self._work_tree or self.directory,
            timeout=_TIMEOUT_S,
            check=False,
        )
        if done.returncode not in fine:
            raise SandboxError(f"git {command[0]} failed: {done.stderr.decode(errors='replace').strip()}")
        return done.stdout

    def tree(self, sides: Iterable[tuple[str, Side | None]]) -> str:
        """Write a tree of those that git knows; its name."""
        present = [(path, side) for path, side in sides if side is not None and side.kind in ("f", "l")]
        names = self._blobs([side.content for _, side in present])
        self._trees += 1
        index = {"GIT_INDEX_FILE": str(self.directory / f"index-{self._trees}")}
        lines = [
            f"{side.git_mode} {name}\t".encode() + os.fsencode(path) + b"\0"
            for (path, side), name in zip(present, names, strict=True)
        ]
        self.run("update-index", "-z", "--index-info", stdin=b"".join(lines), env=index)
        return self.run("write-tree", env=index).decode().strip()

    def _blobs(self, contents: Sequence[bytes]) -> list[str]:
        if not contents:
            return []
        with tempfile.TemporaryDirectory(dir=self.directory) as directory:
            paths = [Path(directory) / str(number) for number in range(len(contents))]
            for path, content in zip(paths, contents, strict=True):
                path.write_bytes(content)
            listing = "".join(f"{path}\n" for path in paths).encode()
            return self.run("hash-object", "-w", "--no-filters", "--stdin-paths", stdin=listing).decode().split()
