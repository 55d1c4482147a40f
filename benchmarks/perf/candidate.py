"""A candidate (an edit and one test), compared with a fresh container for each, in two ways.

The first is how agents usually work: `docker run -d`, the edit and pytest by `docker exec`, `docker rm`. The second is
one `docker run --rm` for everything, which is the minimum.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from difflib import unified_diff

from benchmarks.perf import peer
from benchmarks.perf.bench import Bench, Candidates, chosen
from benchmarks.perf.node import WARM_UP, timed_each
from benchmarks.perf.repositories import MOUNT
from benchmarks.perf.script import main
from benchmarks.perf.table import Row, less
from benchmarks.perf.timing import Way, interleave
from sandboxes.docker.client import labels

N = 5
GOAL = 12.0


def rows(bench: Bench, given: Namespace) -> Iterator[Row]:
    """Two rows for each repository; the ways of all repositories are interleaved."""
    repositories = chosen(given.repositories)
    ways: dict[str, Way] = {}
    for repository in repositories:
        candidates = bench.candidates(repository)
        ways[f"{repository.name} ours"] = timed_each(candidates.examine)
        fresh = Fresh(bench.image(repository), candidates)
        ways[f"{repository.name} usual"] = timed_each(fresh.examine)
        ways[f"{repository.name} least"] = timed_each(fresh.examine_at_once)
    taken = interleave(ways, given.n or N, bench.rng, warm_up=WARM_UP)
    for repository in repositories:
        what = f"a candidate: edit, one test ({repository.name}), beside a fresh container"
        ours = taken[f"{repository.name} ours"]
        yield less(what, ours, taken[f"{repository.name} usual"], GOAL)
        yield less(f"{what}, all in one `docker run`", ours, taken[f"{repository.name} least"], GOAL)


class Fresh:
    """Candidates that each get a new container."""

    def __init__(self, image: str, candidates: Candidates) -> None:
        self._image = image
        self._candidates = candidates

    def examine(self, number: int) -> None:
        """Start a container, edit, run the test and remove the container, with a command for each step."""
        repository = self._candidates.repository
        started = peer.docker(
            "run", "-d", "--network", "none", "-w", MOUNT, *_marks(), self._image, "sleep", "infinity"
        )
        box = started.decode().strip()
        write = ["sh", "-c", f"cat > {repository.edited}"]
        peer.docker("exec", "-i", box, *write, stdin=self._candidates.edit(number))
        peer.docker("exec", box, "python3", "-m", "pytest", "-q", repository.test)
        peer.docker("rm", "-f", box)

    def examine_at_once(self, number: int) -> None:
        """Start a container that applies the patch, runs the test and is removed."""
        script = f"git apply && python3 -m pytest -q {self._candidates.repository.test}"
        command = ["run", "--rm", "-i", "--network", "none", "-w", MOUNT, *_marks(), self._image, "sh", "-c", script]
        peer.docker(*command, stdin=self._patch(number))

    def _patch(self, number: int) -> bytes:
        path = self._candidates.repository.edited
        old, new = (_lines(text) for text in (self._candidates.source, self._candidates.edit(number)))
        return "".join(unified_diff(old, new, f"a/{path}", f"b/{path}")).encode()


def _marks() -> list[str]:
    """Labels by which `ramify clean` recognises a container that was left behind."""
    return [f"--label={name}={value}" for name, value in labels(peer.LABEL).items()]


def _lines(text: bytes) -> list[str]:
    return text.decode().splitlines(keepends=True)


if __name__ == "__main__":
    main(__doc__, rows)
