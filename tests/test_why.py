"""A person sees why: every selection on the way to a node, by the numbers that were compared when it was made."""

from __future__ import annotations

import io
import json
from dataclasses import asdict, replace
from random import Random

import pytest
from rich.console import Console

from agent.analysis.report.tree import draw
from agent.analysis.report.why import explain
from agent.engine.selection import choose
from agent.errors import UsageError
from agent.measure import SuiteReport
from agent.run.commands import Order, Steering
from agent.run.events import Added, Failed, Merged, Remeasured
from agent.run.run import Run
from agent.run.tree.choice import Choice, Reason
from agent.run.tree.evaluation import Evaluation
from agent.search.mcts import Mcts
from tests.trees import node, tree


def because(at, score, rival, rival_score, among):
    return Choice(at, reasons=(Reason(at, {"score": score, "mean": 0.5}, among, rival, {"score": rival_score}),))


EVENTS = [
    Added(node(0)),
    Added(node(1, 0), choice=because(0, 0.1, None, 0.0, 1)),
    Added(node(2, 0), choice=because(0, 0.2, 1, 0.15, 2)),
    Failed(2, "the fork is gone", choice=because(2, 0.3, 0, 0.2, 3)),
    Merged(1, 2, "x -> y", choice=because(1, 0.4, 2, 0.3, 3)),
    Added(node(3, 2), choice=because(2, 0.75, 1, 0.625, 3)),
]


def text(why):
    out = io.StringIO()
    Console(file=out, width=200).print(why.as_text())
    return [" ".join(line.split()) for line in out.getvalue().splitlines()]


def test_every_selection_of_the_path_is_told_and_no_other():
    why = explain(EVENTS, 3)
    assert why.path == (0, 2, 3)
    assert [(s.number, s.expanded, s.led_to) for s in why.selections] == [(2, 0, 2), (5, 2, 3)]
    assert [s.choice for s in why.selections] == [EVENTS[2].choice, EVENTS[5].choice]


def test_a_table_compares_what_was_taken_with_the_best_rival():
    said = text(explain(EVENTS, 3))
    assert "state among score mean" in said
    assert "taken 2 3 0.75 0.5" in said
    assert "rival 1 0.625" in said


def test_duplicates_and_failures_are_told_where_they_happened():
    why = explain(EVENTS, 2)
    assert [(s.number, s.expanded, s.label) for s in why.merged] == [(4, 1, "x -> y")]
    assert [(s.number, s.label) for s in why.failed] == [(3, "the fork is gone")]
    assert (explain(EVENTS, 1).merged, explain(EVENTS, 1).failed) == ((), ())


def test_a_state_of_several_parents_stands_below_one_and_names_the_others():
    fused = replace(node(4, 2), parents=(2, 1), kind="fuse", label="fuse 2 + 1")
    made = tree(node(0), node(1, 0), node(2, 0), node(3, 2), fused)
    made.merge(1, 3)
    made.merge(0, 3)
    made.merge(0, 4)
    out = io.StringIO()
    Console(file=out, width=200).print(draw(made, made.best().id))
    three, four = out.getvalue().splitlines()[3:5]
    assert "[also reached from 1, 0]" in three
    assert "[also reached from 0] fuse 2 + 1" in four


def test_repeated_measurements_are_told():
    again = Remeasured(1, Evaluation(0.5), SuiteReport(), choice=Choice(1, act="measure"))
    why = explain([Added(node(0)), Added(node(1, 0)), again], 1)
    assert [s.number for s in why.measured] == [2]
    assert "selection 2: state 1 was measured again" in text(why)


def test_the_object_holds_all_that_the_text_says():
    told = json.loads(json.dumps(asdict(explain(EVENTS, 3))))
    assert told["path"] == [0, 2, 3]
    assert told["selections"][1]["choice"]["reasons"] == [
        {"node": 2, "terms": {"score": 0.75, "mean": 0.5}, "among": 3, "rival": 1, "rival_terms": {"score": 0.625}}
    ]


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        (None, "the journal does not say why: an older version of ramify wrote it"),
        (Choice(0), "the search gave no reasons"),
        (Choice(0, order=4, hint="try it"), "asked for by a person (order 4): try it"),
        (Choice(0, act="fuse", other=2), "selection 1: state 0 was fused with state 2 and made state 1"),
    ],
)
def test_a_choice_without_numbers_says_so(choice, said):
    assert said in text(explain([Added(node(0)), Added(node(1, 0), choice=choice)], 1))


def test_what_a_node_is_worth_is_told_term_by_term_with_what_was_said_of_it():
    judged = Evaluation(0.25, parts={"tests": 0.1, "judge": 0.6}, notes="Still failing: a\nA reviewer doubts it.")
    why = explain([Added(node(0)), Added(replace(node(1, 0), evaluation=judged))], 1)
    assert text(why)[1:4] == ["worth 0.25: tests 0.1, judge 0.6", "Still failing: a", "A reviewer doubts it."]
    assert asdict(why)["worth"]["parts"] == {"tests": 0.1, "judge": 0.6}


def test_what_others_wrote_orders_the_terminal_nothing_and_is_no_markup():
    odd = "\x1b[2J[bold]\u202e"
    worth = Evaluation(0.25, parts={odd: 0.1}, notes=f"one {odd}\ntwo")
    reason = Reason(0, {odd: 0.5}, 1, None, {})
    events = [
        Added(node(0)),
        Added(
            replace(node(1, 0), label=f"label {odd}", evaluation=worth),
            choice=Choice(0, reasons=(reason,), because=odd),
        ),
        Failed(1, f"reason {odd}", choice=Choice(1, order=2, hint=odd)),
    ]
    said = text(explain(events, 1))
    shown = "\\x1b[2J[bold]\\u202e"
    assert {f"one {shown}", "two", shown} <= set(said)
    assert sum(shown in line for line in said) == 7
    assert "\x1b" not in "".join(said)


def test_the_base_state_was_selected_by_nothing():
    assert "the base state: no selection led to it" in text(explain(EVENTS, 0))


def test_a_node_that_is_not_there_is_named_with_those_that_are():
    with pytest.raises(UsageError, match=r"there is no state 4: this run has states 0 to 3"):
        explain(EVENTS, 4)
    with pytest.raises(UsageError, match=r"there is no state 0: this run has no states yet"):
        explain([], 0)


def test_what_a_search_says_is_what_the_journal_tells_later(tmp_path):
    search, choices = Mcts(), []
    with Run.open(tmp_path) as run:
        run.record(Added(node(0)))
        for number in range(12):
            choices.append(search.select(run.tree, Random(number)))
            run.record(Added(node(len(run.tree), choices[-1].node, number / 20), choice=choices[-1]))
        path = [each.id for each in run.tree.path(12)]
        told = explain(run.journal.events(), 12)
    assert any(choice.reasons for choice in choices)
    assert [s.choice for s in told.selections] == [choices[each - 1] for each in path[1:]]


def test_a_pin_is_told_before_what_the_search_compared():
    made, steering = tree(node(0), node(1, 0), node(2, 1, 0.5)), Steering()
    steering.give(Order("pin", 1), made, 0)
    choice = choose(made, steering, Mcts(), Random(0))
    said = text(explain([*(Added(each) for each in made), Added(node(3, choice.node), choice=choice)], 3))
    assert "a person pinned state 1: no other was considered" in said
    assert any(line.startswith(f"taken {choice.node} ") for line in said)
