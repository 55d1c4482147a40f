"""A run is its journal: whatever happens to the process, what was recorded is there again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.actions import Edit, Invalid, Observation, Replacement, Submit
from agent.budget import Usage
from agent.errors import JournalError
from agent.measure import Outcome, SuiteReport
from agent.run.commands import Order
from agent.run.events import Added, Begun, Ended, Exhausted, Failed, Merged, Noted, Remeasured, Spent, Started, Steered
from agent.run.journal import Journal, decode, encode
from agent.run.run import Run
from agent.run.schedule import ScheduleEntry
from agent.run.tree.choice import Choice, Reason
from agent.run.tree.evaluation import Evaluation
from agent.run.tree.node import Node, Step
from sandboxes import Snapshot
from tests.trees import node

CALLS = (
    Edit("a.py", "x\r\n", "\udcff", 3),
    Edit("a.py", "x", "y", more=(Replacement("p", "q", replace_all=True),)),
    Invalid("look", "{broken", "there is no tool 'look'"),
    Submit("done", ("t::a: it asserts the old text",)),
)
EVENTS = [
    Started({"id": "t"}, {"seed": 1}, Snapshot("s0", "d0")),
    Added(node(0), elapsed_s=1.0),
    Added(
        Node(
            1,
            (0,),
            (Step(CALLS, (Observation("done"),), "why", Usage(tokens_in=3)),),
            Snapshot("s1", "d1"),
            SuiteReport({"t::a[x y]": Outcome.TIMEOUT, "t::b[\udc80]": Outcome.PASSED}, 0.5, 1, valid=True),
            Evaluation(0.5, parts={"goals": 0.5}),
        ),
        elapsed_s=2.0,
    ),
    Begun(Choice(0, reasons=(Reason(0, {"score": 0.5}),)), 0, 1, "mutate/1", 2, 1),
    Begun(Choice(1, "fuse", 0), 1, 0),
    Merged(1, 0),
    Merged(1, 0, "the same", "mutate/1", choice=Choice(1, "fuse", 0)),
    Failed(1, "the fork is gone", elapsed_s=3.0),
    Failed(1, "conflict in a.py", choice=Choice(1, "fuse", 0), flight=ScheduleEntry(1, 2, 0)),
    Remeasured(1, Evaluation(0.25), SuiteReport({"t::c": Outcome.FAILED}), 4.0, Choice(1, "measure")),
    Exhausted(0, "mutate/1"),
    Spent(Usage(model_calls=1, cost_usd=0.25), "model", 1),
    Noted(0, "lines", {"a.py": [1, 2]}),
    Steered(Order("fork", 1, "a hint\udcff")),
    Steered(Order("fork", 0), inbox_bytes=9),
    Steered(Order("pin", 1)),
    Failed(
        1, "no", choice=Choice(1, hint="a hint", order=0, reasons=(Reason(1, {"score": 0.5}, 3, 0, {"score": 0.25}),))
    ),
    Exhausted(1),
    Ended("improved", "NODES", 1, True, "ab", 9.0, {"passed": 1}),
]


def facts(run):
    return (
        list(run.tree),
        [(run.tree.visits(n.id), run.tree.expansions(n.id), run.tree.expandable(n.id)) for n in run.tree],
        [(run.tree.attempts(n.id), run.tree.failures(n.id), run.tree.evaluations(n.id)) for n in run.tree],
        [(run.tree.begun(n.id, "fuse", 0), run.tree.exhausted_for(n.id, "mutate/1")) for n in run.tree],
        sorted(run.tree.graph.edges(data="kind")),
        run.usage,
        run.notes,
        run.started,
        run.ended,
        run.elapsed_s,
        vars(run.steering),
        [(each, run.in_progress.times(each), run.next_index(each.work)) for each in run.in_progress],
        run.begun_count,
    )


def written(path, events=EVENTS):
    with Run.open(path) as run:
        for event in events:
            run.record(event)
    return run


def reread(path):
    with Run.open(path) as run:
        return run


@pytest.mark.parametrize("event", EVENTS, ids=lambda e: e.kind)
def test_an_event_reads_back_as_it_was_written(event):
    assert decode(encode(event)) == event


def test_actions_of_earlier_versions_are_read():
    event = Added(node(1, 0, steps=(Step((Edit("a.py", "x", "y"), Submit("done")), ()),)))
    line = encode(event).replace(b', "replace_all": false, "more": []', b"").replace(b', "contradicted": []', b"")
    assert (line != encode(event), decode(line)) == (True, event)


def test_a_run_in_two_sessions_equals_one(tmp_path):
    whole = written(tmp_path / "one")
    written(tmp_path / "two", EVENTS[:4])
    again = written(tmp_path / "two", EVENTS[4:])
    assert facts(again) == facts(whole)
    assert facts(reread(tmp_path / "two")) == facts(whole)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_crash_inside_a_write_loses_that_event_only(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("run")
    written(path)
    log = path / "journal.jsonl"
    whole = log.read_bytes()
    cut = data.draw(st.integers(0, len(whole)))
    log.write_bytes(whole[:cut])
    kept = whole[:cut].count(b"\n")
    with Run.open(path) as run:
        assert run.journal.events() == EVENTS[:kept]
        for event in EVENTS[kept:]:
            run.record(event)
    assert log.read_bytes() == whole


def test_a_line_that_is_no_event_is_named(tmp_path):
    written(tmp_path)
    log = tmp_path / "journal.jsonl"
    log.write_bytes(b'{"kind": "unheard-of"}\n' + log.read_bytes())
    with pytest.raises(JournalError, match=r"journal\.jsonl:1 cannot be read"):
        Run.open(tmp_path)


@pytest.mark.parametrize("stray", [node(1, 7), node(5, 0)], ids=["a parent that nobody added", "a gap in the numbers"])
def test_events_that_do_not_fit_together_are_named_and_hold_nobody_up(tmp_path, stray):
    with Journal(tmp_path) as journal:
        for each in (node(0), stray):
            journal.append(Added(each))
    with pytest.raises(JournalError, match="do not fit together"):
        Run.read(tmp_path)
    with pytest.raises(JournalError, match="do not fit together"):
        Run.open(tmp_path)
    Journal(tmp_path).close()


def test_two_processes_cannot_hold_one_run(tmp_path):
    with Journal(tmp_path), pytest.raises(JournalError, match="in use"):
        Journal(tmp_path)
    Journal(tmp_path).close()


def test_a_run_that_is_held_can_be_read_and_nothing_of_it_is_cut(tmp_path):
    with Run.open(tmp_path) as run:
        for event in EVENTS:
            run.record(event)
        log = tmp_path / "journal.jsonl"
        torn = log.read_bytes() + encode(EVENTS[-1])[:20]
        log.write_bytes(torn)
        with Run.read(tmp_path) as seen:
            assert facts(seen) == facts(run)
        assert log.read_bytes() == torn


def test_kill_9_leaves_every_recorded_event(tmp_path):
    code = (
        "import sys, pathlib\n"
        "from agent.run.events import Failed\n"
        "from agent.run.journal import Journal\n"
        "j = Journal(pathlib.Path(sys.argv[1]))\n"
        "for i in range(10**6):\n"
        "    j.append(Failed(0, str(i))); print(i, flush=True)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE) as process:
        said = [process.stdout.readline() for _ in range(20)]
        process.send_signal(signal.SIGKILL)
        said += process.stdout.readlines()
    last = max(int(line) for line in said if line.endswith(b"\n"))
    with Journal(tmp_path) as journal:
        events = journal.events()
    assert len(events) >= last + 1
    assert [e.reason for e in events] == [str(i) for i in range(len(events))]


def test_blobs_are_named_by_their_content(tmp_path):
    with Journal(tmp_path) as journal:
        name = journal.put_blob(b"\x00\xff")
        assert journal.get_blob(name) == b"\x00\xff"
        assert journal.put_blob(b"\x00\xff") == name
    assert len(os.listdir(tmp_path / "blobs")) == 1


def test_a_run_that_is_deeper_than_python_recurses_goes_on(tmp_path):
    deep = 2 * sys.getrecursionlimit()
    events = [Added(node(0)), *(Added(node(n, n - 1, n / (2 * deep))) for n in range(1, deep))]
    (tmp_path / "journal.jsonl").write_bytes(b"".join(encode(event) for event in events))
    with Run.open(tmp_path) as run:
        run.record(Added(node(deep, deep - 1, 1.0)))
        assert (run.tree.depth(deep), len(run.tree.path(deep))) == (deep, deep + 1)
        assert (run.tree.visits(0), run.tree.best().id) == (deep + 1, deep)
        run.tree.begin(deep)
        assert run.tree.pending_below(0) == 1
