"""Resources that the scripts share in one process: the engine, our provider, and the repositories for both sides."""

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


unused = count().__next__
"""Returns a new number, so that every candidate differs from those with known results."""


def say(line: str) -> None:
    """Print progress on stderr."""
    print(line, file=sys.stderr, flush=True)


class Bench:
    """Shared resources. Each is made once, on first use, and removed at the end of the block."""

    def __init__(self, kind: str, seed: int, cold: bool, held: ExitStack, work: Path) -> None:
        self.kind = kind
        """The kind of sandbox on our side: `docker` or `namespace`."""
        self.cold = cold
        """Whether tests run only in new processes, never in copies of a warm one."""
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
        """Yield a bench for the block."""
        cache().mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix="work-", dir=cache()) as folder, ExitStack() as held:
            yield cls(kind, seed, cold, held, Path(folder))

    @cached_property
    def client(self) -> DockerClient:
        """The engine's client.

        Raises:
            sandboxes.SandboxUnavailable: no engine answers.
        """
        from sandboxes.docker.client import connect

        client = connect()
        self._held.callback(client.close)
        return client

    def provider(self, repository: Repository) -> ForkingProvider:
        """Our provider, one for each repository, as in a search."""
        if repository.name not in self._providers:
            self._providers[repository.name] = self._held.enter_context(self._open(self.store(repository)))
        return self._providers[repository.name]

    def _open(self, store: Path) -> ForkingProvider:
        if self.kind == "namespace":
            from sandboxes.namespace.provider import namespace_provider

            return namespace_provider(store)
        from sandboxes.docker.provider import DockerLauncher

        launcher = DockerLauncher(store, limits=Limits())
        self._held.callback(launcher.forget)
        return ForkingProvider(launcher, Limits())

    def store(self, repository: Repository) -> Path:
        """The folder where our side keeps the states of a repository, or the name of the volume with them."""
        return self._work / f"store-{repository.name}"

    def path(self, repository: Repository) -> Path:
        """A checkout of a repository on this machine."""
        if repository.project not in self._paths:
            self._paths[repository.project] = checkout(repository, self._work, say)
        return self._paths[repository.project]

    def base(self, repository: Repository) -> Snapshot:
        """The base state of a repository on our side."""
        if repository.name not in self._bases:
            say(f"{repository.name}: the base state")
            provider = self.provider(repository)
            self._bases[repository.name] = provider.create(repository.workspace(self.path(repository)))
        return self._bases[repository.name]

    def image(self, repository: Repository) -> str:
        """An image with a repository, for the usual way."""
        if repository.project not in self._images:
            say(f"{repository.project}: an image of the same")
            image = self._held.enter_context(peer.image(self.client, repository, self.path(repository)))
            self._images[repository.project] = image
        return self._images[repository.project]

    def candidates(self, repository: Repository) -> Candidates:
        """The candidates of a repository, with the baseline found."""
        if repository.name not in self._candidates:
            self._candidates[repository.name] = Candidates.of(self, repository)
        return self._candidates[repository.name]


@dataclass(frozen=True, slots=True)
class Candidates:
    """Edits of one source file, each measured by one test, as the engine does for a node of its tree."""

    provider: ForkingProvider
    repository: Repository
    base: Snapshot
    source: bytes
    """The original content of the edited file."""
    measurer: Measurer
    cold: bool
    """As `Bench.cold`."""

    @classmethod
    def of(cls, bench: Bench, repository: Repository) -> Candidates:
        """Candidates with the baseline found."""
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
        """The file's new content, which differs for every number."""
        return self.source + b"\n# candidate %d\n" % number

    def examine(self, number: int) -> None:
        """Make the candidate's state and run its test there."""
        with self.provider.at(self.base) as box:
            box.write(self.repository.edited, self.edit(number))
            state = box.snapshot()
        if not self.passes(state):
            raise RuntimeError(f"{self.repository.test} fails in a candidate that changes a comment only")

    def passes(self, state: Snapshot) -> bool:
        """Whether the test passes in a state. A state that was measured before is not run again.

        Raises:
            RuntimeError: the report is not valid.
        """
        measure = self.measurer.measure_afresh if self.cold else self.measurer.measure
        report = measure(state, (self.repository.test,))
        if not report.valid:
            raise RuntimeError(f"{self.repository.test}: {report.problem}: {report.output}")
        return report.passed(self.repository.test)


def chosen(names: str) -> Sequence[Repository]:
    """The repositories with these comma-separated names.

    Raises:
        SystemExit: a name is unknown.
    """
    for name in names.split(","):
        if name not in REPOSITORIES:
            sys.exit(f"no repository {name!r}: {', '.join(REPOSITORIES)}")
    return [REPOSITORIES[name] for name in names.split(",")]
