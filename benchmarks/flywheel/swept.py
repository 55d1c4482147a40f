"""Finds out once, for all orders, which of the edits that `mutate` enumerates for a bug fix it.

The edits of a bug are those that a search at the broken state would try, by the same localisation. Whether one fixes
the bug is decided by the bug's own tests in a sandbox (`copied.py`), but not in a new process each time. What a search
of depth 1 needs with some order is then the place of the first edit that fixes the bug."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from agent.actions import Edit
from agent.errors import UsageError
from agent.measure import Outcome
from agent.measure.probing.spectrum import Spectrum
from agent.policy.mutate.candidates import compiles
from benchmarks.data.synthetic.making import Material, Recipe, statement
from benchmarks.data.synthetic.mutants import Mutant, drawn, mutants
from benchmarks.data.synthetic.sweep import lines_of, parsed
from benchmarks.flywheel.pieces import Spot, edited, piece, spots
from sandboxes import Provider

PROGRAM = "/tmp/ramify-copied.py"  # noqa: S108 - the sandbox's own
ORDER, REPORT = "/tmp/ramify-copied.json", "/tmp/ramify-copied.jsonl"  # noqa: S108 - the same
LIMIT_S = 7200.0
KINDS = frozenset(["comparison", "arithmetic", "condition", "number", "truth", "name", "twin", "arguments"])
"""Operators that `mutate` can sometimes undo (`benchmarks.data.synthetic.operators`)."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A bug and the results of its tests."""

    row: Mapping[str, Any]
    """As in `benchmarks.data.synthetic.writing`, without a bundle."""
    right: str
    """The original file."""
    wrong: str
    """The file with the bug."""
    piece: Mapping[str, Any]
    """The function with the bug, as from `benchmarks.flywheel.pieces`."""
    failing: tuple[str, ...]
    messages: Mapping[str, str]
    spectrum: Spectrum = field(repr=False)


def broken(
    material: Material,
    recipe: Recipe,
    provider: Provider,
    splits: Mapping[tuple[str, str, str], str],
    part: slice = slice(None),
) -> Iterator[Broken]:
    """The bugs of a repository that its tests notice, among this part of at most `recipe.count` mutants.

    Raises:
        UsageError: the tests cannot be run, or none passes.
    """
    all_mutants = (mutant for path, data in sorted(material.files.items()) for mutant in mutants(path, data))
    in_splits = [m for m in all_mutants if splits.get((material.name, m.function.path, m.function.name))]
    of_kinds = [mutant for mutant in in_splits if mutant.operator in KINDS]
    chosen = list[tuple[Mutant, Mapping[str, Any]]]()
    for mutant in drawn(of_kinds, Random(f"{recipe.seed}:{material.name}"), recipe.a_function):
        exchanged = _piece_of(mutant) if len(chosen) < recipe.count and compiles(mutant.wrong) else None
        if exchanged:
            chosen.append((mutant, exchanged))
    base, *results = _run(material, recipe, provider, [{"bug": exchanged} for _, exchanged in chosen[part]])
    steady = {test for test, outcome in base["outcomes"].items() if outcome == "passed"}
    for (mutant, exchanged), result in zip(chosen[part], results, strict=True):
        failing = tuple(t for t, outcome in result.get("outcomes", {}).items() if outcome == "failed" and t in steady)
        if failing and len(failing) < len(steady):
            split = splits[material.name, mutant.function.path, mutant.function.name]
            row = _row(material, mutant, failing, split)
            messages = {test: result["messages"].get(test, "") for test in failing}
            right, wrong = mutant.right.decode(), mutant.wrong.decode()
            yield Broken(row, right, wrong, exchanged, failing, messages, _spectrum(base, result))


def mending(
    material: Material,
    recipe: Recipe,
    provider: Provider,
    bugs: Sequence[tuple[Broken, Sequence[Sequence[Edit]]]],
    stop: bool = False,
) -> list[list[bool | None]]:
    """Whether each edit fixes its bug; with `stop`, only up to the first that does. None: the edit is not within one
    function, or cannot be made in a running process, while a search would have tried it."""
    known = {path: spots(data.decode()) for path, data in material.files.items() if compiles(data)}
    pieces_of = [_all_pieces(material, known, bug, edits) for bug, edits in bugs]
    jobs = [
        {
            "bug": bug.piece,
            "failing": bug.failing,
            "candidates": [candidate for candidate in pieces if candidate is not None],
            "stop": stop,
        }
        for (bug, _), pieces in zip(bugs, pieces_of, strict=True)
    ]
    _, *results = _run(material, recipe, provider, jobs)
    return [
        _placed(pieces, result.get("candidates", []), stop) for pieces, result in zip(pieces_of, results, strict=True)
    ]


def _placed(
    pieces: Sequence[Sequence[Mapping[str, Any]] | None], results: Sequence[Mapping[str, Any]], stop: bool
) -> list[bool | None]:
    """The results at the places of their candidates among all. With `stop`, the list ends with the last result."""
    placed, waiting = list[bool | None](), list(reversed(results))
    for candidate in pieces:
        if not waiting and (stop or not results):
            break
        result = waiting.pop() if candidate is not None else {"unfit": ""}
        placed.append(None if "unfit" in result else bool(result.get("passes", False)))
    return placed


def _run(
    material: Material, recipe: Recipe, provider: Provider, jobs: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    variables, arguments = parsed(recipe.test_command)
    order = {
        "arguments": arguments,
        "cpu_s": recipe.timeout_s,
        "sources": sorted(material.files),
        "jobs": list(jobs),
    }
    with provider.at(provider.create(recipe.workspace(material.folder))) as box:
        box.write(PROGRAM, (Path(__file__).parent / "copied.py").read_bytes())
        box.write(ORDER, json.dumps(order).encode())
        done = box.exec(["env", *variables, "python3", "-B", PROGRAM, ORDER, REPORT], timeout_s=LIMIT_S)
        lines = lines_of(box, REPORT)
    if len(lines) <= len(jobs) or not json.loads(lines[0]).get("outcomes"):
        stderr = done.stderr[-500:].decode(errors="replace").strip()
        raise UsageError(
            f"{material.name}: the tests cannot be run by {recipe.test_command!r}; the sandbox's python3 needs pytest "
            f"and what they import (--requirement, or --image): {stderr}"
        )
    return [json.loads(line) for line in lines]


def _all_pieces(
    material: Material, known: Mapping[str, Sequence[Spot]], bug: Broken, edits: Sequence[Sequence[Edit]]
) -> list[list[Mapping[str, Any]] | None]:
    """The result of `_pieces` for each candidate; `known` has the places of functions in the running files."""
    broken_path = str(bug.row["path"])
    places = {path: (old, spots(bug.wrong) if path == broken_path else old) for path, old in known.items()}
    return [_pieces(material, places, bug, candidate) for candidate in edits]


def _pieces(
    material: Material, places: Mapping[str, tuple[Sequence[Spot], Sequence[Spot]]], bug: Broken, edits: Sequence[Edit]
) -> list[Mapping[str, Any]] | None:
    """The functions that edits of the broken state change, one in each file; None if they change more than that.
    `places` has the places of functions in the running files and in those of the broken state."""
    pieces = list[Mapping[str, Any]]()
    for path in sorted({edit.path for edit in edits}):
        before = bug.wrong if path == bug.row["path"] else material.files[path].decode()
        mine = [edit for edit in edits if edit.path == path]
        after, lines = edited(before, mine), [edit.line or 0 for edit in mine]
        holding = (
            (old, new)
            for old, new in zip(*places[path], strict=True)
            if new.start <= min(lines) and max(lines) <= new.last
        )
        exchanged = next((piece(path, old, new, before, after) for old, new in holding), None)
        if exchanged is None:
            return None
        pieces.append(exchanged)
    return pieces


def _piece_of(mutant: Mutant) -> Mapping[str, Any] | None:
    right, wrong = mutant.right.decode(), mutant.wrong.decode()
    spot = next((spot for spot in spots(right) if spot.first == mutant.function.first), None)
    return piece(mutant.function.path, spot, spot, right, wrong) if spot else None


def _spectrum(base: Mapping[str, Any], traced: Mapping[str, Any]) -> Spectrum:
    """The spectrum of all tests. A test that does not reach the bug has the outcome and lines that it has without
    it."""
    outcomes = {**base["outcomes"], **traced["outcomes"]}
    lines = {**base["lines"], **{test: traced["lines"].get(test, {}) for test in traced["outcomes"]}}
    return Spectrum(
        {test: Outcome(outcome) for test, outcome in outcomes.items()},
        {test: {path: tuple(sorted(known)) for path, known in files.items()} for test, files in lines.items()},
    )


def _row(material: Material, mutant: Mutant, failing: Sequence[str], split: str) -> dict[str, Any]:
    return {
        "instance_id": f"{material.name}-{mutant.id}",
        "repo": material.name,
        "problem_statement": statement(failing),
        "operator": mutant.operator,
        "path": mutant.function.path,
        "function": mutant.function.name,
        "line": mutant.line,
        "code": mutant.function.text,
        "failing": list(failing),
        "split": split,
    }
