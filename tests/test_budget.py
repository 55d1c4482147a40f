"""A budget is never overshot by workers that reserve before they spend."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.budget import Budget, BudgetSpent, Stop, Usage


@given(limit=st.integers(1, 50), sizes=st.lists(st.integers(1, 20), max_size=40))
def test_workers_together_cannot_overshoot(limit, sizes):
    budget, spent = Budget(max_tokens=limit), []

    def work(size):
        with suppress(BudgetSpent), budget.reserve(Usage(tokens_in=size)) as charge:
            charge(Usage(tokens_in=size))
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


def test_seconds_of_earlier_sessions_count():
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
    budget.charge(Usage(model_calls=1, unpriced_calls=1))
    assert budget.stop() is None


@given(st.builds(Usage, *[st.integers(0, 9)] * 4), st.builds(Usage, *[st.integers(0, 9)] * 4))
def test_usage_adds_and_subtracts_by_field(a, b):
    assert (a + b) - b == a


CALLS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=24)
"""Tokens as they are estimated, and as they turn out."""


def make_calls(budgets, calls, workers=4):
    """Workers make calls on behalf of these budgets in turn; the calls that were let through."""
    made = []

    def make(number, call):
        estimate, used = call
        budget = budgets[number % len(budgets)]
        with suppress(BudgetSpent), budget.reserve(Usage(model_calls=1, tokens_in=estimate)) as charge:
            charge(Usage(model_calls=1, tokens_in=used, cost_usd=float(used)))
            made.append(call)

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(make, range(len(calls)), calls))
    return made


@settings(max_examples=60, deadline=None)
@given(limit=st.integers(0, 20), calls=CALLS)
def test_exactly_so_many_calls_are_made_as_the_limit_allows(limit, calls):
    assert len(make_calls([Budget(max_calls=limit)], calls)) == min(limit, len(calls))


@settings(max_examples=60, deadline=None)
@given(limit=st.integers(1, 60), calls=CALLS)
def test_tokens_exceed_their_limit_by_no_more_than_estimates_were_too_low(limit, calls):
    made = make_calls([Budget(max_tokens=limit)], calls)
    assert sum(used for _, used in made) <= limit + sum(max(0, used - estimate) for estimate, used in made)


@settings(max_examples=60, deadline=None)
@given(limit=st.integers(0, 20), own=st.integers(0, 20), calls=CALLS)
def test_the_runs_of_a_batch_hold_the_limits_of_the_batch_and_each_its_own(limit, own, calls):
    whole = Budget(max_calls=limit)
    runs = [Budget(max_calls=own, parent=whole) for _ in range(3)]
    made = make_calls(runs, calls)
    assert len(made) == min(limit, sum(min(own, len(calls[n::3])) for n in range(3)))


def test_what_the_runs_of_a_batch_spent_in_earlier_sessions_counts_once():
    whole = Budget(max_calls=3, max_nodes=9)
    whole.start(spent=Usage(model_calls=2), nodes=8, elapsed_s=0.0)
    run, other = Budget(max_calls=2, parent=whole), Budget(parent=whole)
    run.start(spent=Usage(model_calls=2), nodes=8, elapsed_s=50.0)
    assert (run.stop(), other.stop()) == (Stop.CALLS, None)
    other.charge(Usage(model_calls=1))
    assert (whole.stop(), other.stop(), run.stop(), other.used_up()) == (Stop.CALLS, Stop.BATCH, Stop.CALLS, True)
    other.count_node()
    assert whole.stop() is Stop.NODES
    assert whole.spent.model_calls == 3


def test_a_run_that_the_batch_refuses_holds_nothing_back():
    whole = Budget(max_calls=1)
    run = Budget(max_calls=1, parent=whole)
    with whole.reserve(Usage(model_calls=1)), pytest.raises(BudgetSpent) as refused:
        run.reserve(Usage(model_calls=1)).__enter__()
    assert refused.value.stop is Stop.BATCH
    with run.reserve(Usage(model_calls=1)) as charge:
        charge(Usage(model_calls=1))
    assert run.spent == whole.spent == Usage(model_calls=1)


def test_what_a_run_is_refused_is_not_held_back_from_the_batch():
    whole = Budget(max_calls=1)
    with pytest.raises(BudgetSpent), Budget(max_calls=0, parent=whole).reserve(Usage(model_calls=1)):
        pass
    with whole.reserve(Usage(model_calls=1)):
        pass


def test_a_reservation_ends_when_it_is_charged():
    budget = Budget(max_tokens=10)
    with budget.reserve(Usage(tokens_in=10)) as charge:
        charge(Usage(tokens_in=4))
        with budget.reserve(Usage(tokens_in=6)):
            pass


def test_a_call_needs_no_room_for_another_measurement_but_some_dollars():
    budget = Budget(max_measurements=1, max_usd=1.0)
    with budget.reserve(Usage(measurements=1)), budget.reserve(Usage(model_calls=1)) as charge:
        charge(Usage(model_calls=1, cost_usd=1.0))
    with pytest.raises(BudgetSpent) as refused, budget.reserve(Usage(model_calls=1)):
        pass
    assert refused.value.stop is Stop.COST


def test_the_share_that_is_used_is_that_of_the_limit_nearest_to_its_end():
    clock = iter([0.0, 0.0, 3.0, 3.0]).__next__
    budget = Budget(max_tokens=10, max_seconds=10.0, max_usd=0.0, parent=Budget(max_tokens=1), now=clock)
    budget.start(spent=Usage(tokens_in=2), nodes=5, elapsed_s=0.0)
    assert budget.used_share() == 0.3
    budget.charge(Usage(tokens_out=3))
    assert budget.used_share() == 0.5
    assert Budget().used_share() == 0.0
