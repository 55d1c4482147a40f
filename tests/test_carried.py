"""What is noted at nodes and put together over subtrees: right at any time, whatever cuts it short."""

from __future__ import annotations

import sys

from hypothesis import given, settings
from hypothesis import strategies as st

from agent.run.tree import aggregates
from agent.run.tree.aggregates import SubtreeAggregate
from agent.run.tree.graph import StateGraph

parents = st.lists(st.integers(0, 10**6), max_size=40)
notes = st.lists(st.tuples(st.integers(0, 10**6), st.integers(-9, 9), st.booleans()), max_size=40)
"""At which node, how much, and whether its total is asked for."""


def graph_of(parents):
    """Node n + 1 below one of those before it, mostly below one of the last, so that it is deep."""
    made = StateGraph()
    made.add(())
    for number, parent in enumerate(parents):
        made.add((max(0, number - parent % 3) if parent % 5 else parent % (number + 1),))
    return made


def both(one, other):
    return one[0] + other[0], max(one[1], other[1])


@settings(max_examples=300)
@given(parents, notes)
def test_a_total_is_that_of_the_subtree_whenever_it_is_asked_for(parents, given):
    made = graph_of(parents)
    totals, plain = SubtreeAggregate(made, (0, 0), both), [(0, 0)] * (len(parents) + 1)
    for at, amount, ask in given:
        at %= len(plain)
        totals.add(at, (amount, abs(amount)))
        for above in made.path(at):
            plain[above] = both(plain[above], (amount, abs(amount)))
        if ask:
            assert totals[at] == plain[at]
    assert [totals[n] for n in range(len(plain))] == plain


class Signal(KeyboardInterrupt):
    """Comes at a line of `agent.run.tree.aggregates`."""


def interrupted(totals, node, at_line):
    """Ask for a total; a signal comes before the line of that number that is run. Whether one came."""
    lines = 0

    def trace(frame, event, arg):
        nonlocal lines
        if frame.f_code.co_filename != aggregates.__file__:
            return None
        lines += event == "line"
        if event == "line" and lines == at_line:
            raise Signal
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        totals[node]
    except Signal:
        return True
    finally:
        sys.settrace(before)
    return False


def test_a_signal_at_any_line_loses_nothing_and_counts_nothing_twice():
    """Nodes 0 to 6 are a chain; node 7 is beside node 5."""
    at_line = 0
    came = True
    while came:
        at_line += 1
        totals, plain = SubtreeAggregate(graph_of([5, 5, 5, 5, 5, 5, 7]), (0, 0), both), [(0, 0)] * 8
        for at, amount in ((6, 1), (7, 2), (3, 3), (0, 4)):
            totals.add(at, (amount, amount))
        came = interrupted(totals, 1, at_line)
        totals.add(5, (5, 5))
        for at, amount in ((6, 1), (7, 2), (3, 3), (0, 4), (5, 5)):
            for above in totals._graph.path(at):
                plain[above] = both(plain[above], (amount, amount))
        assert [totals[n] for n in range(8)] == plain, f"a signal before line {at_line}"
    assert at_line > 40
