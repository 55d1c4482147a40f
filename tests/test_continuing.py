"""Lines of work: which conversation waits to be continued, and which has ended."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.run.tree.evaluation import Evaluation
from agent.run.tree.node import Node, Step
from agent.run.tree.tree import Tree
from agent.search.continuing import OpenLines, continued, continues
from tests.trees import node, tree


def told(id: int, parent: int, **changes: object) -> Node:
    """A state that a conversation came to."""
    return replace(node(id, parent), steps=(Step((), (), "said"),), **changes)


def waits(made: Tree) -> int | None:
    """The state from which the next turns are taken."""
    choice = continued(made)
    assert choice is None or choice.continues
    return choice and choice.node


def ended(made: Tree) -> list[int]:
    """Where lines have ended."""
    return [*made.view(OpenLines, OpenLines).ended]


def test_a_conversation_continues_from_its_last_state_and_the_one_that_began_first_comes_first():
    made = tree(node(0), told(1, 0), told(2, 0), told(3, 1))
    assert waits(made) == 2
    made.begin(2)
    assert waits(made) == 3
    made.begin(3)
    assert waits(made) is None
    made.end(2)
    assert (waits(made), ended(made)) == (2, [])


def test_single_edits_and_strategies_are_no_lines():
    made = tree(node(0), node(1, 0), told(2, 0, kind="strategy"))
    assert (waits(made), ended(made)) == (None, [])


@pytest.mark.parametrize(
    "changes",
    [
        {"terminal": True, "line_end": "submitted"},
        {"line_end": "submitted", "kind": "solution"},
        {"refused": True},
        {"evaluation": Evaluation(0.5, parts={"abort": 1.0})},
    ],
    ids=["terminal", "submitted and to be repaired", "a gate", "a judge"],
)
def test_a_line_that_has_ended_is_not_continued(changes: dict[str, object]):
    made = tree(node(0), told(1, 0), told(2, 1, **changes))
    assert (waits(made), ended(made)) == (None, [2])


def test_a_turn_that_fails_is_tried_once_more_and_then_the_line_has_ended():
    made = tree(node(0), told(1, 0))
    made.fail(1, "no answer")
    assert (waits(made), ended(made)) == (1, [])
    made.fail(1, "no answer")
    assert (waits(made), ended(made)) == (None, [1])


def test_a_line_that_branches_off_where_another_ended_takes_its_place():
    made = tree(node(0), told(1, 0, kind="solution", line_end="submitted"), told(2, 1, kind="debug"))
    assert (waits(made), ended(made)) == (2, [])


def test_a_state_continues_the_line_of_the_state_before_unless_that_had_ended_or_went_on_elsewhere():
    made = tree(node(0), told(1, 0), told(2, 1), told(3, 1), told(4, 2, line_end="submitted"), told(5, 4), node(6, 5))
    assert [n for n in range(len(made)) if continues(made, n)] == [2, 4]
    typed = tree(node(0), told(1, 0, kind="strategy"), told(2, 1, kind="solution"), told(3, 2, kind="debug"))
    assert not any(continues(typed, n) for n in range(len(typed)))
