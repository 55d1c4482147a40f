"""Lineage: a commit for each state of a run, with the states that it was made from as its parents."""

from __future__ import annotations

import fcntl
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from agent.analysis.history.trees import StateGone, Trees
from agent.analysis.report.summary import tally
from agent.errors import JournalError
from agent.evaluate.goal_tests import goals_of_run
from agent.run.run import Run
from agent.run.tree.node import Node, NodeId
from agent.untrusted import one_line
from sandboxes import Provider, SandboxError
from sandboxes.git.command import Git
from sandboxes.git.foreign import locate, opened

log = logging.getLogger(__name__)

HISTORY = "history.git"
NODES = "refs/ramify/nodes"
"""The refs of the states' commits, by the numbers of their nodes."""
PRUNED = "refs/pruned"
"""The refs of pruned states: they are kept, but not part of the history that is shown and fetched."""
BASE = "refs/ramify/base"
"""The ref of the commit that the run began from, if the checkout still had it."""

_CONFIG = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n[gc]\n\tauto = 0\n"


@dataclass(frozen=True, slots=True)
class History:
    """The history of a run, as far as it could be made."""

    git: Git
    commits: dict[NodeId, str]
    missing: dict[NodeId, str]
    """Nodes without a commit, each with the reason."""


def keep(run: Run, states: Callable[[], AbstractContextManager[Provider | None]]) -> History:
    """Bring the history of a run up to date with its journal, and hide the pruned states. The run may be searched
    meanwhile, and any number of processes may do this at once: each state gets one commit. `states` opens the provider
    that holds the states, None if they were removed; it is called only when there is something to add.

    Raises:
        sandboxes.SandboxError: git failed, or the sandbox.
    """
    directory = run.journal.directory / HISTORY
    directory.mkdir(exist_ok=True)
    _require_own(directory)
    with _locked(directory):
        git = Git(directory)
        (directory / "config").write_text(_CONFIG)
        commits = _commits(git)
        missing: dict[NodeId, str] = {}
        if any(node.id not in commits for node in run.tree):
            with states() as provider:
                missing = _add(git, run, Trees(git, run, provider), commits)
        _hide(git, run, commits)
    return History(git, commits, missing)


def _require_own(directory: Path) -> None:
    """Refuse a history that leads to other directories: the run may come from somebody else."""
    parts = (directory, *directory.iterdir(), *(directory / "refs").rglob("*"))
    strange = next((part for part in parts if part.is_symlink() or part.name == "commondir"), None)
    if strange:
        raise SandboxError(f"{strange} leads out of the run's history, and Ramify never creates such a file; remove it")


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Keep other processes from writing there. Locks of refs that a killed process left behind are removed."""
    with (directory / "ramify.lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        for stale in (directory / "refs").rglob("*.lock"):
            stale.unlink()
        yield


def _commits(git: Git) -> dict[NodeId, str]:
    listing = git.run("for-each-ref", "--format=%(objectname) %(refname)", NODES, PRUNED).decode().splitlines()
    return {int(name.rpartition("/")[2]): commit for commit, name in map(str.split, listing)}


def _add(git: Git, run: Run, trees: Trees, commits: dict[NodeId, str]) -> dict[NodeId, str]:
    """Make the missing commits. Returns the nodes that can have no commit, each with the reason."""
    missing: dict[NodeId, str] = {}
    root, goals = run.tree.root, goals_of_run(run)
    base = _base(git, run)
    start = began(git)
    for node in run.tree:
        if node.id in commits:
            continue
        try:
            if node is root:
                tree = trees.of_root(base)
            elif root.id in commits:
                tree = trees.of(node, f"{commits[root.id]}^{{tree}}")
            else:
                raise StateGone("the base state, to which its patch applies, was removed")
        except (StateGone, SandboxError, JournalError) as error:
            missing[node.id] = str(error)
            continue
        parents = [base] if node is root and base else _parents(run, node, commits)
        commits[node.id] = sign(git, tree, parents, _message(run, node, goals), start + node.id)
        git.run("update-ref", f"{NODES}/{node.id}", commits[node.id])
    return missing


def _base(git: Git, run: Run) -> str:
    """The commit that the run began from, fetched once without its ancestors; empty if it cannot be fetched."""
    if fetched := base_commit(git):
        return fetched
    task = run.started.task if run.started else {}
    commit, path = task.get("base"), task.get("workspace", {}).get("path")
    repository = locate(Path(path)) if commit and path else None
    if repository is None:
        return ""
    try:
        with opened(repository) as view:
            git.fetch(view.git, f"{commit}:{BASE}", depth=1)
    except SandboxError as error:
        log.info("the base commit is left out: %s", error)
        return ""
    return str(commit)


def _parents(run: Run, node: Node, commits: dict[NodeId, str]) -> list[str]:
    """The commits of the nearest ancestor that has one, and of the other parents of a fused node."""
    ancestor = next((above.id for above in reversed(run.tree.path(node.id)[:-1]) if above.id in commits), None)
    others = node.parents[1:] if node.kind == "fuse" else ()
    return [commits[parent] for parent in (ancestor, *others) if parent in commits]


def base_commit(git: Git) -> str:
    """The commit that the run began from; empty if the history does not have it."""
    return git.run("for-each-ref", "--format=%(objectname)", BASE).decode().strip()


def began(git: Git) -> int:
    """The time of the base commit, in seconds since the epoch; 0 if there is no base commit."""
    return int(git.run("for-each-ref", "--format=%(committerdate:unix)", BASE).decode().strip() or "0")


def sign(git: Git, tree: str, parents: list[str], message: str, time: int) -> str:
    """Write a commit with this time. A state's time is that of the base commit plus the number of its node in seconds:
    the same in every process, and later than its parents'."""
    author = {
        f"GIT_{role}_{what}": value
        for role in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "ramify"), ("EMAIL", "ramify@localhost"), ("DATE", f"@{time} +0000"))
    }
    options = [argument for parent in parents for argument in ("-p", parent)]
    text = message.encode("utf-8", "replace").replace(b"\0", b"")
    return git.run("commit-tree", tree, *options, stdin=text, env=author).decode().strip()


def _message(run: Run, node: Node, goals: Sequence[str]) -> str:
    tests = tally(node.report, goals)
    facts = {
        "Node": node.id,
        "Parents": " ".join(map(str, node.parents)),
        "Value": f"{node.value:.4f}",
        "Tests": tests,
        "State": node.state_hash,
        "Run": run.journal.directory.absolute().name,
    }
    trailers = "\n".join(f"Ramify-{name}: {value}" for name, value in facts.items() if value != "")
    return f"{node.id} {node.value:.3f} {tests} {one_line(node.label)}".rstrip() + f"\n\n{trailers}\n"


def _hide(git: Git, run: Run, commits: dict[NodeId, str]) -> None:
    """Move the refs of pruned states to `PRUNED`; their commits stay."""
    shown = git.run("for-each-ref", "--format=%(refname)", NODES).decode().split()
    numbers = [int(name.rpartition("/")[2]) for name in shown]
    moves = [
        f"create {PRUNED}/{number} {commits[number]}\ndelete {NODES}/{number}\n"
        for number in numbers
        if run.tree.pruned(number)
    ]
    if moves:
        git.run("update-ref", "--stdin", stdin="".join(moves).encode())
