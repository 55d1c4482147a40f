"""What the scripts share in one process: the engine, our provider, and each repository made ready on both sides."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from agent.measure.measurer import Measurer, find_baseline
from agent.task import Task
from benchmarks.perf import peer
from benchmarks.perf.repositories import REPOSITORIES, Repository, cache, checkout
from sandboxes import Limits, Snapshot
from sandboxes.forking.provider import ForkingProvider

if TYPE_CHECKING:
    from docker import DockerClient

__all__ = ["Bench", "Candidates", "chosen", "say", "unused"]

unused = count().__next__
"""A number that nobody had: no candidate is like another one, whose results are known."""


def say(line: str) -> None:
    """Progress, for people."""
    print(line, file=sys.stderr, flush=True)


class Bench:
    """Everything is made when it is first asked for, once, and is gone when the block ends."""

    def __init__(self, kind: str, seed: int, cold: bool, held: ExitStack, work: Path) -> None:
        self.kind = kind
        """The sandbox of our side: `docker` or `namespace`."""
        self.cold = cold
        """Tests run in new processes, never in copies of a warm one."""
        self.rng = Random(seed)
        self._work = work
        self._held = held
        self._paths: dict[str, Path] = {}
        self._providers: dict[str, ForkingProvider] = {}
        self._candidates: dict[str, Candidates] = {}
        self._bases: dict[str, Snapshot] = {}
        self._images: dict[str, str] = {}

    @classmethod
    @contextmanager
    def open(cls, kind: str, *, seed: int = 0, cold: bool = False) -> Iterator[Bench]:
        """A bench for the block."""
        cache().mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix="work-", dir=cache()) as folder, ExitStack() as held:
            yield cls(kind, seed, cold, held, Path(folder))

    @cached_property
    def client(self) -> DockerClient:
        """Of the engine.

        Raises:
            sandboxes.SandboxUnavailable: none answers.
        """
        from sandboxes.docker.client import connect

        client = connect()
        self._held.callback(client.close)
        return client

    def provider(self, repository: Repository) -> ForkingProvider:
        """Ours; one a repository, as a search has."""
        if repository.name not in self._providers:
            self._providers[repository.name] = self._held.enter_context(self._open(self.store(repository)))
        return self._providers[repository.name]

    def _open(self, store: Path) -> ForkingProvider:
        if self.kind == "namespace":
            from sandboxes.namespace.provider import NamespaceProvider

            return NamespaceProvider(store)
        from sandboxes.docker.provider import DockerLauncher

        launcher = DockerLauncher(store, limits=Limits())
        self._held.callback(launcher.forget)
        return ForkingProvider(launcher, Limits())

    def store(self, repository: Repository) -> Path:
        """Where our side keeps the states of a repository, or says which volume does."""
        return self._work / f"store-{repository.name}"

    def path(self, repository: Repository) -> Path:
        """A checkout of it on this machine."""
        if repository.project not in self._paths:
            self._paths[repository.project] = checkout(repository, self._work, say)
        return self._paths[repository.project]

    def base(self, repository: Repository) -> Snapshot:
        """Its base state on our side."""
        if repository.name not in self._bases:
            say(f"{repository.name}: the base state")
            provider = self.provider(repository)
            self._bases[repository.name] = provider.create(repository.workspace(self.path(repository)))
        return self._bases[repository.name]

    def image(self, repository: Repository) -> str:
        """An image with it, for the usual way."""
        if repository.project not in self._images:
            say(f"{repository.project}: an image of the same")
            made = self._held.enter_context(peer.image(self.client, repository, self.path(repository)))
            self._images[repository.project] = made
        return self._images[repository.project]

    def candidates(self, repository: Repository) -> Candidates:
        """Its candidates, with the baseline found."""
        if repository.name not in self._candidates:
            self._candidates[repository.name] = Candidates.of(self, repository)
        return self._candidates[repository.name]


@dataclass(frozen=True, slots=True)
class Candidates:
    """Edits of one source file, each judged by one test, as the engine does for a node of its tree."""

    provider: ForkingProvider
    repository: Repository
    base: Snapshot
    source: bytes
    """Of the file that is edited."""
    measurer: Measurer
    cold: bool
    """As `Bench.cold`."""

    @classmethod
    def of(cls, bench: Bench, repository: Repository) -> Candidates:
        """With the baseline found."""
        base, provider = bench.base(repository), bench.provider(repository)
        workspace = repository.workspace(bench.path(repository))
        command = f"python3 -m pytest -q {repository.tests}"
        task = Task(repository.name, "", workspace, command, goal_tests=(repository.test,))
        say(f"{repository.project}: the baseline")
        baseline = find_baseline(provider, task, base)
        with provider.at(base) as box:
            source = box.read(repository.edited)
        measurer = Measurer(provider, task, base, baseline)
        return cls(provider, repository, base, source, measurer, bench.cold)

    def edit(self, number: int) -> bytes:
        """The file's new content; no two numbers give the same."""
        return self.source + b"\n# candidate %d\n" % number

    def examine(self, number: int) -> None:
        """Make the candidate's state, and run its test there."""
        with self.provider.at(self.base) as box:
            box.write(self.repository.edited, self.edit(number))
            state = box.snapshot()
        if not self.passes(state):
            raise RuntimeError(f"{self.repository.test} fails in a candidate that changes a comment only")

    def passes(self, state: Snapshot) -> bool:
        """Whether the test passes there; a state that was measured before is not run again.

        Raises:
            RuntimeError: the run says nothing.
        """
        measure = self.measurer.measure_afresh if self.cold else self.measurer.measure
        report = measure(state, (self.repository.test,))
        if not report.valid:
            raise RuntimeError(f"{self.repository.test}: {report.problem}: {report.output}")
        return report.passed(self.repository.test)


def chosen(names: str) -> Sequence[Repository]:
    """Repositories by their names, separated by commas.

    Raises:
        SystemExit: there is none of that name.
    """
    for name in names.split(","):
        if name not in REPOSITORIES:
            sys.exit(f"no repository {name!r}: {', '.join(REPOSITORIES)}")
    return [REPOSITORIES[name] for name in names.split(",")]
