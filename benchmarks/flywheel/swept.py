"""Swept: what each edit that `mutate` enumerates for a bug comes to, found once for all orders in which they are tried.

The edits of a bug are those that a search at the broken state would try, by the same localisation; whether one mends it
is said by the bug's own tests in a sandbox (`copied.py`), only not in a process of its own each time. What a search of
depth 1 needs under an order is then the place of the first edit that mends.
"""

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
from benchmarks.data.synthetic.sweep import arguments_of
from benchmarks.flywheel.pieces import Spot, edited, piece, spots
from sandboxes import Provider, Sandbox

__all__ = ["Broken", "broken", "mending"]

PROGRAM = "/tmp/ramify-copied.py"  # noqa: S108 - the sandbox's own
ORDER, REPORT = "/tmp/ramify-copied.json", "/tmp/ramify-copied.jsonl"  # noqa: S108 - the same
LIMIT_S = 7200.0
KINDS = frozenset(["comparison", "arithmetic", "condition", "number", "truth", "name", "twin", "arguments"])
"""Operators that `mutate` can undo at times (`benchmarks.data.synthetic.operators`)."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A bug, and what its tests do."""

    row: Mapping[str, Any]
    """As of `benchmarks.data.synthetic.writing`, without a bundle."""
    right: str
    """The file as it was."""
    wrong: str
    """The file with the bug in it."""
    piece: Mapping[str, Any]
    """The function with the bug, as of `benchmarks.flywheel.pieces`."""
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
    """Bugs of a repository that its tests notice, of `recipe.count` mutants at most, and of this part of them.

    Raises:
        UsageError: its tests cannot be run, or none passes.
    """
    found = [mutant for path, data in sorted(material.files.items()) for mutant in mutants(path, data)]
    splitted = [m for m in found if splits.get((material.name, m.function.path, m.function.name))]
    known = [mutant for mutant in splitted if mutant.operator in KINDS]
    chosen = list[tuple[Mutant, Mapping[str, Any]]]()
    for mutant in drawn(known, Random(f"{recipe.seed}:{material.name}"), recipe.a_function):
        exchanged = _piece_of(mutant) if len(chosen) < recipe.count and compiles(mutant.wrong) else None
        if exchanged:
            chosen.append((mutant, exchanged))
    base, *said = _run(material, recipe, provider, [{"bug": exchanged} for _, exchanged in chosen[part]])
    steady = {test for test, outcome in base["outcomes"].items() if outcome == "passed"}
    for (mutant, exchanged), told in zip(chosen[part], said, strict=True):
        failing = tuple(t for t, outcome in told.get("outcomes", {}).items() if outcome == "failed" and t in steady)
        if failing and len(failing) < len(steady):
            split = splits[material.name, mutant.function.path, mutant.function.name]
            row = _row(material, mutant, failing, split)
            messages = {test: told["messages"].get(test, "") for test in failing}
            right, wrong = mutant.right.decode(), mutant.wrong.decode()
            yield Broken(row, right, wrong, exchanged, failing, messages, _spectrum(base, told))


def mending(
    material: Material,
    recipe: Recipe,
    provider: Provider,
    bugs: Sequence[tuple[Broken, Sequence[Sequence[Edit]]]],
    stop: bool = False,
) -> list[list[bool | None]]:
    """Whether each edit mends its bug; up to the first that does, where it is to `stop`. None: the edit is not within
    one function, or cannot be exchanged in a running process; a search would have tried it."""
    known = {path: spots(data.decode()) for path, data in material.files.items() if compiles(data)}
    made = [_all_pieces(material, known, bug, edits) for bug, edits in bugs]
    jobs = [
        {
            "bug": bug.piece,
            "failing": bug.failing,
            "candidates": [each for each in pieces if each is not None],
            "stop": stop,
        }
        for (bug, _), pieces in zip(bugs, made, strict=True)
    ]
    _, *said = _run(material, recipe, provider, jobs)
    return [_placed(pieces, told.get("candidates", []), stop) for pieces, told in zip(made, said, strict=True)]


def _placed(
    pieces: Sequence[Sequence[Mapping[str, Any]] | None], told: Sequence[Mapping[str, Any]], stop: bool
) -> list[bool | None]:
    """What was told of those that could be exchanged, at the places of all. It may `stop` with the last that was."""
    found, waiting = list[bool | None](), list(reversed(told))
    for each in pieces:
        if not waiting and (stop or not told):
            break
        answer = waiting.pop() if each is not None else {"unfit": ""}
        found.append(None if "unfit" in answer else bool(answer.get("passes", False)))
    return found


def _run(
    material: Material, recipe: Recipe, provider: Provider, jobs: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    order = {
        "arguments": arguments_of(recipe.test_command),
        "cpu_s": recipe.timeout_s,
        "sources": sorted(material.files),
        "jobs": list(jobs),
    }
    with provider.at(provider.create(recipe.workspace(material.folder))) as box:
        box.write(PROGRAM, (Path(__file__).parent / "copied.py").read_bytes())
        box.write(ORDER, json.dumps(order).encode())
        done = box.exec(["python3", "-B", PROGRAM, ORDER, REPORT], timeout_s=LIMIT_S)
        lines = _report(box)
    if len(lines) <= len(jobs) or not json.loads(lines[0]).get("outcomes"):
        said = done.stderr[-500:].decode(errors="replace").strip()
        raise UsageError(
            f"{material.name}: the tests cannot be run by {recipe.test_command!r}; the sandbox's python3 needs pytest "
            f"and what they import (--requirement, or --image): {said}"
        )
    return [json.loads(line) for line in lines]


def _report(box: Sandbox) -> list[bytes]:
    try:
        return box.read(REPORT).splitlines()
    except OSError:
        return []


def _all_pieces(
    material: Material, known: Mapping[str, Sequence[Spot]], bug: Broken, edits: Sequence[Sequence[Edit]]
) -> list[list[Mapping[str, Any]] | None]:
    """As `_pieces`, of each of the edits; `known` is where functions stand in the files that run."""
    path = str(bug.row["path"])
    standing = {each: (found, spots(bug.wrong) if each == path else found) for each, found in known.items()}
    return [_pieces(material, standing, bug, each) for each in edits]


def _pieces(
    material: Material,
    standing: Mapping[str, tuple[Sequence[Spot], Sequence[Spot]]],
    bug: Broken,
    edits: Sequence[Edit],
) -> list[Mapping[str, Any]] | None:
    """The functions that edits of the broken state change, one a file; None where they are more than that. `standing`
    is where functions stand in the files that run, and in those of the broken state."""
    found = list[Mapping[str, Any]]()
    for path in sorted({each.path for each in edits}):
        before = bug.wrong if path == bug.row["path"] else material.files[path].decode()
        mine = [each for each in edits if each.path == path]
        after, lines = edited(before, mine), [each.line or 0 for each in mine]
        holding = (
            (old, new)
            for old, new in zip(*standing[path], strict=True)
            if new.start <= min(lines) and max(lines) <= new.last
        )
        exchanged = next((piece(path, old, new, before, after) for old, new in holding), None)
        if exchanged is None:
            return None
        found.append(exchanged)
    return found


def _piece_of(mutant: Mutant) -> Mapping[str, Any] | None:
    right, wrong = mutant.right.decode(), mutant.wrong.decode()
    spot = next((each for each in spots(right) if each.first == mutant.function.first), None)
    return piece(mutant.function.path, spot, spot, right, wrong) if spot else None


def _spectrum(base: Mapping[str, Any], told: Mapping[str, Any]) -> Spectrum:
    """Of all tests: those that do not reach the bug do what they do without it."""
    outcomes = {**base["outcomes"], **told["outcomes"]}
    lines = {**base["lines"], **{test: told["lines"].get(test, {}) for test in told["outcomes"]}}
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
