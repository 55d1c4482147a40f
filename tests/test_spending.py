"""What each line of work cost in seconds, from the events of its run."""

from __future__ import annotations

from agent.budget import Usage
from agent.run.events import Added, Begun, Spent
from agent.run.run import Run
from agent.run.schedule import ScheduleEntry
from agent.run.spending import activity_of, seconds_of_lines
from agent.run.tree.choice import Choice
from tests.trees import node


def recorded(run, number, parent, begun_s, ended_s):
    """Record a state that an expansion made from `begun_s` to `ended_s`, while others may have been in flight."""
    index = run.next_index((parent, "expand", None, ""))
    run.record(Begun(Choice(parent), number, index, elapsed_s=begun_s))
    return Added(node(number + 1, parent), ended_s, Choice(parent), ScheduleEntry(number, number + 1, 0))


def branched(path, *times):
    """A run with state 1 below the root and states 2 and 3 below state 1; these times are those of 1, 2 and 3."""
    with Run.open(path) as run:
        run.record(Added(node(0)))
        run.record(recorded(run, 0, 0, *times[0]))
        second, third = recorded(run, 1, 1, *times[1]), recorded(run, 2, 1, *times[2])
        run.record(second)
        run.record(third)
        return seconds_of_lines(run.node_seconds, run.rollouts())


def test_a_line_takes_the_seconds_of_its_own_states_also_where_lines_run_beside_one_another(tmp_path):
    assert branched(tmp_path / "run", (0.0, 4.0), (4.0, 9.0), (5.0, 12.0)) == [4.0 + 5.0, 7.0]


def test_the_seconds_of_a_line_are_unknown_where_an_earlier_version_did_not_record_when_it_began(tmp_path):
    assert branched(tmp_path / "run", (None, 4.0), (4.0, 9.0), (5.0, 12.0)) == [None, 7.0]


def test_a_call_that_fails_is_counted_for_what_it_was_asked_for():
    usage = Usage(model_calls=1, unpriced_calls=1)
    assert [activity_of(Spent(usage, what)) for what in ("policy", "value", "judge", "model", "tests")] == [
        "propose",
        "judge",
        "choose",
        "propose",
        "measure",
    ]
