"""What is recorded in the documentation is what the scripts record, and keeps what is promised of it."""

from __future__ import annotations

import re
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent


def script(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A program of scripts/, not run; nothing is left beside it."""
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    loader = SourceFileLoader(name.replace("-", "_"), str(ROOT / "scripts" / name))
    module = module_from_spec(spec_from_loader(loader.name, loader))
    monkeypatch.setitem(sys.modules, loader.name, module)
    loader.exec_module(module)
    return module


@pytest.mark.parametrize("user", ["terminal", "batch", "library"])
def test_each_kind_of_user_has_a_result_within_five_minutes_and_three_commands(user, monkeypatch):
    session = script("record-transcripts", monkeypatch).SESSIONS[user]
    page = (ROOT / "docs" / "transcripts.md").read_text()
    told = page.partition(f"<!-- recorded: {user} -->")[2].partition("<!-- end -->")[0]
    assert tuple(re.findall(r"^\$ (.+)$", told, re.MULTILINE)) == tuple(session.commands)
    commands, seconds = re.search(r"^\[the first result: (\d+) commands, (\d+) s", told, re.MULTILINE).groups()
    assert int(commands) == session.until <= 3
    assert int(seconds) < 300


def test_a_recorded_terminal_shows_what_was_drawn_over_and_what_was_printed_above(monkeypatch):
    screens = script("record-terminal", monkeypatch).screens
    view = "\r\x1b[2K\x1b[1A\x1b[2K"
    chunks = [(1.0, "a\r\n\x1b[?25lone\r\ntwo"), (2.0, f"{view}b\r\nthree\r\nfour"), (3.0, f"{view}\x1b[?25hc\r\n")]
    assert [lines for _, lines in screens(chunks, "$ x")] == [
        ["$ x", "a", "one", "two"],
        ["$ x", "a", "b", "three", "four"],
        ["$ x", "a", "b", "c", ""],
    ]


def test_a_terminal_may_be_read_at_any_byte(monkeypatch):
    whole = script("record-terminal", monkeypatch).whole
    said = "a\r\n\x1b[?25l\x1b[38;5;12mone · ★\x1b[0m\r\n\x1b[2K\x1b[1Atwo"
    pieces = [text for _, text in whole((0.0, bytes([byte])) for byte in said.encode())]
    assert "".join(pieces) == said
    assert not [text for text in pieces if "\x1b" in text and not re.search(r"\x1b\[[0-?]*[@-~]", text)]
