"""Byte-exact git patches between two sets of files, made in a temporary private repository."""

from __future__ import annotations

import io
import logging
import os
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sandboxes import GitFailed, GitTooSlow, SandboxError
from sandboxes.git.command import Git

MAX_FILE_BYTES = 64 << 20
MAX_BYTES = 256 << 20
"""The most bytes of all old and new contents of a patch together."""
PATCHES_KEPT = 16
"""The number of patches that a provider keeps."""
IGNORING_S = 10.0
"""Time limit for matching `.gitignore` rules, because git matches patterns by backtracking."""
_UNSYNCED = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.fsync", "GIT_CONFIG_VALUE_0": "none"}
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Side:
    """A file or a symbolic link before or after a change."""

    kind: str
    """`f` or `l`; git ignores anything else."""
    mode: int
    content: bytes
    """A link's target."""

    @property
    def git_mode(self) -> str:
        """The mode in a git tree."""
        if self.kind == "l":
            return "120000"
        return "100755" if self.mode & 0o100 else "100644"


@dataclass(frozen=True, slots=True)
class Difference:
    """A path before and after a change; None if it does not exist."""

    path: str
    old: Side | None
    new: Side | None


def fitting(sizes: Mapping[str, tuple[int | None, int | None]]) -> list[str]:
    """List the changed paths that a patch can contain. `sizes` has the old and new size in bytes of each path; None if
    the path does not exist.

    A new file that is too large is probably a by-product of a command: it is left out, with a warning.

    Raises:
        SandboxError: a file that existed before is too large, or all files together are.
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
                f"{path!r} was changed and has {size >> 20} MiB, more than a patch may contain "
                f"({MAX_FILE_BYTES >> 20} MiB per file); restore it, or let the command that changes it write to a new "
                "file"
            )
    total = sum(kept.values())
    if total > MAX_BYTES:
        largest = max(kept, key=kept.__getitem__)
        raise SandboxError(
            f"{len(kept)} files differ, {total >> 20} MiB in all, more than a patch may contain ({MAX_BYTES >> 20} MiB)"
            f"; the largest is {largest!r}; list files that do not belong to the repository in .gitignore"
        )
    return list(kept)


@cache
def _say_left_out(path: str, size: int) -> None:
    """Warn once per file, no matter how often the state is compared."""
    limit = MAX_FILE_BYTES >> 20
    log.warning("%r (%d MiB) is left out of the patch: a new file may have at most %d MiB", path, size >> 20, limit)


def patch(differences: Sequence[Difference], *, context: int = 3) -> bytes:
    """Return the patch from the old sides to the new ones, with `context` unchanged lines around each change."""
    if not differences:
        return b""
    with tempfile.TemporaryDirectory(prefix="ramify-patch-") as directory:
        git = Git(Path(directory))
        old = {difference.path: difference.old for difference in differences}
        new = {difference.path: difference.new for difference in differences}
        return shown(git, *commits(git, old, new), context=context)


def shown(git: Git, old: str, new: str, *, context: int = 3) -> bytes:
    """Return the patch from one commit or tree of a repository to another; `context` as for `patch`."""
    return git.run("diff-tree", f"-U{context}", "--binary", "--full-index", "--no-renames", "--no-ext-diff",
                   "--no-textconv", "--no-color", "--src-prefix=a/", "--dst-prefix=b/", old, new)  # fmt: skip


def commits(git: Git, *trees: Mapping[str, Side | None]) -> list[str]:
    """Commit sets of files and links to a repository of Ramify's own, and return the names of the commits.

    The first commit is the parent of all others. Nothing is synced to the disk.
    """
    stream = [part for number, sides in enumerate(trees, 1) for part in _commit(number, sides)]
    marks = git.directory / "marks"
    git.run("fast-import", "--quiet", f"--export-marks={marks}", stdin=b"".join(stream), env=_UNSYNCED)
    names = dict(line.split() for line in marks.read_text().splitlines())
    return [names[f":{number}"] for number in range(1, len(trees) + 1)]


def _commit(number: int, sides: Mapping[str, Side | None]) -> Iterator[bytes]:
    """The commands of `git fast-import` for a commit and the contents of its tree."""
    yield b"commit refs/commits/%d\nmark :%d\ncommitter ramify <> 0 +0000\ndata 0\n" % (number, number)
    yield b"from :1\ndeleteall\n" if number > 1 else b""
    for path, side in sides.items():
        if side is not None and side.kind in ("f", "l"):
            yield b"M %s inline %s\ndata %d\n" % (side.git_mode.encode(), _quoted(path), len(side.content))
            yield from (side.content, b"\n")


def _quoted(path: str) -> bytes:
    """Put a path in double quotes, as git reads it."""
    return b'"%s"' % b"".join(
        b"\\%03o" % byte if byte < 32 or byte in b'"\\' else bytes([byte]) for byte in os.fsencode(path)
    )


def applied(patch: bytes, before: Callable[[str], Side | None], *, guarded: bool = False) -> list[Difference]:
    """Apply a git patch and return each path that it touches, before and after. `before` returns a path's current side.

    A repository's attributes and settings do not matter. `guarded`: as for `Git`.

    Raises:
        SandboxError: the patch does not apply, or a path leads outside the workspace.
    """
    with _beside(patch, before, guarded=guarded) as (git, sides, index):
        git.run("apply", "--cached", "--whitespace=nowarn", stdin=patch, env={"GIT_INDEX_FILE": str(index)})
        made = _sides(git, _entries(git, index))
        return [Difference(path, side, made.get(path)) for path, side in sides.items()]


def outdated(patch: bytes, before: Callable[[str], Side | None]) -> list[str]:
    """List the paths whose content or mode in `before` differs from what the patch was made from.

    Raises:
        SandboxError: git cannot read the patch, or a path leads outside the workspace.
    """
    with _beside(patch, before) as (git, sides, index):
        then = index.with_name("then")
        git.run("apply", f"--build-fake-ancestor={then}", stdin=patch, env={"GIT_INDEX_FILE": str(index)})
        now, then_ = _entries(git, index), _entries(git, then)
        return [path for path in sides if now.get(path) != then_.get(path) or (sides[path] and path not in then_)]


def is_applied(patch: bytes, now: Callable[[str], Side | None]) -> bool:
    """Whether `now` has each file that a patch touches in the state after the patch.

    Raises:
        SandboxError: as `outdated`.
    """
    with _beside(patch, now) as (git, _, index):
        try:
            git.run("apply", "--cached", "--reverse", "--check", stdin=patch, env={"GIT_INDEX_FILE": str(index)})
        except GitFailed:
            return False
        return True


@contextmanager
def _beside(
    patch: bytes, before: Callable[[str], Side | None], *, guarded: bool = False
) -> Iterator[tuple[Git, dict[str, Side | None], Path]]:
    """Make a temporary repository, the current side of each path that a patch touches, and an index of these sides."""
    with tempfile.TemporaryDirectory(prefix="ramify-apply-") as directory:
        git, index = Git(Path(directory, "git"), guarded=guarded), Path(directory, "index")
        listing = git.run("apply", "--numstat", "-z", stdin=patch)
        paths = [os.fsdecode(entry.split(b"\t", 2)[2]) for entry in listing.split(b"\0") if entry]
        if away := [path for path in paths if path.startswith("/") or ".." in path.split("/")]:
            raise SandboxError(f"the patch names {away[0]!r}, which is not in the workspace")
        sides = {path: before(path) for path in paths}
        git.run("read-tree", *commits(git, sides), env={"GIT_INDEX_FILE": str(index)})
        yield git, sides, index


def _entries(git: Git, index: Path) -> dict[str, tuple[str, str]]:
    """Return the mode and the blob name of each path in an index."""
    listing = git.run("ls-files", "--stage", "-z", env={"GIT_INDEX_FILE": str(index)})
    lines = [entry.split(b"\t", 1) for entry in listing.split(b"\0") if entry]
    return {os.fsdecode(path): (facts.split()[0].decode(), facts.split()[1].decode()) for facts, path in lines}


def _sides(git: Git, entries: Mapping[str, tuple[str, str]]) -> dict[str, Side]:
    listing = "".join(f"{name}\n" for _, name in entries.values())
    contents = io.BytesIO(git.run("cat-file", "--batch", stdin=listing.encode()))
    made = {}
    for path, (mode, _) in entries.items():
        size = int(contents.readline().split()[2])
        made[path] = Side("l" if mode == "120000" else "f", int(mode, 8) & 0o777, contents.read(size))
        contents.read(1)
    return made


def ignored(paths: Collection[str], rules: Mapping[str, str], exclude: str) -> frozenset[str]:
    """Return the paths that git would ignore. `rules` are the `.gitignore` files by path, `exclude` is `info/exclude`.

    If matching takes git longer than `IGNORING_S`, nothing is ignored: a patch may have too many files, but no state
    is lost.
    """
    if not paths or not (rules or exclude):
        return frozenset()
    with tempfile.TemporaryDirectory(prefix="ramify-ignore-") as directory:
        work_tree = Path(directory, "tree")
        work_tree.mkdir()
        git = Git(Path(directory, "git"), work_tree)
        for path, text in rules.items():
            place = work_tree / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(text.encode("utf-8", "surrogateescape"))
        (git.directory / "info").mkdir()
        (git.directory / "info" / "exclude").write_bytes(exclude.encode("utf-8", "surrogateescape"))
        # Git would treat a name that begins with a colon as a pattern.
        listing = b"".join(b"./" + os.fsencode(path) + b"\0" for path in paths)
        command = ("check-ignore", "-z", "--stdin", "--no-index")
        try:
            output = git.run(*command, stdin=listing, fine=(0, 1), timeout_s=IGNORING_S)
        except GitTooSlow:
            log.warning("the .gitignore files keep git busy for more than %g s; nothing is ignored", IGNORING_S)
            return frozenset()
    return frozenset(os.fsdecode(path).removeprefix("./") for path in output.split(b"\0") if path)
