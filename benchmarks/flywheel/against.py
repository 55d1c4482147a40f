"""Compares swept results with whole searches, by `ramify bench run`, for some of the same bugs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from agent.policy.edit.ranking import Ranking
from benchmarks.data.synthetic.making import Material, Recipe, row_of
from benchmarks.data.synthetic.mutants import mutants
from benchmarks.flywheel.ranked_edits import Tried
from benchmarks.self_training import scores
from benchmarks.self_training.playing import Conditions, play
from benchmarks.self_training.scores import Played


def against(
    material: Material,
    recipe: Recipe,
    bugs: Sequence[Tried],
    rankings: Mapping[str, tuple[Ranking, Sequence[str]]],
    width: int,
    out: Path,
) -> list[tuple[str, str, Played, Played]]:
    """Tuples of the ranking, the bug, the swept result and the search's result. `rankings` come with the settings that
    make a search use them.

    Raises:
        agent.errors.RamifyError: a search failed.
    """
    source = out / f"{material.name}.jsonl"
    if not source.exists():
        _write(material, recipe, bugs, source)
    settings = [f"sandbox.{name}={value}" for name, value in _sandbox(recipe)]
    conditions = Conditions(width, width, settings=("search.depth=1", *settings))
    pairs = []
    for name, (ranking, flags) in rankings.items():
        searched = scores.read(play(source, out / material.name / name, flags, conditions))
        pairs += [
            (name, bug_id, bug.played(ranking), searched[bug_id])
            for bug in bugs
            for bug_id in (bug.row["instance_id"],)
        ]
    return pairs


def _write(material: Material, recipe: Recipe, bugs: Sequence[Tried], source: Path) -> None:
    by_name = {f"{material.name}-{m.id}": m for path, data in material.files.items() for m in mutants(path, data)}
    lines = []
    for bug in bugs:
        name = str(bug.row["instance_id"])
        lines.append(json.dumps(row_of(material, recipe, by_name[name], bug.row["failing"], [], source.parent)))
    source.parent.mkdir(parents=True, exist_ok=True)
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _sandbox(recipe: Recipe) -> list[tuple[str, str]]:
    env = ", ".join(f"{key}={value!r}" for key, value in recipe.sandbox.env.items())
    return [("kind", recipe.sandbox.kind), ("env", f"{{{env}}}")]
