"""Git patches between two sets of files, byte-exact, made in a private repository that nobody else sees."""

from __future__ import annotations

import io
import logging
import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sandboxes import GitTooSlow, SandboxError
from sandboxes.git.command import Git

__all__ = [
    "MAX_FILE_BYTES",
    "Difference",
    "Side",
    "applied",
    "fitting",
    "ignored",
    "outdated",
    "patch",
    "shown",
    "tree",
]

MAX_FILE_BYTES = 64 << 20
MAX_BYTES = 256 << 20
"""Of all that a patch replaces, and of all that it brings."""
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


def applied(patch: bytes, before: Callable[[str], Side | None], *, guarded: bool = False) -> list[Difference]:
    """What a git patch makes of each path that it touches; `before` says what is there. Attributes and settings of a
    repository do not matter. `guarded`: as of `Git`.

    Raises:
        SandboxError: git does not apply it; a path leads out of the workspace.
    """
    with _beside(patch, before, guarded=guarded) as (git, sides, index):
        git.run("apply", "--cached", "--whitespace=nowarn", stdin=patch, env={"GIT_INDEX_FILE": str(index)})
        made = _sides(git, _entries(git, index))
        return [Difference(path, side, made.get(path)) for path, side in sides.items()]


def outdated(patch: bytes, before: Callable[[str], Side | None]) -> list[str]:
    """The paths at which `before` has something else, in content or mode, than what a patch of ours was made from.

    Raises:
        SandboxError: git cannot read the patch; a path leads out of the workspace.
    """
    with _beside(patch, before) as (git, sides, index):
        then = index.with_name("then")
        git.run("apply", f"--build-fake-ancestor={then}", stdin=patch, env={"GIT_INDEX_FILE": str(index)})
        now, then_ = _entries(git, index), _entries(git, then)
        return [path for path in sides if now.get(path) != then_.get(path) or (sides[path] and path not in then_)]


@contextmanager
def _beside(
    patch: bytes, before: Callable[[str], Side | None], *, guarded: bool = False
) -> Iterator[tuple[Git, dict[str, Side | None], Path]]:
    """A repository of our own, what is at each path that a patch touches, and an index with that."""
    with tempfile.TemporaryDirectory(prefix="ramify-apply-") as directory:
        git, index = Git(Path(directory, "git"), guarded=guarded), Path(directory, "index")
        listing = git.run("apply", "--numstat", "-z", stdin=patch)
        paths = [os.fsdecode(entry.split(b"\t", 2)[2]) for entry in listing.split(b"\0") if entry]
        if away := [path for path in paths if path.startswith("/") or ".." in path.split("/")]:
            raise SandboxError(f"the patch names {away[0]!r}, which is not in the workspace")
        sides = {path: before(path) for path in paths}
        git.run("read-tree", tree(git, sides.items()), env={"GIT_INDEX_FILE": str(index)})
        yield git, sides, index


def _entries(git: Git, index: Path) -> dict[str, tuple[str, str]]:
    """The mode and the name of the content of each path in an index."""
    listing = git.run("ls-files", "--stage", "-z", env={"GIT_INDEX_FILE": str(index)})
    lines = [entry.split(b"\t", 1) for entry in listing.split(b"\0") if entry]
    return {os.fsdecode(path): (facts.split()[0].decode(), facts.split()[1].decode()) for facts, path in lines}


def _sides(git: Git, entries: Mapping[str, tuple[str, str]]) -> dict[str, Side]:
    wanted = "".join(f"{name}\n" for _, name in entries.values())
    contents = io.BytesIO(git.run("cat-file", "--batch", stdin=wanted.encode()))
    made = {}
    for path, (mode, _) in entries.items():
        size = int(contents.readline().split()[2])
        made[path] = Side("l" if mode == "120000" else "f", int(mode, 8) & 0o777, contents.read(size))
        contents.read(1)
    return made


def ignored(paths: Collection[str], rules: Mapping[str, str], exclude: str) -> frozenset[str]:
    """Those that git would ignore. `rules` are the `.gitignore` files by path, `exclude` is `info/exclude`. Where rules
    take git longer than `IGNORING_S`, nothing is ignored: a patch may have files too many, and no state is lost."""
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
            found = git.run(*command, stdin=listing, fine=(0, 1), timeout_s=IGNORING_S)
        except GitTooSlow:
            log.warning("the .gitignore files keep git busy for more than %g s; nothing is ignored", IGNORING_S)
            return frozenset()
    return frozenset(os.fsdecode(path).removeprefix("./") for path in found.split(b"\0") if path)


def _with_work_tree(directory: Path) -> tuple[Git, Path]:
    """A repository in an empty directory, and its work tree."""
    work_tree = directory / "tree"
    work_tree.mkdir()
    return Git(directory / "git", work_tree), work_tree
