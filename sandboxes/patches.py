"""Git patches between two sets of files, byte-exact, made in a private repository that nobody else sees."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sandboxes import GitTooSlow, SandboxError
from sandboxes.git import Git

__all__ = ["Difference", "Side", "applied", "ignored", "patch", "shown", "tree"]

IGNORING_S = 10.0
"""How long git may look at the rules of `.gitignore` files: it matches patterns by backtracking."""
log = logging.getLogger(__name__)


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


def patch(differences: Sequence[Difference]) -> bytes:
    """The patch from the old sides to the new ones."""
    if not differences:
        return b""
    with tempfile.TemporaryDirectory(prefix="ramify-patch-") as directory:
        git = Git(Path(directory, "git"))
        old = tree(git, ((each.path, each.old) for each in differences))
        new = tree(git, ((each.path, each.new) for each in differences))
        return shown(git, old, new)


def shown(git: Git, old: str, new: str) -> bytes:
    """The patch from one tree of a repository to another."""
    return git.run("diff-tree", "-p", "--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv",
                   "--no-color", "--src-prefix=a/", "--dst-prefix=b/", old, new)  # fmt: skip


def tree(git: Git, sides: Iterable[tuple[str, Side | None]]) -> str:
    """Write a tree of those that git knows to a repository of our own; its name."""
    present = [(path, side) for path, side in sides if side is not None and side.kind in ("f", "l")]
    with tempfile.TemporaryDirectory(dir=git.directory) as directory:
        names = _blobs(git, [side.content for _, side in present], Path(directory))
        index = {"GIT_INDEX_FILE": str(Path(directory, "index"))}
        lines = [
            f"{side.git_mode} {name}\t".encode() + os.fsencode(path) + b"\0"
            for (path, side), name in zip(present, names, strict=True)
        ]
        git.run("update-index", "-z", "--index-info", stdin=b"".join(lines), env=index)
        return git.run("write-tree", env=index).decode().strip()


def _blobs(git: Git, contents: Sequence[bytes], directory: Path) -> list[str]:
    paths = [directory / str(number) for number in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    listing = "".join(f"{path}\n" for path in paths).encode()
    return git.run("hash-object", "-w", "--no-filters", "--stdin-paths", stdin=listing).decode().split()


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


def ignored(
    paths: Collection[str], rules: Mapping[str, str], exclude: str, *, timeout_s: float = IGNORING_S
) -> frozenset[str]:
    """Those that git would ignore. `rules` are the `.gitignore` files by path, `exclude` is `info/exclude`. Where rules
    take git longer than `timeout_s`, nothing is ignored: a patch may have files too many, and no state is lost."""
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
        # A name that begins with a colon would be taken for a pattern.
        listing = b"".join(b"./" + os.fsencode(path) + b"\0" for path in paths)
        command = ("check-ignore", "-z", "--stdin", "--no-index")
        try:
            found = git.run(*command, stdin=listing, fine=(0, 1), timeout_s=timeout_s)
        except GitTooSlow:
            log.warning("the .gitignore files keep git busy for more than %g s; nothing is ignored", timeout_s)
            return frozenset()
    return frozenset(os.fsdecode(path).removeprefix("./") for path in found.split(b"\0") if path)


def _with_work_tree(directory: Path) -> tuple[Git, Path]:
    """A repository in an empty directory, and its work tree."""
    work_tree = directory / "tree"
    work_tree.mkdir()
    return Git(directory / "git", work_tree), work_tree
