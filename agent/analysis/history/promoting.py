"""Promotion: a state of a run becomes a branch of the repository that the run began from."""

from __future__ import annotations

import os
from pathlib import Path

from agent.analysis.history.lineage import History, base_commit, began, sign
from agent.errors import RamifyError, UsageError
from agent.run.commands import require_node
from agent.run.run import Run
from agent.run.tree.node import NodeId
from agent.untrusted import one_line
from sandboxes import GitFailed
from sandboxes.git.foreign import View, locate, opened


def promote(run: Run, history: History, node: NodeId, branch: str, repo: Path, subject: str = "") -> str:
    """Make a branch in the repository at `repo` and return its commit: one commit with the files of the node's state,
    on top of the one that the run began from; `subject` is the first line of its message, by default what was done. The
    work tree, the index and the checked out branch do not change.

    Raises:
        agent.errors.UsageError: there is no such node or repository, the branch exists or has an invalid name, or the
            repository lacks the commit that the run began from.
        agent.errors.RamifyError: the node's state is gone.
    """
    require_node(node, len(run.tree))
    if node in history.missing:
        raise RamifyError(f"state {node} cannot be promoted: {history.missing[node]}")
    base = base_commit(history.git)
    if not base:
        raise UsageError(f"{run.journal.directory} has no commit to put a branch on; take the patch of its best "
                         f"state: ramify show {run.journal.directory} --patch")  # fmt: skip
    repository = locate(repo)
    if repository is None:
        raise UsageError(f"--repo {repo} is not a git repository")
    with opened(repository, writable=True) as view:
        if not view.commit(base):
            raise UsageError(
                f"--repo {repo} has no commit {base[:12]}, which the run began from; name a clone that has it"
            )
        _require_free(view, branch, repo)
        state = history.commits[node]
        subject = subject or one_line(run.tree[node].label) or f"State {node} of a search"
        trailers = history.git.run("show", "-s", "--format=%b", state).decode(errors="replace")
        message = f"{subject}\n\n{trailers}"
        commit = sign(history.git, f"{state}^{{tree}}", [base], message, began(history.git) + node)
        try:
            view.git.fetch(history.git, commit)
            view.git.run("update-ref", f"refs/heads/{branch}", commit, "")  # only if it is not there
        except GitFailed as error:
            raise RamifyError(f"nothing was promoted to {repo}: {error}") from error
    return commit


def uncommitted(history: History, node: NodeId) -> list[str]:
    """The files that were changed or untracked when the run began, and are the same in this state."""
    base, root, state = base_commit(history.git), history.commits[0], history.commits[node]
    changed, since = (set(_paths(history, *each)) for each in ((base, root), (root, state)))
    return sorted(changed - since)


def _paths(history: History, old: str, new: str) -> list[str]:
    listed = history.git.run("diff-tree", "-r", "-z", "--name-only", old, new)
    return [os.fsdecode(path) for path in listed.split(b"\0") if path]


def _require_free(view: View, branch: str, repo: Path) -> None:
    try:
        view.git.run("check-ref-format", "--branch", branch)
    except GitFailed as error:
        raise UsageError(f"--branch {branch}: {error.said}") from error
    reference = f"refs/heads/{branch}"
    if reference in view.git.run("for-each-ref", "--format=%(refname)", reference).decode().splitlines():
        raise UsageError(
            f"--branch {branch} exists in {repo}; choose another name, or remove it: git branch -D {branch}"
        )
