"""Writes the synthetic bugs of several repositories to a folder, with a file of instances for each split."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agent.build.sandboxes import make_provider
from agent.errors import UsageError
from agent.files import write_atomically
from agent.learning.export.writing import new_folder
from agent.settings import Settings
from benchmarks.data.synthetic.making import Material, Recipe, rows
from benchmarks.data.synthetic.splitting import NAMES, Splitting


def synthesize(
    repositories: Sequence[Path],
    recipe: Recipe,
    splitting: Splitting,
    out: Path,
    *,
    tell: Callable[[str], None] = lambda line: None,
) -> list[dict[str, Any]]:
    """Break these repositories and write the bugs to `out`, with a file for each split (`train.jsonl`, ...). Returns
    the rows. If a repository cannot be used, the bugs of the repositories before it are written nevertheless.

    Raises:
        UsageError: the folder is not empty, two repositories have the same name, a repository to hold out is not among
            them, or the tests of one cannot be run.
        sandboxes.SandboxError: the sandbox failed.
    """
    folder = new_folder(out)
    with TemporaryDirectory() as place, ExitStack() as held:
        materials = [Material.read(repository, Path(place) / "repositories") for repository in repositories]
        _check([material.name for material in materials], splitting)
        splits = splitting.of({material.name: material.functions() for material in materials})
        provider = make_provider(Settings(sandbox=recipe.sandbox), Path(place) / "store")
        held.callback(provider.close)
        bugs = list[dict[str, Any]]()
        held.callback(_write, folder, bugs)
        for material in materials:
            new = list(rows(material, recipe, provider, splits, folder))
            tell(f"{material.name}: {len(new)} bugs")
            bugs += new
    return bugs


def table(bugs: Sequence[Mapping[str, Any]]) -> str:
    """The number of bugs of each kind, and how many of them one edit of `mutate` would fix."""
    counts = Counter(row["operator"] for row in bugs)
    within = Counter(row["operator"] for row in bugs if row["repairable"])
    lines = [f"{'kind':<12}{'bugs':>6}{'within reach of one edit':>26}"]
    lines += [f"{kind:<12}{count:>6}{within[kind]:>26}" for kind, count in sorted(counts.items())]
    return "\n".join([*lines, f"{'all':<12}{len(bugs):>6}{sum(within.values()):>26}"]) + "\n"


def _write(folder: Path, bugs: Sequence[Mapping[str, Any]]) -> None:
    for name in NAMES:
        lines = [json.dumps(row) for row in bugs if row["split"] == name]
        if lines:
            write_atomically(folder / f"{name}.jsonl", ("\n".join(lines) + "\n").encode())


def _check(names: Sequence[str], splitting: Splitting) -> None:
    if duplicates := sorted(name for name, count in Counter(names).items() if count > 1):
        raise UsageError(
            f"two repositories are called {duplicates[0]!r}: rename a folder, since bugs are named after it"
        )
    if unknown := sorted(splitting.repositories - set(names)):
        raise UsageError(f"--hold-out {unknown[0]!r} is not one of the repositories: {', '.join(names)}")
