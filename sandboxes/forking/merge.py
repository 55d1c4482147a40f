"""Three-way merges of files by git, in a temporary private repository."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from sandboxes import Merge
from sandboxes.forking.workspace_files import names
from sandboxes.git.command import Git
from sandboxes.git.diff import Difference, commits, shown


def merge(ours: Sequence[Difference], theirs: Sequence[Difference]) -> Merge:
    """Merge two sides of one base as `git merge` does, following renames. Needs git 2.38.

    Raises:
        SandboxError: git failed.
    """
    base = {difference.path: difference.old for difference in (*ours, *theirs)}
    with tempfile.TemporaryDirectory(prefix="ramify-merge-") as directory:
        git = Git(Path(directory, "git"))
        sides = [base | {difference.path: difference.new for difference in changes} for changes in (ours, theirs)]
        _, our_side, their_side = commits(git, base, *sides)
        command = ("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages")
        output = git.run(*command, our_side, their_side, fine=(0, 1))
        merged, *conflicts = names(output)
        return Merge(b"" if conflicts else shown(git, our_side, merged), tuple(dict.fromkeys(conflicts)))
