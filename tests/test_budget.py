"""A budget is never overshot by workers that reserve before they spend."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.budget import Budget, BudgetSpent, Stop, Usage


@given(limit=st.integers(1, 50), sizes=st.lists(st.integers(1, 20), max_size=40))
def test_workers_together_cannot_overshoot(limit, sizes):
    budget, spent = Budget(max_tokens=limit), []

    def work(size):
        with suppress(BudgetSpent), budget.reserve(Usage(tokens_in=size)) as settle:
            settle(Usage(tokens_in=size))
            spent.append(size)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, sizes))
    assert sum(spent) <= limit


def test_what_was_reserved_and_not_used_is_free_again():
    budget = Budget(max_calls=1)
    with budget.reserve(Usage(model_calls=1)), pytest.raises(BudgetSpent):
        budget.reserve(Usage(model_calls=1)).__enter__()
    with budget.reserve(Usage(model_calls=1)):
        pass


def test_seconds_of_earlier_sittings_count():
    clock = [100.0]
    budget = Budget(max_seconds=10, now=lambda: clock[0])
    budget.start(spent=Usage(), nodes=0, elapsed_s=7.0)
    assert budget.stop() is None
    clock[0] += 3
    assert budget.stop() is Stop.TIME


def test_nodes_in_flight_count_against_the_limit():
    budget = Budget(max_nodes=3)
    budget.start(spent=Usage(), nodes=2, elapsed_s=0)
    assert budget.stop(nodes=1) is None
    assert budget.stop(nodes=2) is Stop.NODES


def test_an_unpriced_call_spends_no_dollars_and_does_not_end_the_run():
    budget = Budget(max_usd=1.0)
    budget.settle(Usage(model_calls=1, unpriced_calls=1))
    assert budget.stop() is None


@given(st.builds(Usage, *[st.integers(0, 9)] * 4), st.builds(Usage, *[st.integers(0, 9)] * 4))
def test_usage_adds_and_subtracts_by_field(a, b):
    assert (a + b) - b == a
