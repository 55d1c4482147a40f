"""People steer a search: forks, prunes and pins are obeyed whatever the algorithm, and as well by a later session."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.engine.selection import choose
from agent.errors import UsageError
from agent.run.command_queue import INBOX, new_orders, put, steer
from agent.run.commands import HINT_BYTES, Order, Steering, check
from agent.run.events import Added, Ended, Exhausted, Failed, Merged, Started, Steered
from agent.run.run import Run
from agent.run.tree.choice import Choice
from agent.run.tree.evaluation import Evaluation
from agent.run.tree.part import TreePart
from agent.search.linear import Linear
from agent.search.mcts import Mcts
from agent.search.registry import SEARCHES
from sandboxes import Snapshot
from tests.test_tree import Copy, subtree, trees, values
from tests.tiers import examples
from tests.trees import node, tree

orders = st.builds(Order, st.sampled_from(["fork", "prune", "pin", "unpin"]), st.integers(0, 9))


def steered(made, *given):
    """The steering of a tree after these orders."""
    steering = Steering()
    for order in given:
        steering.give(order, made, 0)
    return steering


def chosen(made, steering, search=None, in_flight=()):
    choice = choose(made, steering, search or Mcts(), Random(0), in_flight)
    return choice and choice.node


class TestPruning:
    @pytest.mark.parametrize("name", SEARCHES)
    @settings(max_examples=examples(25, 10))
    @given(made=trees(), data=st.data())
    def test_no_algorithm_selects_what_was_pruned_or_came_there_later(self, name, made, data):
        top = data.draw(st.integers(0, len(made) - 1))
        steering, search = steered(made, Order("prune", top)), SEARCHES[name]()
        for _ in range(6):
            selected = chosen(made, steering, search)
            if selected is None:
                break
            assert selected not in subtree(made, top)
            made.add(node(len(made), data.draw(st.sampled_from([selected, top])), data.draw(values)))


class TestForking:
    def test_it_goes_before_what_the_search_thinks_once_and_brings_its_hint(self):
        made = tree(node(0), node(1, 0, 0.9), node(2, 0, 0.0))
        steering = steered(made, Order("fork", 2, "look at the sign"))
        choice = choose(made, steering, Mcts(), Random(0))
        assert (choice.node, choice.hint, choice.order) == (2, "look at the sign", 0)
        assert [reason.terms for reason in choice.reasons] == [{"order": 0.0}]
        steering.use(choice)
        assert choose(made, steering, Mcts(), Random(0)) == Mcts().select(made, Random(0))

    def test_several_are_obeyed_in_the_order_they_were_given_and_each_by_one_worker(self):
        made = tree(node(0), node(1, 0), node(2, 0))
        steering = steered(made, Order("fork", 2), Order("fork", 1), Order("fork", 2))
        assert [chosen(made, steering, Linear(), range(n)) for n in range(4)] == [2, 1, 2, 2]

    def test_one_whose_node_was_closed_meanwhile_is_passed_over(self):
        made = tree(node(0), node(1, 0))
        steering = steered(made, Order("fork", 1), Order("fork", 0))
        made.close(1)
        assert chosen(made, steering) == 0


class TestPinning:
    @pytest.mark.parametrize("name", SEARCHES)
    @settings(max_examples=examples(25, 10))
    @given(made=trees(), data=st.data())
    def test_every_algorithm_stays_below_the_pin_while_anything_there_is_open(self, name, made, data):
        top = data.draw(st.integers(0, len(made) - 1))
        steering, search = steered(made, Order("pin", top)), SEARCHES[name]()
        for _ in range(6):
            selected = chosen(made, steering, search)
            if made.open_below(top):
                assert selected is None or (selected in subtree(made, top) and made.expandable(selected))
            else:
                assert choose(made, steering, search, Random(0)) == search.select(made, Random(0))
            if selected is None:
                break
            made.add(node(len(made), selected, data.draw(values), terminal=data.draw(st.booleans())))

    @pytest.mark.parametrize("name", SEARCHES)
    def test_every_algorithm_begins_at_a_pinned_leaf(self, name):
        made = tree(node(0), node(1, 0), node(2, 0), node(3, 2))
        assert chosen(made, steered(made, Order("pin", 1)), SEARCHES[name]()) == 1

    def test_the_newest_pin_counts_until_it_is_taken_back(self):
        made = tree(node(0), node(1, 0, 0.9), node(2, 0))
        assert chosen(made, steered(made, Order("pin", 1), Order("pin", 2))) == 2
        assert chosen(made, steered(made, Order("pin", 1), Order("pin", 2), Order("unpin", 2))) == 1
        assert steered(made, Order("pin", 1), Order("unpin", 1)).pin(made) is None

    def test_a_state_that_was_merged_of_two_branches_can_be_pinned(self):
        made = tree(node(0), node(1, 0), node(2, 0), replace(node(3, 1), parents=(1, 2), kind="fuse"))
        assert chosen(made, steered(made, Order("pin", 3))) == 3

    def test_the_choice_says_so_and_speaks_of_the_whole_tree(self):
        made = tree(node(0), node(1, 0), node(2, 0), node(3, 2, 0.5))
        choice = choose(made, steered(made, Order("pin", 2)), Linear(), Random(0))
        assert choice.node == 3
        assert (choice.reasons[0].node, choice.reasons[0].terms) == (2, {"pinned": 1.0})

    @given(trees(), st.data())
    def test_a_subtree_says_of_its_nodes_what_the_whole_tree_says(self, made, data):
        ids = st.integers(0, len(made) - 1)
        top = data.draw(ids)
        kept = made.view("kept", lambda whole: TreePart(whole, top))
        watching = kept.view("copy", Copy)
        for change in data.draw(st.lists(st.sampled_from(CHANGES), max_size=12)):
            CHANGES_BY_NAME[change](made, data.draw(ids), data.draw(ids))
        fresh = made.view("fresh", lambda whole: TreePart(whole, top))
        members = sorted(subtree(made, top))
        for part in (kept, fresh):
            own = range(len(part))
            assert [facts(part, each, own, members) for each in own] == [
                facts(made, each, members, members) for each in members
            ]
            assert [part.depth(inner) for inner in range(len(part))] == [
                made.depth(n) - made.depth(top) for n in members
            ]
            assert part.in_flight == made.pending_below(top)
            assert part.ended_expansions == sum(made.ended(each) for each in members)
            assert members[part.best().id] == max(members, key=lambda each: (made[each].value, -each))
        assert sorted(kept.graph.edges(data="kind")) == sorted(fresh.graph.edges(data="kind"))
        now = kept.view("new copy", Copy)
        assert (watching.own, watching.below) == (now.own, now.below)


def fuse(made, at, other):
    parents = (at,) if at == other else (at, other)
    made.add(replace(node(len(made), at, 0.5), parents=parents, kind="fuse"))


CHANGES_BY_NAME = {
    "add": lambda made, at, other: made.add(node(len(made), at, other / 50, terminal=other % 3 == 0)),
    "fuse": fuse,
    "merge": lambda made, at, other: made.merge(at, other, "same"),
    "fail": lambda made, at, other: made.fail(at, "no", policy_id="b"),
    "conflict": lambda made, at, other: made.fail(at, "conflict", "fuse", other),
    "begin": lambda made, at, other: made.begin(at),
    "measure": lambda made, at, other: made.begin(at, "measure"),
    "measured": lambda made, at, other: made.measure_again(at, Evaluation(0.5)),
    "leave": lambda made, at, other: made.exhaust_for(at, "b"),
    "close": lambda made, at, other: made.close(at),
    "prune": lambda made, at, other: made.prune(at),
}
CHANGES = sorted(CHANGES_BY_NAME)


def facts(made, node_id, own, members):
    """All that a search can ask of a node of a part; its nodes are `own` in `made` and `members` in the whole tree."""
    name = dict(zip(own, members, strict=True)).get
    references = [name(end) for _, end, kind in made.graph.out_edges(node_id, data="kind") if kind == "reference"]
    return (
        [name(child.id) for child in made.children(node_id)],
        {end for end in references if end is not None},
        (made.visits(node_id), round(made.value_sum(node_id), 9), made.value_max(node_id), made.expansions(node_id)),
        (made.pending_at(node_id), made.pending_below(node_id), made.open_below(node_id), made.expandable(node_id)),
        (made.failures(node_id), made.evaluations(node_id), made.exhausted_for(node_id, "b"), made.pruned(node_id)),
        [(a.known, a.reason, a.policy_id, name(a.child)) for a in made.attempts(node_id)],
        [made.begun(node_id, "fuse", other) for other in own],
        (made.begun(node_id), made.begun(node_id, "measure"), made.begun(node_id, policy_id="b")),
        (made[node_id].value, made[node_id].state_hash),
    )


class TestRefusing:
    @pytest.mark.parametrize(
        ("order", "message"),
        [
            (Order("fork", 9), "there is no state 9: this run has states 0 to 5"),
            (Order("prune", -1), "there is no state -1"),
            (Order("fork", 2), "state 2 cannot be expanded: it is solved or was submitted; fork state 1 above it"),
            (Order("pin", 2), "nothing at or below state 2 can be expanded: it is solved"),
            (Order("fork", 5), "state 5 cannot be expanded: the run's gate refused it; fork state 0 above it"),
            (Order("fork", 4), "state 4 cannot be expanded: it was pruned; fork state 0 above it"),
            (Order("pin", 3), "it was pruned; pin state 0 above it"),
            (Order("unpin", 1), "state 1 is not pinned; no state is pinned"),
            (Order("prune", 0), "end the search"),
            (Order("fork", 1, "x" * (HINT_BYTES + 1)), "say it in fewer words"),
        ],
    )
    def test_an_order_that_cannot_be_obeyed_says_why_and_what_can(self, order, message):
        made = tree(node(0), node(1, 0), node(2, 1, 1.0, terminal=True), node(3, 0), node(4, 3))
        made.add(replace(node(5, 0), refused=True))
        made.prune(3)
        with pytest.raises(UsageError, match=message):
            check(order, made, Steering())

    def test_a_pin_that_is_not_there_names_those_that_are(self):
        made = tree(node(0), node(1, 0))
        with pytest.raises(UsageError, match="state 0 is not pinned; pinned: 1"):
            check(Order("unpin", 0), made, steered(made, Order("pin", 1)))


def conclude(number, made, choice):
    """The n-th expansion's end: a child, a duplicate, a failure, or nothing left to propose."""
    at, kind = choice.node, number % 5
    if kind == 3:
        return Merged(at, 0, choice=choice)
    if kind == 2:
        return Failed(at, "no", choice=choice)
    if kind == 4:
        return Exhausted(at)
    return Added(node(len(made), at, (number % 7) / 10, terminal=number % 11 == 10), choice=choice)


def sit(directory, search, given, numbers):
    """A session: expansion n is selected after the orders that were given by then; returns the choices."""
    made = []
    with Run.open(directory) as run:
        if not len(run.tree):
            run.record(Added(node(0)))
        for number in numbers:
            for order in given.get(number, ()):
                if order.node < len(run.tree):
                    run.record(Steered(order))
            choice = choose(run.tree, run.steering, search, Random(number))
            made.append(choice)
            if choice is not None:
                run.record(conclude(number, run.tree, choice))
    return made


class TestSittings:
    @pytest.mark.parametrize("name", SEARCHES)
    @settings(max_examples=8, deadline=None)
    @given(
        given=st.dictionaries(st.integers(0, 19), st.lists(orders, max_size=2), max_size=6), split=st.integers(0, 20)
    )
    def test_two_sessions_equal_one(self, name, given, split, tmp_path_factory):
        one, two = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("two")
        whole = sit(one, SEARCHES[name](), given, range(20))
        parts = sit(two, SEARCHES[name](), given, range(split)) + sit(two, SEARCHES[name](), given, range(split, 20))
        assert parts == whole


@pytest.fixture
def stopped(tmp_path):
    """A run of four open nodes that nobody holds."""
    with Run.open(tmp_path / "run") as run:
        run.record(Started({}, {}, Snapshot("s0", "d0")))
        for each in (node(0), node(1, 0, 0.5), node(2, 1, 0.25), node(3, 0)):
            run.record(Added(each))
    return tmp_path / "run"


class TestGiving:
    def test_a_stopped_run_has_it_in_its_journal_at_once(self, stopped):
        assert steer(stopped, Order("fork", 2, "try harder")) == "recorded"
        with Run.read(stopped) as run:
            assert list(run.steering.forks.values()) == [Order("fork", 2, "try harder")]

    def test_a_run_that_is_held_finds_it_in_its_inbox_once(self, stopped):
        with Run.open(stopped) as run:
            assert steer(stopped, Order("pin", 2)) == "queued"
            assert run.steering.pins == []
            for event in new_orders(run):
                run.record(event)
            assert list(new_orders(run)) == []
        with Run.open(stopped) as run:
            assert run.steering.pins == [2]
            assert list(new_orders(run)) == []

    def test_what_nobody_took_over_comes_before_an_order_to_the_stopped_run(self, stopped):
        put(stopped, Order("pin", 1))
        assert steer(stopped, Order("unpin", 1)) == "recorded"
        with Run.open(stopped) as run:
            assert run.steering.pins == []
            assert list(new_orders(run)) == []

    def test_a_solved_run_is_not_steered(self, stopped):
        with Run.open(stopped) as run:
            run.record(Ended("solved", "SOLVED"))
        with pytest.raises(UsageError, match="is solved"):
            steer(stopped, Order("fork", 1))

    def test_an_order_that_is_refused_leaves_no_trace(self, stopped):
        before = (stopped / "journal.jsonl").read_bytes()
        with Run.open(stopped), pytest.raises(UsageError):
            steer(stopped, Order("fork", 7))
        with pytest.raises(UsageError):
            steer(stopped, Order("fork", 7))
        assert (stopped / "journal.jsonl").read_bytes() == before
        assert not (stopped / INBOX).exists()

    @settings(max_examples=examples(60, 20), deadline=None)
    @given(data=st.data())
    def test_a_writer_and_a_reader_killed_at_any_byte_lose_no_order_and_repeat_none(self, data, tmp_path_factory):
        run_dir = tmp_path_factory.mktemp("run")
        given = [Order("fork", 0, f"hint {n} \N{SNOWMAN}") for n in range(4)]
        with Run.open(run_dir) as run:
            run.record(Added(node(0)))
        for order in given[:3]:
            put(run_dir, order)
        whole = (run_dir / INBOX).read_bytes()
        cut = data.draw(st.just(len(whole) - 1) | st.integers(0, len(whole)))
        (run_dir / INBOX).write_bytes(whole[:cut])
        kept = given[: (run_dir / INBOX).read_bytes().count(b"\n")]
        with Run.open(run_dir) as run:
            for _, event in zip(range(data.draw(st.just(3) | st.integers(0, 2))), new_orders(run), strict=False):
                run.record(event)
        journal = (run_dir / "journal.jsonl").read_bytes()
        (run_dir / "journal.jsonl").write_bytes(journal[: len(journal) - data.draw(st.just(0) | st.integers(0, 9))])
        put(run_dir, given[3])
        with Run.open(run_dir) as run:
            if not len(run.tree):
                run.record(Added(node(0)))
            for event in new_orders(run):
                run.record(event)
            assert list(run.steering.forks.values()) == [*kept, given[3]]

    def test_lines_that_are_no_orders_are_passed_over(self, stopped):
        (stopped / INBOX).write_bytes(b'nonsense\n{"kind": "noted"}\n')
        put(stopped, Order("fork", 99))
        put(stopped, Order("fork", 1))
        with Run.open(stopped) as run:
            assert [event.order.node for event in new_orders(run)] == [1]


def test_an_order_is_done_when_its_expansion_ends_however_it_ends(tmp_path):
    choice = Choice(0, order=0)
    for end in (Added(node(1, 0), choice=choice), Merged(0, 0, choice=choice), Failed(0, "no", choice=choice)):
        with Run.open(tmp_path / end.kind) as run:
            run.record(Added(node(0)))
            run.record(Steered(Order("fork", 0)))
            assert list(run.steering.waiting(run.tree))
            run.record(end)
            assert not list(run.steering.waiting(run.tree))
