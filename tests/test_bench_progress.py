"""What a person sees of a batch while it runs."""

from __future__ import annotations

import io
import threading

import pytest
from rich.console import Console

from agent.budget import Usage
from agent.run.events import Ended, Round, Spent
from benchmarks.batch.batch import Attempt
from benchmarks.batch.progress import BatchProgress
from benchmarks.batch.status import InstanceStatus
from tests.instances import bare_instance

SOLVED = {"status": "solved", "nodes": 2, "seconds": 1.0, "stop": "solved"}


def terminal() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=250, color_system=None, highlight=False)


def shown(progress: BatchProgress, console: Console) -> str:
    with console.capture() as capture:
        console.print(progress.table())
    return capture.get()


def test_the_table_says_of_each_instance_what_it_does_and_of_all_how_they_ended() -> None:
    console = terminal()
    progress = BatchProgress(4, "hidden", console)
    for name in "abc":
        progress.started(bare_instance(name))
    progress.advanced(bare_instance("a"), Round(2, 5))
    progress.advanced(bare_instance("b"), Spent(Usage(model_calls=2, tokens_in=10, cost_usd=0.25, measurements=1)))
    progress.advanced(bare_instance("x"), Ended("solved", "solved"))
    progress.advanced(bare_instance("c"), InstanceStatus("waiting for a machine", nodes=7))
    text = shown(progress, console)
    assert [line.split()[1] for line in text.splitlines()[1:4]] == ["a", "b", "c"]
    assert "beginning round 2" in text.splitlines()[1]
    assert text.splitlines()[3].split()[2:7] == ["waiting", "for", "a", "machine", "7"]
    assert "hidden tests: 0 of 4 ended, 2 model calls, 10 tokens, 0.2500 dollars" in text
    progress.ended(bare_instance("a"), Attempt("a", "done", "hidden", facts=SOLVED))
    progress.ended(bare_instance("b"), Attempt("b", "limit", "hidden", facts={**SOLVED, "status": "no_patch"}))
    progress.ended(bare_instance("c"), None)
    text = shown(progress, console)
    assert "hidden tests: 3 of 4 ended: 1 solved, 1 limit, 1 interrupted, 2 model calls" in text
    assert "0.2500 dollars, about 0 min left" in text


def test_the_table_can_be_drawn_while_a_line_is_printed() -> None:
    """Rich's own thread holds the lock of the display when it asks for the table."""
    drawn: list[bool] = []

    class Screen(io.StringIO):
        def write(self, text: str) -> int:
            drawing = threading.Thread(target=progress.table, daemon=True)
            drawing.start()
            drawing.join(100)
            drawn.append(not drawing.is_alive())
            return super().write(text)

    progress = BatchProgress(1, "hidden", Console(file=Screen(), highlight=False))
    progress.ended(bare_instance("a"), None)
    assert drawn
    assert all(drawn)


@pytest.mark.parametrize("variable", ["CI", "NO_COLOR"])
def test_where_nothing_may_move_a_line_says_that_an_instance_began_and_one_how_it_ended(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in ("CI", "NO_COLOR"):
        monkeypatch.delenv(each, raising=False)
    monkeypatch.setenv("TERM", "xterm")

    def printed() -> str:
        console = terminal()
        with BatchProgress(1, "revealed", console) as progress:
            progress.started(bare_instance("a"))
            progress.ended(bare_instance("a"), Attempt("a", "done", "revealed", facts=SOLVED))
        assert isinstance(console.file, io.StringIO)
        return console.file.getvalue()

    line = "[1/1] revealed a: done, solved (2 states, 1 s, stop: solved)\n"
    assert line in printed() != line
    monkeypatch.setenv(variable, "1")
    assert printed() == f"revealed a: started\n{line}"
