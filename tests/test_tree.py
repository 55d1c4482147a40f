"""Counts are derived from facts, whatever order the facts came in."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from agent.run.tree.evaluation import Evaluation
from agent.run.tree.node import Attempt
from tests.trees import node, tree

values = st.floats(0, 1, allow_nan=False)


@st.composite
def trees(draw: st.DrawFn):
    size = draw(st.integers(1, 40))
    nodes = [node(0, value=draw(values))]
    nodes += [node(i, draw(st.integers(0, i - 1)), draw(values), terminal=draw(st.booleans())) for i in range(1, size)]
    made = tree(*nodes)
    for closed in draw(st.sets(st.integers(0, size - 1))):
        made.close(closed)
    return made


def subtree(made, node_id):
    return [node_id, *(below for child in made.children(node_id) for below in subtree(made, child.id))]


@given(trees())
def test_a_node_counts_its_subtree(made):
    for each in made:
        below = subtree(made, each.id)
        assert made.visits(each.id) == len(below)
        assert abs(made.value_sum(each.id) - sum(made[n].value for n in below)) < 1e-9
        assert made.value_max(each.id) == max(made[n].value for n in below)
        assert made.open_below(each.id) == sum(made.expandable(n) for n in below)


@given(trees(), st.data())
def test_work_in_flight_is_counted_up_to_the_root_and_taken_back(made, data):
    before = [made.expansions(n.id) for n in made]
    begun = data.draw(st.lists(st.integers(0, len(made) - 1), max_size=8))
    for node_id in begun:
        made.begin(node_id)
    for each in made:
        assert made.pending_below(each.id) == sum(n in subtree(made, each.id) for n in begun)
    for node_id in begun:
        made.end(node_id)
    assert made.in_flight == 0
    assert [made.expansions(n.id) for n in made] == before


class Copy:
    """A view that keeps all that a tree can be asked about its nodes."""

    def __init__(self, made):
        self.made, self.own, self.below = made, {}, {}

    def changed(self, node_id):
        made = self.made
        measured = made.evaluations(node_id), made.begun(node_id, "measure")
        self.own[node_id] = (made.expansions(node_id), made.expandable(node_id), made.attempts(node_id), *measured)

    def changed_below(self, node_id):
        made = self.made
        for each in made.structure.ancestors([node_id]):
            counts = (made.visits(each), made.value_sum(each))
            self.below[each] = (*counts, made.open_below(each), made.pending_below(each))


@given(trees(), st.data())
def test_a_view_that_was_kept_equals_one_that_is_made_now(made, data):
    kept = made.view("kept", Copy)
    ids = st.integers(0, len(made) - 1)
    for change in data.draw(
        st.lists(st.sampled_from(["add", "merge", "fail", "close", "begin", "prune", "measure_again"]), max_size=12)
    ):
        at = data.draw(ids)
        if change == "add":
            made.add(node(len(made), at, data.draw(values)))
        elif change == "merge":
            made.merge(at, data.draw(ids))
        elif change == "measure_again":
            made.measure_again(at, Evaluation(0.5))
        else:
            getattr(made, change)(at)
    assert made.view("kept", Copy) is kept
    fresh = made.view("fresh", Copy)
    assert (kept.own, kept.below) == (fresh.own, fresh.below)


@given(trees(), st.data())
def test_what_was_pruned_is_closed_now_and_later_and_nothing_else_is(made, data):
    ids = st.integers(0, len(made) - 1)
    open_before = {n.id for n in made if made.expandable(n.id)}
    top = data.draw(ids)
    made.prune(top)
    below = set(subtree(made, top))
    assert {n.id for n in made if made.expandable(n.id)} == open_before - below
    assert {n.id for n in made if made.pruned(n.id)} == below
    for parent in data.draw(st.lists(ids, max_size=4)):
        made.add(node(len(made), parent, data.draw(values)))
        assert made.expandable(len(made) - 1) == (parent not in below)
    for each in made:
        assert made.open_below(each.id) == sum(made.expandable(n) for n in subtree(made, each.id))


def test_a_path_runs_from_the_root_along_edit_parents():
    made = tree(node(0), node(1, 0), node(2, 1), node(3, 0))
    made.merge(3, 2)
    assert [n.id for n in made.path(2)] == [0, 1, 2]
    assert made.depth(2) == 2


def test_two_actions_that_lead_to_one_state_are_one_node_with_two_edges():
    made = tree(node(0), node(1, 0), node(2, 0))
    made.merge(2, 1)
    assert sorted(made.graph.predecessors(1)) == [0, 2]
    assert [n.id for n in made.children(2)] == []
    assert made.expansions(2) == 1


def test_a_state_is_found_by_its_digest():
    made = tree(node(0), node(1, 0, state="abc"))
    assert made.with_state("abc").id == 1
    assert made.with_state("xyz") is None


def test_the_best_node_is_the_oldest_among_equals():
    assert tree(node(0), node(1, 0, 0.5), node(2, 0, 0.5)).best().id == 1


@given(trees(), st.data())
def test_a_state_that_was_known_never_closes_a_circle(made, data):
    ids = st.integers(0, len(made) - 1)
    pairs = data.draw(st.lists(st.tuples(ids, ids), max_size=20))
    for parent, existing in pairs:
        made.merge(parent, existing)
    graph = made.graph
    assert nx.is_directed_acyclic_graph(graph)
    for start, end in pairs:
        assert graph.has_edge(start, end) or nx.has_path(graph, end, start)
    for each in made:
        assert [kind for *_, kind in graph.in_edges(each.id, data="kind")].count("edit") == len(each.parents)


def test_a_merge_of_two_branches_counts_for_the_first_and_refers_to_the_second():
    made = tree(node(0), node(1, 0, 0.5), node(2, 0, 0.5))
    made.begin(1, "fuse", 2)
    made.add(replace(node(3, 1, 0.75), parents=(1, 2), kind="fuse"))
    made.end(1, "fuse", 2)
    assert dict(made.graph[1][3], other=made.graph[2][3]["kind"]) == {"kind": "edit", "other": "reference"}
    assert [made.visits(n) for n in range(4)] == [4, 2, 1, 1]
    assert [made.value_sum(n) for n in range(3)] == [1.75, 1.25, 0.5]
    assert (made.expansions(1), made.attempts(1), made.begun(1, "fuse", 2)) == (0, (), 1)
    assert [n.id for n in made.path(3)] == [0, 1, 3]


def test_branches_that_cannot_be_merged_are_known_and_no_failure_of_the_node():
    made = tree(node(0), node(1, 0), node(2, 0))
    made.fail(1, "conflict in a.py", "fuse", 2)
    assert (made.begun(1, "fuse", 2), made.begun(1, "fuse", 0)) == (1, 0)
    assert (made.failures(1), made.attempts(1), made.expansions(1)) == ((), (), 0)


def test_a_state_that_is_measured_again_keeps_its_value():
    made = tree(node(0, value=0.5))
    made.begin(0, "measure")
    assert (made.begun(0, "measure"), made.expansions(0), made.pending_below(0)) == (1, 0, 1)
    made.measure_again(0, Evaluation(0.25))
    made.end(0, "measure")
    assert [e.value for e in made.evaluations(0)] == [0.5, 0.25]
    assert (made[0].value, made.value_sum(0), made.begun(0, "measure")) == (0.5, 0.5, 1)


def test_what_came_of_each_expansion_is_told_in_order():
    made = tree(node(0), node(1, 0))
    made.fail(0, "unreadable", policy_id="b")
    made.merge(0, 1, "the same", policy_id="b")
    assert made.attempts(0) == (
        Attempt(1),
        Attempt(reason="unreadable", policy_id="b"),
        Attempt(1, known=True, label="the same", policy_id="b"),
    )
    assert (made.begun(0), made.begun(0, policy_id="b"), made.expansions(0)) == (1, 2, 3)


def test_a_state_that_the_gate_refused_is_never_expanded():
    made = tree(node(0), replace(node(1, 0), refused=True))
    assert (made.expandable(1), made.open_below(1), made.open_below(0)) == (False, 0, 1)


@given(trees(), st.data())
def test_a_common_ancestor_is_the_last_state_that_two_paths_share(made, data):
    ids = st.integers(0, len(made) - 1)
    one, other = data.draw(ids), data.draw(ids)
    shared = [n for n in made.path(one) if n in made.path(other)]
    assert made.common_ancestor(one, other) == shared[-1]


def test_a_proposal_that_was_merged_is_known_from_then_on():
    made = tree(node(0), node(1, 0))
    made.merge(0, 1, proposal="p")
    assert (made.proposals.child_for(0, "p"), made.proposals.child_for(1, "p"), made.proposals.child_for(0, "")) == (
        1,
        None,
        None,
    )
