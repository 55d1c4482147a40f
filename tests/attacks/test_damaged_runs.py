"""A run folder that was damaged, or that somebody made to do harm, ends a command in one sentence that names it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agent.cli.app import app
from agent.errors import JournalError, RamifyError
from agent.run.events import Added, Ended, Noted, Started
from agent.run.run import Run
from agent.task import dump_task
from sandboxes import SandboxError, Snapshot
from tests.projects import task
from tests.tiers import slow_but
from tests.trees import node

COMMANDS = {
    "show": ("show", "RUN"),
    "why": ("show", "RUN", "--why", "1"),
    "html": ("show", "RUN", "--html", "-"),
    "patch": ("show", "RUN", "--patch"),
    "summaries": ("show", "RUN", "--summaries"),
    "rows": ("export", "RUN", "--format", "sft", "--out", "OUT"),
    "document": ("export", "RUN", "--format", "traj", "--out", "OUT"),
    "fork": ("fork", "RUN", "0"),
    "resume": ("resume", "RUN"),
    "replay": ("replay", "RUN", "--out", "OUT"),
}
PATCH = b"--- a/means.py\n"
DEEP = 100_000


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of a run that has ended."""
    with Run.open(tmp_path / "run") as made:
        patch = made.journal.put_blob(PATCH)
        made.record(Started(dump_task(task(tmp_path / "repo")), {}, Snapshot("s0", "digest-0")))
        made.record(Added(node(0)))
        made.record(Added(node(1, 0, 1.0)))
        verdict = {
            "solved": True,
            "improved": True,
            "patch": patch,
            "final": {"passed": 1},
            "remarks": [],
            "broken": [],
        }
        made.record(Noted(1, "verdict", verdict))
        made.record(Ended("solved", "SOLVED", 1, True, patch, 1.0, {"passed": 1}))
    return tmp_path / "run"


def ask(run: Path, command: str) -> BaseException | None:
    """What a command ends with; a defect is not among it."""
    names = {"RUN": str(run), "OUT": str(run.parent / "out")}
    found = CliRunner().invoke(app, [names.get(word, word) for word in COMMANDS[command]]).exception
    assert found is None or isinstance(found, (SystemExit, RamifyError, SandboxError)), repr(found)
    assert found is None or "\n" not in str(found)
    return found


def added(line: bytes | dict[str, Any]) -> Callable[[Path], None]:
    """One line more."""

    def damage(run: Path) -> None:
        with (run / "journal.jsonl").open("ab") as file:
            file.write((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n")

    return damage


def changed(kind: str, *keys: str, to: Any) -> Callable[[Path], None]:
    """A value of the last event of a kind is another."""

    def damage(run: Path) -> None:
        events = [json.loads(line) for line in (run / "journal.jsonl").read_bytes().splitlines()]
        found = next(event for event in reversed(events) if event["kind"] == kind)
        *path, last = keys
        for key in path:
            found = found[key]
        found[last] = to
        (run / "journal.jsonl").write_bytes(b"".join(json.dumps(event).encode() + b"\n" for event in events))

    return damage


def note(key: str, data: Any) -> dict[str, Any]:
    return {"kind": "noted", "node": 1, "key": key, "data": data}


UNREADABLE = {
    "bytes that are no text": added(b"\xff\xfe\x00"),
    "a bomb of brackets": added(b"[" * DEEP),
    "a bomb within an event": added(b'{"kind":"noted","node":0,"key":"x","data":' + b"[" * DEEP + b"]" * DEEP + b"}"),
    "a number of 5000 digits": added(b'{"kind":"exhausted","node":' + b"9" * 5000 + b"}"),
    "a number of 400 digits": added(b'{"kind":"spent","usage":{"tokens_in":' + b"9" * 400 + b"}}"),
    "a number beyond all": added(b'{"kind":"spent","usage":{"cost_usd":1e999}}'),
    "no number": added(b'{"kind":"spent","usage":{"cost_usd":NaN}}'),
    "an unknown event": added({"kind": "unheard-of"}),
    "a parent before the first": changed("added", "node", "parents", to=[-1]),
    "a node that is its own parent": changed("added", "node", "parents", to=[1]),
    "a second root": changed("added", "node", "parents", to=[]),
    "a value above 1": changed("added", "node", "evaluation", "value", to=1e308),
    "a value below 0": changed("added", "node", "evaluation", "value", to=-1),
    "an answer that is no node": changed("ended", "best", to=99),
    "an answer before the first": changed("ended", "best", to=-1),
    "an unknown end": changed("ended", "stop", to="NOPE"),
    "an unknown status": changed("ended", "status", to="nope"),
    "a merge with no node": added({"kind": "merged", "parent": 0, "node": 99}),
    "a failure of no node": added({"kind": "failed", "node": 99, "reason": ""}),
    "the end of no node": added({"kind": "exhausted", "node": -1}),
    "an order about no node": added({"kind": "steered", "order": {"act": "prune", "node": 99}}),
    "a beginning at no node": added({"kind": "begun", "choice": {"node": 99}, "number": 0, "index": 0}),
    "a vote for no node": added({"kind": "voted", "ballot": {"group": [7], "winner": None}}),
    "a wave from afar": added({"kind": "round", "number": 2, "first": 99}),
    "settings of another kind": changed("started", "settings", to={"search": 3}),
    "a verdict of another kind": added(note("verdict", [1])),
    "a verdict that says nothing": added(note("verdict", {})),
    "a patch that is a number": added(note("verdict", {"solved": True, "patch": 3})),
    "a spectrum of another kind": added(note("spectrum", {"executed": 4})),
    "forks of another kind": added(note("forked", "often")),
    "a discarded state of another kind": added(note("discarded", "x")),
}


@pytest.mark.parametrize("command", slow_but(list(COMMANDS)[:2], COMMANDS))
@pytest.mark.parametrize("damage", UNREADABLE)
def test_a_journal_that_no_search_wrote_is_refused_with_its_name(run: Path, damage: str, command: str) -> None:
    UNREADABLE[damage](run)
    found = ask(run, command)
    assert isinstance(found, JournalError)
    assert str(run) in str(found)


def blob(make: Callable[[Path], object]) -> Callable[[Path], None]:
    """Something else stands where the patch was."""

    def damage(run: Path) -> None:
        (path,) = (run / "blobs").iterdir()
        path.unlink()
        make(path)

    return damage


BLOBS = {
    "gone": blob(lambda path: None),
    "another": blob(lambda path: path.write_bytes(b"+ evil\n")),
    "a folder": blob(Path.mkdir),
    "a link to a file of the machine": blob(lambda path: path.symlink_to("/etc/hostname")),
    "a link to nothing": blob(lambda path: path.symlink_to("/nowhere")),
    "a pipe": blob(os.mkfifo),
    "in a folder that is gone": lambda run: shutil.rmtree(run / "blobs"),
    "named by a way out": changed("ended", "patch_blob", to="../journal.jsonl"),
    "named by a path": changed("ended", "patch_blob", to="/etc/hostname"),
    "named by nobody": changed("ended", "patch_blob", to="0" * 64),
}


@pytest.mark.parametrize("damage", slow_but(sorted(BLOBS)[::6], BLOBS))
def test_a_patch_that_is_missing_or_another_is_never_given_out(run: Path, damage: str) -> None:
    BLOBS[damage](run)
    for command in ("patch", "resume"):
        assert isinstance(found := ask(run, command), JournalError)
        assert "which the journal names" in str(found)
    for command in COMMANDS:
        ask(run, command)


ODD = {
    "nothing recorded": lambda run: (run / "journal.jsonl").write_bytes(b""),
    "a torn line": lambda run: (run / "journal.jsonl").write_bytes((run / "journal.jsonl").read_bytes()[:-9]),
    "no task": changed("started", "task", to={}),
    "a task of another kind": changed("started", "task", to={"workspace": 3}),
    "a checkout that cannot be": changed("started", "task", "workspace", "path", to="\0"),
    "unknown settings": changed("started", "settings", to={"zz": 3}),
    "too many workers": changed("started", "settings", to={"workers": "many"}),
    "orders to a terminal in a label": changed("added", "node", "label", to="\x1b[31m\u202e\ud800[/red]"),
    "a surrogate in a test's id": changed("added", "node", "report", "outcomes", to={"t::\udcff\x1b[2J": "failed"}),
    "a way out for a state": changed("added", "node", "snapshot", "id", to="../../etc"),
    "blobs that are a file": lambda run: (shutil.rmtree(run / "blobs"), (run / "blobs").write_text("")),
    "a journal that is a folder": lambda run: ((run / "journal.jsonl").unlink(), (run / "journal.jsonl").mkdir()),
    "a journal that is a pipe": lambda run: ((run / "journal.jsonl").unlink(), os.mkfifo(run / "journal.jsonl")),
    "a journal that is a link to itself": lambda run: (
        (run / "journal.jsonl").unlink(),
        (run / "journal.jsonl").symlink_to("journal.jsonl"),
    ),
}


@pytest.mark.parametrize("command", slow_but(list(COMMANDS)[:2], COMMANDS))
@pytest.mark.parametrize("damage", ODD)
def test_no_other_damage_is_taken_for_a_defect(run: Path, damage: str, command: str) -> None:
    ODD[damage](run)
    ask(run, command)
