"""Leaks: whether anything that is held out got into the rows of a training.

A row is traced to the bug that it was made of. It is a leak where that bug's repository is held out, or where its
function is one that held-out bugs are in, or nearly a copy of one, whatever the variables are called: as it was before
it was broken, or as the row shows it.

    python -m benchmarks.flywheel.leaks ROWS BUGS
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.learning.export import Row
from agent.learning.export.edits import Edits
from agent.policy.edit.numbering import parsed, spelled
from agent.run.run import Run
from benchmarks.data.jsonl_ledger import read_lines
from benchmarks.data.synthetic.copies import Copies
from benchmarks.data.synthetic.functions import normal, unnamed

__all__ = ["HELD_OUT", "apart", "copied", "holds", "leaks", "shown"]

HELD_OUT = ("lines", "repositories")
_FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
_LINE = re.compile(r"^<L\d+>", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _HeldOut:
    repositories: frozenset[str]
    functions: frozenset[tuple[str, str, str]]
    copies: Copies


def leaks(rows: Path, bugs: Path) -> list[str]:
    """Every leak of the rows in the folder of an export, in words; `bugs` is what `ramify bench synthesize` wrote."""
    known, held = _bugs(bugs)
    return [leak for row in _read(rows / "train.jsonl") for leak in _of_row(row, known, held)]


def copied(rows: Path, bugs: Path) -> list[str]:
    """The files of all rows from plain source (`benchmarks.flywheel.warmup`) that show a function that is held out."""
    _, held = _bugs(bugs)
    return [row["provenance"]["source"] for row in _read(rows / "train.jsonl") if holds(held.copies, row)]


def apart(runs: Sequence[Path], bugs: Path) -> list[Path]:
    """Those of the runs that may be learned from: none of their rows would be a leak."""
    known, held = _bugs(bugs)
    return [path for path in runs if not any(True for row in _rows(path) for _ in _of_row(row, known, held))]


def _rows(path: Path) -> list[Row]:
    with Run.read(path) as run:
        return [row for row in Edits()(run) if "provenance" in row]


def _bugs(folder: Path) -> tuple[Mapping[str, Mapping[str, Any]], _HeldOut]:
    """Those that may be learned from, by their names, and what may not."""
    known = {row["instance_id"]: row for row in _read(folder / "train.jsonl")}
    return known, _held_out([row for name in HELD_OUT for row in _read(folder / f"{name}.jsonl")])


def _of_row(row: Mapping[str, Any], known: Mapping[str, Any], held: _HeldOut) -> Iterator[str]:
    task = row["provenance"]["task"]
    bug = known.get(task)
    if bug is None:
        yield f"{task}: the row is of no bug that may be trained on"
        return
    if bug["repo"] in held.repositories:
        yield f"{task}: the repository {bug['repo']} is held out"
    if (bug["repo"], bug["path"], bug["function"]) in held.functions:
        yield f"{task}: {bug['path']} {bug['function']} is held out"
    if held.copies.hold(unnamed(bug["code"])) or holds(held.copies, row):
        yield f"{task}: {bug['path']} {bug['function']} is nearly a copy of a function that is held out"


def _held_out(bugs: Sequence[Mapping[str, Any]]) -> _HeldOut:
    return _HeldOut(
        frozenset(bug["repo"] for bug in bugs if bug["split"] == "repositories"),
        frozenset((bug["repo"], bug["path"], bug["function"]) for bug in bugs),
        Copies(unnamed(bug["code"]) for bug in bugs),
    )


def holds(copies: Copies, row: Mapping[str, Any]) -> bool:
    """Whether the function that a row's prompt shows is a copy of one of these; also where it was cut off, so that
    nobody can say."""
    function = shown(row)
    return function is None or copies.hold(function)


def shown(row: Mapping[str, Any]) -> str | None:
    """The function that a row's prompt shows, as of `unnamed`; None where it is no whole function."""
    text = spelled(_LINE.sub("", row["prompt"][-1]["content"]).removesuffix("<fix>\n"))
    found = [node for node in ast.walk(parsed(text)) if isinstance(node, _FUNCTION)]
    return unnamed(normal(found[0])) if found else None


def _read(path: Path) -> list[dict[str, Any]]:
    return list(read_lines(path)) if path.exists() else []


def main(rows: str, bugs: str) -> int:
    """Print every leak; 1 where there is one."""
    found = leaks(Path(rows), Path(bugs))
    sys.stdout.write(json.dumps({"leaks": len(found), "first": found[:5]}) + "\n")
    return int(bool(found))


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:3]))
