"""A node of a search tree (an edit, one test, and back to the state before), compared with the usual way: edit, pytest,
`git add`, `git commit`, `git checkout` and `git clean`, each by `docker exec` in one container."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

from benchmarks.perf import peer
from benchmarks.perf.bench import Bench, Candidates, chosen, unused
from benchmarks.perf.repositories import MOUNT
from benchmarks.perf.script import main
from benchmarks.perf.table import Row, less
from benchmarks.perf.timing import Way, interleave, timed

if TYPE_CHECKING:
    from docker.models.containers import Container

N = 6
WARM_UP = 3
"""Rounds that do not count: from the second run of a test on, our side copies runs from a stopped session."""
GOALS = {"large": 4.0, "large-late": 4.0}
GOAL = 7.0


def rows(bench: Bench, given: Namespace) -> Iterator[Row]:
    """A row for each repository; the ways of all repositories are interleaved."""
    repositories = chosen(given.repositories)
    ways: dict[str, Way] = {}
    with ExitStack() as held:
        for repository in repositories:
            candidates = bench.candidates(repository)
            box = held.enter_context(peer.container(bench.client, bench.image(repository)))
            ways[f"{repository.name} ours"] = timed_each(candidates.examine)
            ways[f"{repository.name} usual"] = timed_each(Usual(box, candidates).examine)
        taken = interleave(ways, given.n or N, bench.rng, warm_up=WARM_UP)
    for repository in repositories:
        goal = GOALS.get(repository.name, GOAL)
        what = f"a node: edit, one test, back ({repository.name}: {repository.package or 'ours'})"
        yield less(what, taken[f"{repository.name} ours"], taken[f"{repository.name} usual"], goal)


def timed_each(examine: Callable[[int], None]) -> Way:
    """A way that times `examine` with a new number each time."""
    return lambda: timed(lambda: examine(unused()))


class Usual:
    """Candidates in one container that is reset by git."""

    def __init__(self, box: Container, candidates: Candidates) -> None:
        self._box = str(box.id)
        self._container = box
        self._candidates = candidates
        self._base = self._do("git", "rev-parse", "HEAD").decode().strip()

    def _do(self, *command: str) -> bytes:
        return peer.docker("exec", "-w", MOUNT, self._box, *command)

    def examine(self, number: int) -> None:
        """Edit, run the test, commit the state, and go back."""
        repository = self._candidates.repository
        peer.put(self._container, repository.edited, self._candidates.edit(number))
        self._do("python3", "-m", "pytest", "-q", repository.test)
        self._do("git", "add", "-A")
        self._do("git", "commit", "-q", "-m", f"candidate {number}")
        self._do("git", "checkout", "-q", "-f", self._base)
        self._do("git", "clean", "-f", "-d", "-q")


if __name__ == "__main__":
    main(__doc__, rows)
