"""What a person at a terminal sees of a search while it runs."""

from __future__ import annotations

import io
import threading
from dataclasses import replace

import pytest
from rich.console import Console

from agent.actions import Edit, Observation, Replacement
from agent.analysis.report.edits import as_diff
from agent.analysis.report.live import STEPS, View
from agent.analysis.report.progress import Progress
from agent.budget import Usage
from agent.measure import Outcome, SuiteReport
from agent.run.events import Added, Failed, Round, Spent, Started
from agent.run.tree.node import Step
from sandboxes import Snapshot
from tests.pages import write
from tests.trees import node

BEGUN = Started({}, {"budget": {"max_nodes": 10, "max_usd": None, "max_seconds": 60.0}}, Snapshot("s", "d"))


def terminal(**options) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=120, color_system=None, highlight=False, **options)


def shown(view: View) -> str:
    console = terminal()
    with console.capture() as capture:
        console.print(view)
    return capture.get()


def edited(old: str, new: str) -> tuple[Step, ...]:
    return (Step((Edit("a.py", old, new),), (Observation(""),)),)


def test_the_way_to_the_best_state_is_drawn_with_what_else_was_tried_there_and_its_edits() -> None:
    view = View()
    for each in (
        node(0, value=0.1),
        node(1, 0, 0.5, steps=edited("x = 1", "x = 2")),
        node(2, 0, 0.2, steps=edited("y = 1", "y = 2")),
        node(3, 1, 0.9, steps=edited("z = 1\x1b[2J", "z = 3")),
    ):
        view.take(Added(each))
    lines = shown(view).splitlines()
    assert lines[0].startswith("0.100  the repository as it is")
    assert lines[0].endswith("[1 other from here]")
    assert "0.500  state 1" in lines[1]
    assert "0.900  state 3" in lines[2]
    assert "0.200" not in "".join(lines)
    file = ["--- a/a.py", "+++ b/a.py"]
    assert lines[3:11] == [*file, "-x = 1", "+x = 2", *file, "-z = 1\\x1b[2J", "+z = 3"]


def test_an_edit_of_several_places_is_drawn_with_each() -> None:
    edit = Edit("a.py", "x = 1", "x = 2", more=(Replacement("y = 1", "y = 2"),))
    assert as_diff((Step((edit,), (Observation(""),)),)).splitlines()[2:] == [
        "@@", "-x = 1", "+x = 2", "@@", "-y = 1", "+y = 2",
    ]  # fmt: skip


def test_the_middle_of_a_long_way_is_left_out() -> None:
    view = View()
    for number in range(STEPS + 4):
        view.take(Added(node(number, number - 1 if number else None, number / 100)))
    text = shown(view)
    assert "... 3 states" in text
    assert "state 3 " not in text
    assert f"state {STEPS + 3} " in text


def test_limits_are_bars_of_what_was_spent_and_the_rest_is_a_line() -> None:
    view = View()
    for event in (BEGUN, Added(node(0)), Added(node(1, 0)), Failed(0, "no"), Spent(Usage(measurements=3))):
        view.take(event)
    lines = shown(view).splitlines()
    assert any(line.startswith("states") and line.endswith("2 of 10") for line in map(str.rstrip, lines))
    assert any(line.startswith("seconds") and "of 60" in line for line in lines)
    assert not any(line.startswith(("dollars", "test runs")) for line in lines)
    assert "2 states, 1 dead end, 3 test runs" in lines[-1]


def test_what_only_models_spend_has_a_bar_once_one_was_called() -> None:
    view = View()
    view.take(Started({}, {"budget": {"max_usd": 3.0}}, Snapshot("s", "d")))
    assert "dollars" not in shown(view)
    view.take(Spent(Usage(model_calls=1, cost_usd=0.5), "policy", 0))
    assert any(line.startswith("dollars") and "0.50 of 3.00" in line for line in shown(view).splitlines())


def test_a_run_that_goes_on_counts_what_earlier_sessions_found_and_spent_against_the_limits_of_now(tmp_path) -> None:
    earlier = [BEGUN, Added(node(0, value=0.2)), Added(node(1, 0, 0.5), elapsed_s=40.0), Spent(Usage(measurements=2))]
    console = terminal()
    progress = Progress(console)
    progress.catch_up(write(tmp_path / "run", earlier), {"max_nodes": 20})
    progress(Added(node(2, 0, 0.4)))
    progress(Added(node(3, 1, 0.6)))
    assert [line.split()[0] for line in console.file.getvalue().splitlines()] == ["0.600"], "only what is better"
    lines = [line.rstrip() for line in shown(progress.view).splitlines()]
    assert any(line.startswith("states") and line.endswith("4 of 20") for line in lines)
    (seconds,) = (line.split()[-3] for line in lines if line.startswith("seconds"))
    assert float(seconds) >= 40
    assert "4 states, 0 dead ends, 2 test runs" in lines[-1]


def test_each_worker_says_what_it_does_and_the_main_thread_only_while_it_is_alone() -> None:
    view = View()
    view.take(BEGUN)
    assert "measuring the base state" in shown(view)
    for name in ("ramify_0", "ramify_1"):
        thread = threading.Thread(target=view.take, args=(Spent(Usage(measurements=1)),), name=name)
        thread.start()
        thread.join()
    text = shown(view)
    assert text.count("evaluating the test results") == 2
    assert "measuring" not in text
    view.take(Round(2, 3))
    assert "worker 1  beginning round 2" in shown(view)
    assert "worker 2" not in shown(view)


@pytest.mark.parametrize("plain", ["CI", "NO_COLOR", None])
def test_a_terminal_shows_the_view_and_whoever_wants_no_movement_only_lines(plain, monkeypatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for name in ("CI", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    if plain:
        monkeypatch.setenv(plain, "1")
    console = terminal()
    with Progress(console) as progress:
        progress(BEGUN)
        progress(Added(node(0, value=0.25)))
    printed = console.file.getvalue()
    assert "0.250  the repository as it is" in printed
    assert ("worker 1" in printed) is (plain is None)


def test_a_terminal_of_ascii_gets_ascii() -> None:
    view = View()
    for event in (BEGUN, Added(node(0)), Added(node(1, 0, 0.5))):
        view.take(event)
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    Console(file=file, width=100, color_system=None).print(view)
    file.flush()
    assert b"0.500  state 1" in file.buffer.getvalue()


def test_an_improvement_that_breaks_tests_says_which() -> None:
    passed, failed = Outcome.PASSED, Outcome.FAILED
    console = terminal()
    progress = Progress(console)
    for each, outcomes in ((node(0, value=0.1), (failed, passed)), (node(1, 0, 0.8), (passed, failed))):
        progress(Added(replace(each, report=SuiteReport(dict(zip(("t::a", "t::b"), outcomes, strict=True))))))
    assert "0.800  state 1 (1 passed, 1 failed, breaks 1: t::b)\n" in console.file.getvalue()


def test_after_many_states_that_are_no_better_it_is_told_once_how_to_end_the_search(monkeypatch) -> None:
    monkeypatch.setattr("agent.analysis.report.progress.STUCK", 3)
    monkeypatch.setattr("agent.analysis.report.progress.STUCK_S", 0.0)
    console = terminal()
    progress = Progress(console)
    for number, value in enumerate((0.1, 0.1, 0.1, 0.2, 0.1, 0.1)):
        progress(Added(node(number, 0 if number else None, value)))
    assert "no progress" not in console.file.getvalue()
    for number in (6, 7, 8):
        progress(Added(node(number, 0, 0.1)))
    said = "no progress in 3 states; Ctrl-C keeps the best so far, --max-seconds N sets a limit\n"
    assert console.file.getvalue().count("no progress") == console.file.getvalue().count(said) == 1
