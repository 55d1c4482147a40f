"""Where a failed rollout went wrong: found by facts, with what depends on it, and gone on from just before it."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from agent.actions import Debug, Edit, Invalid, Observation, Replacement, RunTests, Search, Shell, Submit, View, Write
from agent.analysis.diagnosis import diagnose, diagnose_deeds
from agent.analysis.diagnosis.commands import read_command
from agent.analysis.diagnosis.divergence import compare, moments
from agent.analysis.report.diagnosis import diagnosis_text, parted
from agent.analysis.trajectories.reading import read_trajectory
from agent.budget import Budget
from agent.cli.app import app
from agent.engine.components import Components
from agent.errors import UsageError
from agent.evaluate.value.tests import PassingTests
from agent.measure import SuiteReport
from agent.measure.probing.spectrum import Spectrum
from agent.policy import Proposal
from agent.run.action_log import action_record
from agent.run.command_queue import steer
from agent.run.commands import Order, check
from agent.run.events import Ended, Noted
from agent.run.run import Run
from agent.search.linear import Linear
from agent.solver.solve import solve
from sandboxes.namespace.provider import namespace_provider
from tests.histories import ENDS, F, History, P, turn
from tests.policies import Scripted
from tests.projects import BUG, FIX, means, task

TRAJECTORIES = Path(__file__).parent / "trajectories"
RIGHT, WRONG = Edit("calc.py", "x = 1", "x = 2"), Edit("calc.py", "y = 1", "y = None")
NO = Observation("Not done: calc.py is unchanged", ok=False)


@pytest.fixture
def history(tmp_path):
    made = History(tmp_path / "run")
    yield made
    made.run.close()


def numbers(found, stage) -> list[int]:
    return [step.number for each in found.stages if each.name == stage for step in each.steps]


# ---- the onset


@pytest.fixture
def planted(history):
    """A rollout of four states whose second breaks a test for good, in its second step of three."""
    history.add(0, turn(View("calc.py"), Edit("/w/calc.py", "x = 1", "x = 2")), a=P)
    history.add(1, turn(Search("y", ".")), turn(WRONG), turn(RunTests()), a=P, c=F)
    shown = Observation("calc.py (9 lines)\n     3\ty = None")
    history.add(
        2, turn((View("/w/calc.py"), shown), Edit("calc.py", "y = None", "y = 0"), Edit("b.py", "p", "q")), a=P, c=F
    )
    matches = Observation("2 lines match:\n./calc.py:3:    y = 0\n./b.py:1:q")
    history.add(3, turn((Search("y", "."), matches), Edit("calc.py", "x = 2", "x = 3"), Submit()), a=P, c=F)
    return history


def test_a_planted_wrong_step_is_the_onset_and_only_what_depends_on_it_is_in_the_chain(planted):
    found = diagnose(planted.run)
    assert found.path == (0, 1, 2, 3, 4)
    assert (found.onset.step.number, found.onset.step.what, found.onset.node) == (4, "edit calc.py", 2)
    assert found.onset.why == "state 2 broke t.py::c, which had passed and was not fixed again"
    assert found.dependents == (6, 7, 9)


def test_steps_are_told_by_stage(planted):
    found = diagnose(planted.run)
    assert [stage.name for stage in found.stages] == [
        "locate", "edit", "locate", "edit", "test", "locate", "edit", "locate", "edit", "submit",
    ]  # fmt: skip
    assert [step.number for stage in found.stages for step in stage.steps] == list(range(1, 12))


def test_looking_at_values_is_to_reproduce_the_fault_and_after_an_edit_to_test_it(history):
    history.add(0, turn(Debug("t.py::a"), RIGHT, Debug("t.py::a")))
    assert [(each.name, each.steps[0].what) for each in diagnose(history.run).stages] == [
        ("reproduce", "debug t.py::a"),
        ("edit", "edit calc.py"),
        ("test", "debug t.py::a"),
    ]


def test_an_edit_of_several_places_wrote_and_used_each_and_a_bad_call_nothing(history):
    several = Edit("calc.py", "x = 1", "x = 2", more=(Replacement("y = 1", "y = 2"),))
    history.add(0, turn((Invalid("look", "{}", "no such tool"), NO), several))
    bad, edit = (step for each in diagnose(history.run).stages for step in each.steps)
    assert (bad.stage, bad.what, bad.wrote, bad.used) == ("locate", "look (could not be read)", (), ())
    assert ([each.text for each in edit.wrote], [each.text for each in edit.used]) == (
        ["x = 2", "y = 2"],
        ["x = 1", "y = 1"],
    )


def test_actions_that_are_repeated_with_the_same_result_are_counted(history):
    other = Observation("Another.")
    history.add(
        0, turn(Shell("ls  -l"), View("a.py"), Shell("ls -l"), (Shell("ls -l"), other), (Shell("ls -l"), other))
    )
    history.add(1, turn(View("./a.py")))
    found = diagnose(history.run)
    assert found.repeats == (3, 5, 6)
    assert "again    steps 3, 5, 6: the same as before, with the same result" in diagnosis_text(found)


def test_a_regression_that_was_mended_is_not_the_onset(history):
    history.add(0, turn(WRONG), c=F)
    history.add(1, turn(Edit("calc.py", "y = None", "y = 1")))
    history.add(2, turn(Edit("b.py", "p", "q")), d=F)
    assert diagnose(history.run).onset.node == 3


def test_a_test_that_was_not_run_for_a_while_may_have_been_broken_by_any_step_since(history):
    goals = SuiteReport({"t.py::a": F, "t.py::b": F}, complete=False)
    history.add(0, turn(RIGHT), a=P)
    history.add(1, turn(View("a.py"), WRONG), report=goals)
    history.add(2, turn(Edit("b.py", "p", "q")), label="b", a=P, c=F)
    history.add(3, turn(Edit("b.py", "q", "r")), a=P, c=F)
    found = diagnose(history.run)
    assert (found.onset.step.number, found.onset.node, found.onset.among) == (3, 2, (3, 4))
    assert found.onset.why == ("t.py::c had passed before state 2, failed when run again at state 3 (b), and stayed so")
    assert "onset    one of steps 3, 4 on the way to state 2" in diagnosis_text(found)


def test_tests_that_stop_running_are_the_onset(history):
    history.add(0, turn(RIGHT), a=P)
    broken = SuiteReport(dict(ENDS), valid=False, problem="SyntaxError in calc.py")
    history.add(1, turn(WRONG), report=broken)
    history.add(2, turn(Edit("b.py", "p", "q")), report=broken)
    found = diagnose(history.run, 3)
    assert (found.onset.node, found.onset.rule) == (2, "the tests stopped running")
    assert "SyntaxError in calc.py" in found.onset.why


def test_where_a_sibling_succeeded_the_first_step_of_the_other_way_is_the_onset(history):
    history.add(0, turn(RIGHT), a=P)
    history.add(1, turn(Edit("calc.py", "y = 1", "y = 3")), a=P)
    history.add(2, turn(Edit("b.py", "p", "q")), a=P)
    history.add(1, turn(Edit("calc.py", "y = 1", "y = 2")), label="y", a=P, b=P)
    found = diagnose(history.run)
    assert (found.onset.node, found.onset.step.number) == (2, 2)
    better = "state 4 (y), reached by another way from state 1, is solved"
    assert found.onset.why.startswith(f"{better}; at and below state 2")


def test_an_edit_of_what_no_failing_test_executes_is_the_onset_where_nothing_else_is_known(history):
    spectrum = Spectrum({}, {"t.py::a": {"calc.py": (1,)}, "t.py::b": {"calc.py": (2,)}, "t.py::c": {"far.py": (1,)}})
    history.run.record(Noted(0, "spectrum", spectrum.to_json()))
    history.add(0, turn(RIGHT, Edit("test_new.py", "", "x"), Edit("far.py", "p", "q")))
    found = diagnose(history.run)
    assert found.onset.step.what == "edit far.py"
    assert found.onset.rule == "an edit of what no failing test executes"


def test_of_several_edits_of_a_state_those_that_a_broken_test_executes_are_suspected(history):
    history.add(0, turn(RIGHT), turn(Edit("far.py", "p", "q")), turn(Shell("sed -i s/1/2/ other.py")), c=F)
    assert diagnose(history.run).onset.among == (1, 2, 3)
    history.run.record(Noted(0, "spectrum", Spectrum({}, {"t.py::c": {"far.py": (1,)}}).to_json()))
    assert (diagnose(history.run).onset.step.number, diagnose(history.run).onset.among) == (2, ())


def test_where_no_fact_says_it_none_is_named(history):
    history.add(0, turn(RIGHT))
    found = diagnose(history.run)
    assert (found.onset, found.dependents, found.go_on) == (None, (), ())
    assert "no recorded fact says where it went wrong" in diagnosis_text(found)


@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 3))
@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
def test_wherever_a_wrong_step_is_planted_it_is_found(tmp_path_factory, before, after, turns):
    history = History(tmp_path_factory.mktemp("planted"))
    looks = tuple(turn(View(f"v{n}.py")) for n in range(turns))
    for number in range(before):
        history.add(number, *looks, turn(Edit("calc.py", f"a{number} = 0", f"a{number} = 1")))
    history.add(before, *looks, turn(WRONG), c=F)
    for number in range(after):
        history.add(before + 1 + number, *looks, turn(Edit("calc.py", f"b{number} = 0", f"b{number} = 1")), c=F)
    found = diagnose(history.run)
    history.run.close()
    assert (found.onset.node, found.onset.step.number) == (before + 1, (before + 1) * (turns + 1))
    assert found.dependents == ()


def test_a_rollout_that_has_not_failed_is_not_diagnosed(history):
    with pytest.raises(UsageError, match="no rollout has failed"):
        diagnose(history.run)
    history.add(0, turn(RIGHT), a=P, b=P)
    with pytest.raises(UsageError, match="no rollout has failed"):
        diagnose(history.run)
    with pytest.raises(UsageError, match="state 1 is solved"):
        diagnose(history.run, 1)
    with pytest.raises(UsageError, match="there is no state 7: this run has states 0 to 1"):
        diagnose(history.run, 7)


def test_a_solution_that_its_verification_refutes_has_failed(history):
    history.add(0, turn(RIGHT), a=P, b=P)
    history.run.record(Noted(1, "verdict", {"patch": "", "solved": False, "improved": False, "why": "Broken: t.py::d"}))
    assert diagnose(history.run).path == diagnose(history.run, 1).path == (0, 1)


# ---- going on from it


def test_the_command_goes_on_from_the_state_before_with_the_diagnosis_as_a_hint(planted):
    found = diagnose(planted.run)
    line = next(line for line in diagnosis_text(found).splitlines() if line.startswith("go on"))
    words = shlex.split(line.removeprefix("go on"))
    assert words[:4] == ["ramify", "fork", str(planted.run.journal.directory), "1"]
    assert words[4] == "--hint"
    assert "state 2 broke t.py::c" in words[5]
    check(Order("fork", 1, words[5]), planted.run.tree, planted.run.steering)


def test_a_state_that_is_closed_gives_way_to_the_one_above_it(planted):
    planted.run.tree.close(1)
    assert diagnose(planted.run).go_on[3] == "0"
    planted.run.tree.close(0)
    assert "not from here: no state before the onset can be expanded any more" in diagnosis_text(diagnose(planted.run))


def test_in_a_solved_run_nothing_goes_on(planted):
    planted.run.record(Ended("solved", "SOLVED"))
    assert diagnose(planted.run).go_on == ()
    assert "not from here: the run is solved" in diagnosis_text(diagnose(planted.run))


@pytest.mark.slow
@pytest.mark.namespace
def test_a_failed_run_is_mended_from_just_before_its_onset_and_its_prefix_is_not_taken_again(tmp_path):
    prefix, wrong = Write("NOTES.md", "Look at mean."), Edit("means.py", BUG, "    if len(numbers) <= 3:\n")
    asked: list[tuple[int, str]] = []

    def answer(position):
        asked.append((position.node.id, position.hint))
        if position.hint:
            return Proposal((Edit("means.py", BUG, FIX),))
        return Proposal((prefix,) if len(position.path) == 1 else (wrong,))

    repo, directory = means(tmp_path / "repo"), tmp_path / "run"

    def sit(nodes):
        with Run.open(directory) as run, namespace_provider(directory / "store") as provider:
            parts = Components(
                provider, Scripted(answer), Linear(), PassingTests(), Budget(max_nodes=nodes), localise=True
            )
            return solve(task(repo), parts, run), list(run.tree)

    first, before = sit(3)
    with Run.read(directory) as run:
        found = diagnose(run)
    assert (first.status, found.onset.step.number, found.onset.node) == ("no_patch", 2, 2)
    _, _, _, node, _, hint = found.go_on
    steer(directory, Order("fork", int(node), hint))
    asked.clear()
    result, after = sit(5)
    assert result.status == "solved"
    assert asked == [(1, hint)]
    assert after[:3] == before
    assert after[result.best_node].parents == (1,)


# ---- what other programs recorded


def test_a_trajectory_of_mini_swe_agent_is_read():
    trajectory = read_trajectory(TRAJECTORIES / "mini.traj.json")
    assert (trajectory.format, trajectory.ended) == ("mini-swe-agent-1.1", "Submitted")
    assert trajectory.patch.startswith("diff --git a/calc.py")
    commands = [each.action.command for each in trajectory.action_records]
    assert commands[:2] == ["ls", "cat calc.py"]
    assert commands[5] == "sed -n '1,3p' calc.py"
    assert trajectory.action_records[5].seen == Observation(
        "def total(numbers):\n    result = None\n    for number in numbers:\n"
    )
    assert [each.seen.ok for each in trajectory.action_records[:5]] == [True, True, False, True, False]
    found = diagnose_deeds(Path("x"), trajectory.action_records, trajectory.ended)
    assert (found.onset.step.number, found.dependents) == (4, (6, 8))
    assert (numbers(found, "reproduce"), numbers(found, "test"), numbers(found, "submit")) == ([3], [5, 9], [11, 12])


def test_the_older_form_of_it_is_read_from_the_text(tmp_path):
    said = "THOUGHT: I look.\n\n```bash\ncat a.py\n```"
    output = {"role": "user", "content": "<returncode>1</returncode>\n<output>\nx\n</output>"}
    old = {"info": {"exit_status": "LimitsExceeded"}, "messages": [{"role": "assistant", "content": said}, output]}
    (tmp_path / "x.json").write_text(json.dumps(old))
    trajectory = read_trajectory(tmp_path / "x.json")
    (only,) = trajectory.action_records
    assert (only.action, only.seen.ok, trajectory.ended) == (Shell("cat a.py"), False, "LimitsExceeded")
    assert "x" in only.seen.text


def test_a_trajectory_of_swe_agent_is_read():
    trajectory = read_trajectory(TRAJECTORIES / "swe-agent.traj")
    assert (trajectory.format, trajectory.ended) == ("SWE-agent", "submitted")
    assert [(each.action.kind, each.path, each.seen.ok) for each in trajectory.action_records] == [
        ("view", "calc.py", True),
        ("shell", "", True),
        ("write", "reproduce.py", True),
        ("edit", "calc.py", True),
        ("edit", "calc.py", False),
        ("shell", "", True),
        ("view", "calc.py", True),
        ("edit", "CHANGES.md", True),
        ("submit", "", True),
    ]
    view, edit, insert = (trajectory.action_records[n].action for n in (0, 3, 7))
    assert (view.start, view.end) == (1, 5)
    assert (edit.old, edit.new) == ("    for number in numbers[1:]:", "    for number in numbers")
    assert (insert.new, insert.line) == ("- total", 1)
    found = diagnose_deeds(Path("x"), trajectory.action_records, trajectory.ended)
    assert (found.onset.step.number, found.onset.rule) == (4, "a syntax error that was never fixed")
    assert found.dependents == (7,)
    assert numbers(found, "reproduce") == [2, 3]


@pytest.mark.parametrize(
    ("call", "action"),
    [
        ("view /testbed/a.py", View("/testbed/a.py")),
        ("view /testbed/a.py --view_range 3 -1", View("/testbed/a.py", 3, 0)),
        ("view /testbed/a.py --view_range ² x", View("/testbed/a.py")),
        ("insert /testbed/a.py --insert_line --new_str x", Edit("/testbed/a.py", "", "x")),
        ("str_replace /testbed/a.py --old_str '--new' --new_str ''", Edit("/testbed/a.py", "--new", "")),
        ("undo_edit /testbed/a.py", None),
        ("view", None),
        ("view 'a", None),
    ],
)
def test_each_call_of_its_editor_is_read_and_what_cannot_be_is_a_command(tmp_path, call, action):
    text = f"str_replace_editor {call}"
    (tmp_path / "x.traj").write_text(json.dumps({"trajectory": [{"action": text}]}))
    assert read_trajectory(tmp_path / "x.traj").action_records[0].action == (action or Shell(text))


def test_of_several_attempts_the_last_is_read(tmp_path):
    attempts = [{"trajectory": [{"action": name}]} for name in ("ls one", "ls two")]
    (tmp_path / "x.traj").write_text(json.dumps({"attempts": attempts}))
    assert read_trajectory(tmp_path / "x.traj").action_records[0].action == Shell("ls two")


def test_a_trajectory_of_openhands_is_read_however_it_was_kept(tmp_path):
    events = json.loads((TRAJECTORIES / "openhands.json").read_bytes())
    evaluated = {"history": events, "test_result": {"git_patch": "diff --git a/calc.py"}, "instance_id": "x"}
    kept = [read_trajectory(TRAJECTORIES / "openhands.json")]
    for name, data in {"downloaded": {"trajectory": events}, "evaluated": evaluated}.items():
        (tmp_path / name).write_text(json.dumps(data))
        kept.append(read_trajectory(tmp_path / name))
    assert {(each.format, each.ended, each.action_records) for each in kept} == {
        ("OpenHands", "finished", kept[0].action_records)
    }
    assert [each.patch for each in kept] == ["", "", "diff --git a/calc.py"]
    assert [(each.action.kind, each.path, each.seen.ok) for each in kept[0].action_records] == [
        ("view", "calc.py", True),
        ("write", "reproduce.py", True),
        ("shell", "", False),
        ("edit", "calc.py", False),
        ("edit", "calc.py", True),
        ("edit", "CHANGES.md", True),
        ("write", "calc.py", True),
        ("shell", "", True),
        ("shell", "", True),
        ("submit", "", True),
    ]
    view, edit, insert, drafted = (kept[0].action_records[n].action for n in (0, 4, 5, 6))
    assert (view.start, view.end) == (1, 5)
    assert (edit.old, edit.new) == ("    for number in numbers[1:]:", "    for number in numbers")
    assert (insert.new, insert.line) == ("- total", 2)
    assert drafted.content == "def total(numbers):\n    return sum(numbers)\n"
    found = diagnose_deeds(Path("x"), kept[0].action_records, kept[0].ended)
    assert (numbers(found, "locate"), numbers(found, "reproduce"), numbers(found, "submit")) == ([1], [2, 3], [10])


def test_a_trajectory_of_openhands_that_was_not_finished_says_how_it_ended(tmp_path):
    run = {"id": 1, "source": "agent", "action": "run", "args": {"command": "ls"}}
    state = {"id": 2, "source": "environment", "observation": "agent_state_changed", "extras": {"agent_state": "error"}}
    for name, events, ended in (("a", [run], "not ended"), ("b", [run, state], "error")):
        (tmp_path / name).write_text(json.dumps(events))
        assert read_trajectory(tmp_path / name).ended == ended


def test_an_edit_that_openhands_took_back_is_no_file_without_text(tmp_path):
    given = {"command": "str_replace", "path": "/workspace/a.py", "old_str": "1", "new_str": "2"}
    edits = [given, {"command": "undo_edit", "path": "/workspace/a.py"}]
    events = [{"id": n, "source": "agent", "action": "edit", "args": args} for n, args in enumerate(edits, 1)]
    (tmp_path / "x.json").write_text(json.dumps(events))
    found = read_trajectory(tmp_path / "x.json")
    assert [each.action.kind for each in found.action_records] == ["edit", "shell"]
    assert diagnose_deeds(Path("x"), found.action_records, found.ended).onset is None


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "is neither a run nor a trajectory: it is not valid JSON"),
        ("[]", "not a trajectory of mini-swe-agent"),
        ('{"steps": []}', "not a trajectory of mini-swe-agent .it has no `messages`., SWE-agent .* or OpenHands"),
        ('[{"source": "agent", "action": {}}]', "`history.0.action`: Input should be a valid string"),
        ('{"messages": {}}', "`messages`: Input should be a valid list"),
        ('{"trajectory": [{"observation": ""}]}', "`trajectory.0.action`: Field required"),
    ],
)
def test_what_is_no_trajectory_is_named(tmp_path, content, said):
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(UsageError, match=said):
        read_trajectory(tmp_path / "x.json")


def ran(command: str, output: str = "") -> object:
    return action_record(None, Shell(command), Observation(output), ("/testbed",))


def test_failures_that_went_down_again_are_no_onset():
    counts = ("1 failed in 0.1s", "3 failed in 0.1s", "1 failed, 2 passed in 0.2s")
    done = [each for count in counts for each in (ran("pytest -q", count), ran("echo x > a.py"))]
    assert diagnose_deeds(Path("x"), done, "").onset is None
    worse = diagnose_deeds(Path("x"), done[:3], "").onset
    assert (worse.step.number, worse.rule) == (2, "more tests failed from here on")


def test_a_syntax_error_that_was_taken_back_is_no_onset():
    error = 'File "/testbed/a.py", line 1\nSyntaxError: invalid syntax'
    done = [ran("echo x > /testbed/a.py"), ran("python b.py", error)]
    assert diagnose_deeds(Path("x"), done, "").onset.step.number == 1
    assert diagnose_deeds(Path("x"), [*done, ran("str_replace_editor undo_edit /testbed/a.py")], "").onset is None


@pytest.mark.parametrize(
    ("command", "reads", "writes"),
    [
        ("cd /w && cat a.py | head -5 > out.txt 2>&1", ["a.py"], ["out.txt"]),
        ("grep -rn 'def x' src/ lib/a.py", ["src/", "lib/a.py"], []),
        ("sed -i -e 's|a/b|c|' x.py y.py", ["x.py", "y.py"], ["x.py", "y.py"]),
        ("cat <<'EOF' > x.py\nprint('b.py')\nEOF\npython x.py", ["x.py"], ["x.py"]),
        ("python - <<EOF\np = 'a/b.py'\nopen(p, 'w').write(1)\nEOF", [], ["a/b.py"]),
        ("FOO=1 git checkout -- a.py; rm -rf b.py > /dev/null", [], ["a.py", "b.py"]),
        ("python -m pytest tests/test_a.py", [], []),
        ("cp a.py b.py && echo 1 >> c.py", ["a.py"], ["b.py", "c.py"]),
        ("echo 'unclosed > x", [], ["x"]),
    ],
)
def test_what_a_command_reads_and_writes_is_read_off_its_words(command, reads, writes):
    said = read_command(command)
    assert (list(said.reads), list(said.writes)) == (reads, writes)


# ---- two runs


@pytest.fixture
def pair(tmp_path, history):
    """A rollout of five steps in three states, and how to make one like it."""

    def repeat(name="other", **changes):
        made = history if name == "run" else History(tmp_path / name)
        for number, (words, action) in enumerate(STEPS):
            said, action, seen = changes.get(f"step_{number + 1}", (words, action, "seen"))
            made.add(number, replace(turn((action, Observation(seen))), message=said), content=f"d{number}-{action}")
        return made.run

    return repeat("run"), repeat


STEPS = [
    ("I look.", View("calc.py")),
    ("It is x.", RIGHT),
    ("I look for y.", Search("y", ".")),
    ("It is y.", WRONG),
    ("Done.", Submit()),
]


def test_two_rollouts_that_differ_at_a_step_part_there(pair):
    one, repeat = pair
    other = Edit("calc.py", "y = 1", "y = 5")
    with repeat(step_4=("It is y.", other, "seen")) as two:
        parting = compare(moments(one), moments(two))
    assert [(each.aspect, each.step) for each in parting.first] == [("action", 4), ("state", 4)]
    assert "y = None" in parting.first[0].one
    assert "y = 5" in parting.first[0].other
    assert parting.later == ()


def test_a_bad_result_is_named_with_the_steps_that_come_after_it_and_are_new(pair):
    one, repeat = pair
    bad = {"step_3": ("I look for y.", Search("y", "."), "nothing is here"), "step_4": ("Try z.", View("z.py"), "z")}
    with repeat(**bad) as two:
        parting = compare(moments(one), moments(two))
    assert [(each.aspect, each.step) for each in parting.first] == [
        ("result", 3),
        ("action", 4),
        ("plan", 4),
        ("state", 4),
    ]
    assert [step.number for step in parting.later] == [4]
    assert "only in the second afterwards: step 4" in parted(parting)


def test_a_plan_that_differs_is_seen_where_it_was_told(pair):
    one, repeat = pair
    with repeat(step_2=("I guess.", RIGHT, "seen")) as two:
        (only,) = compare(moments(one), moments(two)).first
    assert (only.aspect, only.step, only.one, only.other) == ("plan", 2, "It is x.", "I guess.")


def test_the_same_rollout_parts_nowhere_and_a_shorter_one_where_it_ends(pair):
    one, repeat = pair
    with repeat() as two:
        assert compare(moments(one), moments(two)).first == ()
        assert parted(compare(moments(one), moments(two))) == "the rollouts are the same\n"
        shorter = compare(moments(one)[:4], moments(two))
    assert [(each.aspect, each.step, each.one) for each in shorter.first] == [("action", 5, "(nothing)")]


def test_rollouts_of_other_programs_are_compared_as_well(pair):
    name = str(TRAJECTORIES / "mini.traj.json")
    assert CliRunner().invoke(app, ["diagnose", name, name]).output == "the rollouts are the same\n"
    said = CliRunner().invoke(app, ["diagnose", name, str(TRAJECTORIES / "swe-agent.traj"), "--json"]).output
    assert json.loads(said)["first"][0]["step"] == 1
    run = str(pair[0].journal.directory)
    assert "step 1: the action differs" in CliRunner().invoke(app, ["diagnose", run, name]).output


# ---- the command line


def test_the_command_tells_people_and_programs(planted):
    run = str(planted.run.journal.directory)
    text = CliRunner().invoke(app, ["diagnose", run])
    assert text.exit_code == 0
    assert ">    4  edit calc.py [state 2]" in text.output
    assert "|    6  view calc.py [state 3]" in text.output
    assert "depends  steps 6, 7, 9" in text.output
    told_json = json.loads(CliRunner().invoke(app, ["diagnose", run, "--node", "3", "--json"]).output)
    assert (told_json["path"], told_json["onset"]["step"]["number"], told_json["dependents"]) == (
        [0, 1, 2, 3],
        4,
        [6, 7],
    )


def test_a_file_of_another_program_is_told_the_same_way():
    said = CliRunner().invoke(app, ["diagnose", str(TRAJECTORIES / "mini.traj.json")]).output
    assert "ended (mini-swe-agent-1.1): Submitted" in said
    assert "onset    step 4: more tests failed from here on" in said
    assert "go on" not in said
    refused = CliRunner().invoke(app, ["diagnose", str(TRAJECTORIES / "mini.traj.json"), "--node", "1"])
    assert isinstance(refused.exception, UsageError)


def test_characters_that_hide_are_seen(history):
    history.add(0, turn(replace(WRONG, path="a\u202eb\x1b[31m\ud800.py")), c=F)
    said = diagnosis_text(diagnose(history.run))
    assert "\\u202eb" in said
    assert "\\ud800" in said
    assert "\x1b" not in said
