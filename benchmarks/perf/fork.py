"""Forking a state, running `true` in it and removing it, compared with `docker commit`, `docker run` and `docker rm` of
the same state. States are chains of small edits of various depths."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.perf import peer
from benchmarks.perf.bench import Bench, chosen, say
from benchmarks.perf.repositories import MOUNT, Repository
from benchmarks.perf.script import main
from benchmarks.perf.table import Row, at_most, less
from benchmarks.perf.timing import Sample, Way, interleave, timed
from sandboxes import Provider, SandboxError, Snapshot

if TYPE_CHECKING:
    from docker.models.containers import Container

N = 10
COMMITTED_DEPTH = 50
"""The depth of the peer's state; Docker has a limit of about 125."""


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--depths", default="1,50,100", metavar="N,N", help="depths of states; default: 1,50,100")


def rows(bench: Bench, given: Namespace) -> Iterator[Row]:
    """Rows for the usual way at depth 50, for the size of the repository, and for the depth."""
    repositories = list({each.project: each for each in reversed(chosen(given.repositories))}.values())[::-1]
    depths = sorted({COMMITTED_DEPTH, *(int(depth) for depth in given.depths.split(","))})
    first = repositories[0]
    states = {(repository.name, COMMITTED_DEPTH): repository for repository in repositories}
    states |= {(first.name, depth): first for depth in depths}
    ways: dict[str, Way] = {}
    with ExitStack() as held:
        for (name, depth), repository in states.items():
            try:
                state = deep(bench, repository, depth)
                fork(bench.provider(repository), state)
            except SandboxError as error:
                yield Row(f"fork, {depth} deep", "", "", 1, f"refused: {error}", "works", met=False)
                continue
            ways[f"{name} {depth}"] = partial(_timed_fork, bench.provider(repository), state)
        image = held.enter_context(committed_chain(bench, first, COMMITTED_DEPTH))
        box = held.enter_context(peer.container(bench.client, image))
        ways["usual"] = partial(commit_and_run, bench, box)
        taken = interleave(ways, given.n or N, bench.rng)
    yield from _findings(taken, [repository.name for repository in repositories], depths)


def _findings(taken: dict[str, Sample], names: list[str], depths: list[int]) -> Iterator[Row]:
    first, last = names[0], names[-1]
    middle = taken[f"{first} {COMMITTED_DEPTH}"]
    yield less(f"fork, `true`, tear-down, {COMMITTED_DEPTH} deep ({first})", middle, taken["usual"], 20)
    if last != first:
        yield _growth(f"the same, {last} beside {first}", taken[f"{last} {COMMITTED_DEPTH}"], middle, 1.5)
    shallow = taken[f"{first} {depths[0]}"]
    for depth in depths[1:]:
        if depth <= 100 and depth != COMMITTED_DEPTH and f"{first} {depth}" in taken:
            what = f"the same, {depth} deep beside {depths[0]} deep"
            yield _growth(what, taken[f"{first} {depth}"], shallow, 2)
        elif depth > 100 and f"{first} {depth}" in taken:
            sample = taken[f"{first} {depth}"]
            figure = f"{sample.median / shallow.median:.2f}x the time of {depths[0]} deep"
            yield Row(f"the same, {depth} deep", str(sample), "", len(sample.seconds), figure, "works", met=True)


def _growth(what: str, more: Sample, less: Sample, goal: float) -> Row:
    return at_most(what, str(more), len(more.seconds), more.median / less.median, goal, "x the time")


def deep(bench: Bench, repository: Repository, depth: int) -> Snapshot:
    """A state after `depth` edits, with a snapshot after each."""
    state = bench.base(repository)
    with bench.provider(repository).at(state) as box:
        for number in range(depth):
            box.write(repository.edited, b"# %d\n" % number)
            box.write(f"notes/{number % 7}.txt", b"%d\n" % number)
            state = box.snapshot()
    say(f"{repository.name}: a state {depth} deep")
    return state


def fork(provider: Provider, state: Snapshot) -> None:
    """Fork a state, run `true`, and remove the fork."""
    with provider.at(state) as box:
        ended = box.exec(["true"], timeout_s=60)
    if ended.exit_code:
        raise RuntimeError(f"`true` ended with {ended.exit_code}: {ended.stderr.decode(errors='replace')}")


def _timed_fork(provider: Provider, state: Snapshot) -> float:
    return timed(lambda: fork(provider, state))


@contextmanager
def committed_chain(bench: Bench, repository: Repository, depth: int) -> Iterator[str]:
    """Yield the same state as an image, made of one commit for each edit."""
    image = bench.image(repository)
    made = []
    try:
        for number in range(depth):
            with peer.container(bench.client, image) as box:
                peer.put(box, repository.edited, b"# %d\n" % number)
                image = peer.committed(box)
                made.append(image)
        say(f"{repository.name}: an image {depth} commits deep")
        yield image
    finally:
        for name in reversed(made):
            peer.removed(bench.client, name)


def commit_and_run(bench: Bench, box: Container) -> float:
    """Seconds to commit a running container, run `true` in a new container of the image, and remove that."""
    made = []

    def act() -> None:
        made.append(peer.committed(box))
        bench.client.containers.run(made[0], ["true"], remove=True, network_mode="none", working_dir=MOUNT)

    try:
        return timed(act)
    finally:
        for name in made:
            peer.removed(bench.client, name)


if __name__ == "__main__":
    main(__doc__, rows, options)
