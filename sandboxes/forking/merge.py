"""Three-way merges of files by git, in a temporary private repository."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from sandboxes import Merge
from sandboxes.forking.workspace_files import names
from sandboxes.git.command import Git
from sandboxes.git.diff import Difference, Side, shown, tree

_NOBODY = {
    f"GIT_{role}_{what}": value
    for role in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "ramify"), ("EMAIL", "ramify@localhost"), ("DATE", "@0 +0000"))
}


def merge(ours: Sequence[Difference], theirs: Sequence[Difference]) -> Merge:
    """Merge two sides of one base as `git merge` does, following renames. Needs git 2.38.

    Raises:
        SandboxError: git failed.
    """
    base = {difference.path: difference.old for difference in (*ours, *theirs)}
    with tempfile.TemporaryDirectory(prefix="ramify-merge-") as directory:
        git = Git(Path(directory, "git"))
        root = _commit(git, base)
        one = _commit(git, base | {difference.path: difference.new for difference in ours}, root)
        other = _commit(git, base | {difference.path: difference.new for difference in theirs}, root)
        output = git.run("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", one, other, fine=(0, 1))
        merged, *conflicts = names(output)
        return Merge(b"" if conflicts else shown(git, one, merged), tuple(dict.fromkeys(conflicts)))


def _commit(git: Git, files: Mapping[str, Side | None], parent: str = "") -> str:
    ancestry = ("-p", parent) if parent else ()
    return git.run("commit-tree", tree(git, files.items()), *ancestry, env=_NOBODY).decode().strip()
