"""Leaks: whether anything that is held out got into the rows of a training.

A row is traced to the bug that it was made of. It is a leak where that bug's repository is held out, or where its
function is one that held-out bugs are in, or nearly a copy of one: as it was before it was broken, or as the row shows
it.

    python -m benchmarks.flywheel.leaks ROWS BUGS
"""

from __future__ import annotations

import ast
import json
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.ledger import read_lines
from benchmarks.synthetic.copies import Copies
from benchmarks.synthetic.functions import normal

__all__ = ["HELD_OUT", "copied", "leaks"]

HELD_OUT = ("lines", "repositories")
_NUMBER = re.compile(r"^<L\d+>", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _HeldOut:
    repositories: frozenset[str]
    functions: frozenset[tuple[str, str, str]]
    copies: Copies


def leaks(rows: Path, bugs: Path) -> list[str]:
    """Every leak of the rows in the folder of an export, in words; `bugs` is what `ramify bench synthesize` wrote."""
    held = _held_out([row for name in HELD_OUT for row in _read(bugs / f"{name}.jsonl")])
    known = {row["instance_id"]: row for row in _read(bugs / "train.jsonl")}
    return [leak for row in _read(rows / "train.jsonl") for leak in _of_row(row, known, held)]


def copied(rows: Path, bugs: Path) -> list[str]:
    """The files of all rows from plain source (`benchmarks.flywheel.warmup`) that show a function that is held out."""
    held = _held_out([row for name in HELD_OUT for row in _read(bugs / f"{name}.jsonl")])
    return [row["provenance"]["source"] for row in _read(rows / "train.jsonl") if held.copies.hold(_shown(row))]


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
    if any(map(held.copies.hold, (bug["code"], _shown(row)))):
        yield f"{task}: {bug['path']} {bug['function']} is nearly a copy of a function that is held out"


def _held_out(bugs: Sequence[Mapping[str, Any]]) -> _HeldOut:
    return _HeldOut(
        frozenset(bug["repo"] for bug in bugs if bug["split"] == "repositories"),
        frozenset((bug["repo"], bug["path"], bug["function"]) for bug in bugs),
        Copies([bug["code"] for bug in bugs]),
    )


def _shown(row: Mapping[str, Any]) -> str:
    """The function that a row's prompt shows, as `normal` writes it; the text where it was cut off."""
    text = _NUMBER.sub("", row["prompt"][-1]["content"]).removesuffix("<fix>\n")
    try:
        node = ast.parse(textwrap.dedent(text)).body[0]
    except (SyntaxError, IndexError):
        return text
    return normal(node) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else text


def _read(path: Path) -> list[dict[str, Any]]:
    return list(read_lines(path)) if path.exists() else []


def main(rows: str, bugs: str) -> int:
    """Print every leak; 1 where there is one."""
    found = leaks(Path(rows), Path(bugs))
    sys.stdout.write(json.dumps({"leaks": len(found), "first": found[:5]}) + "\n")
    return int(bool(found))


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:3]))
