"""Exchange: runs of one task that read each other's states from a shared git repository, and push their own to it.

Runs neither know of nor wait for one another (EvoGit, arXiv 2506.02049): each has its own refs below `RUNS`, and tests
the states that it finds below the refs of others itself, like any proposal. The data of other runs is untrusted: the
repository is opened without its settings, and the value that a commit claims decides only the order in which states are
imported.
"""

from __future__ import annotations

import logging
import re
import shlex
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from random import Random

from agent.actions import Action, Shell, Write
from agent.analysis.history.lineage import NODES, keep
from agent.errors import PolicyError
from agent.policy import Position, Proposal
from agent.run.run import Run
from agent.run.tree.choice import EXCHANGED, Choice, Reason
from sandboxes import Provider, SandboxError
from sandboxes.git.command import Git
from sandboxes.git.foreign import View, locate, opened

log = logging.getLogger(__name__)

RUNS = "refs/ramify/runs"
"""The refs of the states' commits in the shared repository, by run and by the numbers of their nodes."""
MAX_BYTES = 1 << 20
"""The maximum size of all files that a state of another run changes, in bytes."""
_FORMAT = "--format=%(refname) %(objectname) %(tree) %(contents:trailers:key=Ramify-Value,valueonly,separator=)"
_REF = re.compile(rf"{RUNS}/([0-9a-f]{{12}})/(\d{{1,9}}) ([0-9a-f]+) ([0-9a-f]+) ([01]\.\d{{1,9}})")


@dataclass(frozen=True, slots=True, order=True)
class _Foreign:
    """A state of another run."""

    value: float
    """The value that its run claims, in [0, 1]."""
    commit: str
    tree: str


@dataclass(eq=False)
class GitExchange:
    """Pushes states that are better than the base state, and proposes the best state of each other run that began from
    the same files. It serves all workers of a run."""

    path: Path
    """The shared repository, created if it does not exist."""
    policy_id: str = "exchange/1"
    _met: threading.Lock = field(default_factory=threading.Lock)
    _shared: set[int] = field(default_factory=set)
    _found: list[_Foreign] = field(default_factory=list)
    _taken: set[str] = field(default_factory=set)
    """The trees of this run's own states, and of those that it has proposed already."""

    def sync(self, run: Run, provider: Provider) -> None:
        """Push new states, and read what others pushed. If git fails, log a warning; the search continues alone."""
        with self._met:
            try:
                own = keep(run, lambda: nullcontext(provider))
                self._taken.update(own.git.run("for-each-ref", "--format=%(tree)", NODES).decode().split())
                with self._open() as view:
                    self._push(view.git, own.git, run, own.commits)
                    self._found = list(self._others(view.git, _name(run)))
            except SandboxError as error:
                log.warning("states cannot be exchanged through %s: %s", self.path, error)

    def next(self) -> Choice | None:
        """The best state of another run that is new, to be imported as a child of the root."""
        new = [each for each in self._found if each.tree not in self._taken]
        if not new:
            return None
        best = max(new)
        self._taken.add(best.tree)
        return Choice(
            0, kind=EXCHANGED, hint=best.commit, independent=True, reasons=(Reason(0, {"score": best.value}, len(new)),)
        )

    def propose(self, position: Position, rng: Random) -> Proposal:
        """The changes of the commit that the position's hint names.

        Raises:
            PolicyError: the commit is gone, or has something that cannot be imported.
        """
        commit = position.hint
        try:
            with self._open() as view:
                actions = tuple(_changes(view.git, commit))
        except SandboxError as error:
            raise PolicyError(f"state {commit[:12]} of another run cannot be read: {error}") from error
        return Proposal(actions, label=f"{self.policy_id} {commit[:12]}")

    def _open(self) -> AbstractContextManager[View]:
        try:
            Git(self.path)
        except OSError as error:
            raise SandboxError(f"no repository can be made there: {error.strerror or error}") from error
        location = locate(self.path)
        if location is None:
            raise SandboxError("it is not a git repository; name another path")
        return opened(location, writable=True)

    def _push(self, shared: Git, own: Git, run: Run, commits: dict[int, str]) -> None:
        good = {n for n in commits if n == 0 or run.tree[n].value > run.tree.root.value} - self._shared
        if good and 0 in commits:
            shared.fetch(own, *(commits[n] for n in sorted(good)))
            refs = "".join(f"update {RUNS}/{_name(run)}/{n} {commits[n]}\n" for n in sorted(good))
            shared.run("update-ref", "--stdin", stdin=refs.encode())
            self._shared |= good

    def _others(self, shared: Git, name: str) -> Iterator[_Foreign]:
        """The best state of each other run whose base state has the same files as this one's."""
        runs: dict[str, dict[int, _Foreign]] = {}
        for line in shared.run("for-each-ref", _FORMAT, RUNS).decode(errors="replace").splitlines():
            if ref := _REF.fullmatch(line):
                run, node, commit, tree, value = ref.groups()
                runs.setdefault(run, {})[int(node)] = _Foreign(min(float(value), 1.0), commit, tree)
        base = runs.pop(name, {}).get(0)
        for states in runs.values():
            root = states.pop(0, None)
            if base and root and root.tree == base.tree and states:
                yield max(states.values())


def _name(run: Run) -> str:
    return sha256(str(run.journal.directory.absolute()).encode()).hexdigest()[:12]


def _changes(git: Git, commit: str) -> Iterator[Action]:
    """The actions that turn the files of the base state, from which a commit comes, into those of the commit.

    Raises:
        PolicyError: it changes something other than text files, or too much.
        sandboxes.SandboxError: git failed.
    """
    base = git.run("rev-list", "--first-parent", "--grep=^Ramify-Node: 0$", "--max-count=1", commit, "--").decode()
    listing = git.run("diff-tree", "-r", "-z", "--no-renames", base.strip(), commit).split(b"\0")
    left = MAX_BYTES
    for facts, path in zip(listing[0:-1:2], listing[1::2], strict=True):
        _, mode, _, blob, status = facts.decode().split()
        name = path.decode(errors="replace")
        if status == "D":
            yield Shell(f"rm -f -- {shlex.quote(name)}")
            continue
        if not mode.startswith("100"):
            raise PolicyError(f"state {commit[:12]} of another run changes {name!r}, which is not a file")
        left -= int(git.run("cat-file", "-s", blob))
        if left < 0:
            raise PolicyError(f"state {commit[:12]} of another run changes more than {MAX_BYTES >> 20} MiB")
        try:
            yield Write(path.decode(), git.run("cat-file", "blob", blob).decode())
        except UnicodeDecodeError as error:
            raise PolicyError(f"state {commit[:12]} of another run changes {name!r}, which is not text") from error
