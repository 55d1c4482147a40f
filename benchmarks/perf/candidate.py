"""A candidate: an edit and one test, beside a fresh container for each: `docker run --rm`, a patch applied, pytest."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from difflib import unified_diff

from benchmarks.perf import peer
from benchmarks.perf.bench import Bench, Candidates, chosen
from benchmarks.perf.node import WARM_UP, timed_each
from benchmarks.perf.repositories import MOUNT
from benchmarks.perf.script import main
from benchmarks.perf.table import Row, less
from benchmarks.perf.timing import Way, interleave

N = 5
GOAL = 12.0


def options(parser: ArgumentParser) -> None:
    """Of this script: none."""


def rows(bench: Bench, given: Namespace) -> Iterator[Row]:
    """A row a repository; the ways of all repositories are interleaved."""
    repositories = chosen(given.repositories)
    ways: dict[str, Way] = {}
    for repository in repositories:
        candidates = bench.candidates(repository)
        ways[f"{repository.name} ours"] = timed_each(candidates.examine)
        ways[f"{repository.name} usual"] = timed_each(Fresh(bench.image(repository), candidates).examine)
    taken = interleave(ways, given.n or N, bench.rng, warm_up=WARM_UP)
    for repository in repositories:
        what = f"a candidate: edit, one test ({repository.name}), beside a fresh container"
        yield less(what, taken[f"{repository.name} ours"], taken[f"{repository.name} usual"], GOAL)


class Fresh:
    """Candidates in a container each."""

    def __init__(self, image: str, candidates: Candidates) -> None:
        self._image = image
        self._candidates = candidates

    def examine(self, number: int) -> None:
        """Start a container, apply the patch in it, run the test, remove it."""
        script = f"git apply && python3 -m pytest -q {self._candidates.repository.test}"
        command = ["run", "--rm", "-i", "--network", "none", "-w", MOUNT, self._image, "sh", "-c", script]
        peer.docker(*command, stdin=self._patch(number))

    def _patch(self, number: int) -> bytes:
        path = self._candidates.repository.edited
        old, new = (_lines(text) for text in (self._candidates.source, self._candidates.edit(number)))
        return "".join(unified_diff(old, new, f"a/{path}", f"b/{path}")).encode()


def _lines(text: bytes) -> list[str]:
    return text.decode().splitlines(keepends=True)


if __name__ == "__main__":
    main(__doc__, options, rows)
