"""What several workers did side by side, one worker does again in the same order."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.budget import Budget
from agent.engine.components import Components
from agent.engine.engine import Engine
from agent.engine.scheduled_replay import follow
from agent.evaluate.value.tests import PassingTests
from agent.policy import Position, Proposal
from agent.run.run import Run
from agent.run.schedule import ScheduleEntry, schedule
from agent.search.linear import Linear
from agent.solver.solve import solve
from sandboxes import Provider
from tests.policies import Scripted
from tests.projects import means, task

orders = st.lists(st.tuples(st.sampled_from(["begin", "end", "end", "stand still"]), st.integers(0, 7)), max_size=60)


class Seen:
    """Tells what a search would: each choice with what had ended and what was in flight when it began."""

    def __init__(self) -> None:
        self.begun = 0
        self.ended: list[str] = []
        self.flying: list[str] = []
        self.done: list[tuple[str, int | None]] = []

    def next_expansion(self) -> str:
        made = f"{len(self.ended)}/{'-'.join(sorted(self.flying))}"[-40:]
        self.flying.append(made)
        self.begun += 1
        return made

    def carry_out(self, ticket: str, flight: ScheduleEntry) -> None:
        self.finish(ticket)
        self.ended.append(ticket)
        self.done.append((ticket, flight.cut))

    def finish(self, ticket: str) -> None:
        self.flying.remove(ticket)


def searched(orders: list[tuple[str, int]], workers: int) -> tuple[Seen, list[ScheduleEntry]]:
    """A search by so many workers whose speed the orders say, and what its journal has of it. Where it stands still,
    what is in flight is dropped, as by a kill."""
    seen, since, numbers, flights = Seen(), 0, dict[int, str](), list[ScheduleEntry]()
    for what, which in orders:
        if what == "stand still":
            for ticket in numbers.values():
                seen.finish(ticket)
            numbers.clear()
            since = seen.begun = flights[-1].begun if flights else 0
        while len(numbers) < workers and (what != "begin" or len(numbers) <= which):
            number = seen.begun
            numbers[number] = seen.next_expansion()
        if what == "end" and numbers:
            number = sorted(numbers)[which % len(numbers)]
            flights.append(ScheduleEntry(number, seen.begun, since, cut=which or None))
            seen.carry_out(numbers.pop(number), flights[-1])
    return seen, flights


@given(orders, st.integers(1, 8))
def test_every_choice_begins_after_the_same_and_beside_the_same_and_ends_alike(orders, workers):
    first, flights = searched(orders, workers)
    again, order = Seen(), list(schedule(flights))
    follow(order, again)
    assert (order, again.flying) == ([], [])
    assert again.done == first.done


def test_where_nothing_can_be_begun_what_is_to_be_done_again_waits_for_the_next_time():
    class Over(Seen):
        def next_expansion(self) -> None:
            return None

    order = [(ScheduleEntry(0, 1, 0),)]
    follow(order, Over())
    assert order == [(ScheduleEntry(0, 1, 0),)]


def test_of_a_search_that_has_parted_only_what_is_there_is_done_again():
    class Short(Seen):
        def next_expansion(self) -> str | None:
            return super().next_expansion() if self.begun < 2 else None

    short, order = Short(), list(schedule([ScheduleEntry(1, 4, 0), ScheduleEntry(3, 5, 0), ScheduleEntry(0, 5, 0)]))
    follow(order, short)
    assert ([ticket for ticket, _ in short.done], short.flying) == (["0/0/", "0/"], [])


def test_an_older_run_has_no_order():
    assert list(schedule(iter([None, None]))) == []


@pytest.mark.namespace
def test_a_defect_while_something_is_done_again_ends_the_search_for_all_who_wait(
    provider: Provider, tmp_path: Path
) -> None:
    def breaks(position: Position) -> Proposal:
        raise ZeroDivisionError("a defect")

    parts = Components(provider, Scripted(breaks), Linear(), PassingTests(), Budget(), baseline_runs=1)
    again = partial(Engine, schedule=[(ScheduleEntry(0, 1, 0),)])
    with Run.open(tmp_path / "run") as run, pytest.raises(ZeroDivisionError, match="a defect"):
        solve(task(means(tmp_path / "repo")), parts, run, begin=again)
    assert parts.halt.reached()
    assert run.ended is not None
