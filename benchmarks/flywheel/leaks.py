"""Checks whether held-out code got into training rows.

A row is traced to its bug. It is a leak if the bug's repository is held out, or if its function has held-out bugs or is
a near copy of such a function, regardless of the names of variables. Both the function before it was broken and the
function as the row shows it are checked.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.learning.export import Row
from agent.learning.export.edits import Edits
from agent.policy.edit.numbering import as_python, parsed
from agent.run.run import Run
from benchmarks.data.jsonl_ledger import read_lines
from benchmarks.data.synthetic.copies import Copies
from benchmarks.data.synthetic.functions import normal, unnamed

HELD_OUT = ("lines", "repositories")
_FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
_LINE = re.compile(r"^<L\d+>(.*\n)", re.MULTILINE)
"""A line of the function; the others are what tests printed, and the end of the prompt."""


@dataclass(frozen=True, slots=True)
class _HeldOut:
    repositories: frozenset[str]
    functions: frozenset[tuple[str, str, str]]
    copies: Copies


def leaks(rows: Path, bugs: Path) -> list[str]:
    """A description of every leak in an export; `bugs` is the folder that `ramify bench synthesize` wrote."""
    known, held = _bugs(bugs)
    return [leak for row in _read(rows / "train.jsonl") for leak in _of_row(row, known, held)]


def copied(rows: Path, bugs: Path) -> list[str]:
    """The files of the rows from plain source (`benchmarks.flywheel.warmup`) that show a held-out function."""
    _, held = _bugs(bugs)
    return [row["provenance"]["source"] for row in _read(rows / "train.jsonl") if holds(held.copies, row)]


def apart(runs: Sequence[Path], bugs: Path) -> list[Path]:
    """The runs that may be learned from, as none of their rows is a leak."""
    known, held = _bugs(bugs)
    return [path for path in runs if not any(True for row in _rows(path) for _ in _of_row(row, known, held))]


def _rows(path: Path) -> list[Row]:
    with Run.read(path) as run:
        return [row for row in Edits()(run) if "provenance" in row]


def _bugs(folder: Path) -> tuple[Mapping[str, Mapping[str, Any]], _HeldOut]:
    """The bugs that may be learned from, by id, and what is held out."""
    known = {row["instance_id"]: row for row in _read(folder / "train.jsonl")}
    return known, _held_out([row for name in HELD_OUT for row in _read(folder / f"{name}.jsonl")])


def _of_row(row: Mapping[str, Any], known: Mapping[str, Any], held: _HeldOut) -> Iterator[str]:
    task = row["provenance"]["task"]
    bug = known.get(task)
    if bug is None:
        yield f"{task}: the row is not from a bug that may be trained on"
        return
    if bug["repo"] in held.repositories:
        yield f"{task}: the repository {bug['repo']} is held out"
    if (bug["repo"], bug["path"], bug["function"]) in held.functions:
        yield f"{task}: {bug['path']} {bug['function']} is held out"
    if held.copies.hold(unnamed(bug["code"])) or holds(held.copies, row):
        yield f"{task}: {bug['path']} {bug['function']} is a near copy of a held-out function"


def _held_out(bugs: Sequence[Mapping[str, Any]]) -> _HeldOut:
    return _HeldOut(
        frozenset(bug["repo"] for bug in bugs if bug["split"] == "repositories"),
        frozenset((bug["repo"], bug["path"], bug["function"]) for bug in bugs),
        Copies(unnamed(bug["code"]) for bug in bugs),
    )


def holds(copies: Copies, row: Mapping[str, Any]) -> bool:
    """Whether the function that a row's prompt shows is a copy of one of these. True if the function is cut off, so
    that it cannot be checked."""
    function = shown(row)
    return function is None or copies.hold(function)


def shown(row: Mapping[str, Any]) -> str | None:
    """The function that a row's prompt shows, in the form of `unnamed`; None if it is not a whole function."""
    text = as_python("".join(_LINE.findall(row["prompt"][-1]["content"])))
    nodes = [node for node in ast.walk(parsed(text)) if isinstance(node, _FUNCTION)]
    return unnamed(normal(nodes[0])) if nodes else None


def _read(path: Path) -> list[dict[str, Any]]:
    return list(read_lines(path)) if path.exists() else []
