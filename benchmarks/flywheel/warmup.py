"""Makes warm-up rows for the compact policy from plain Python source, without running tests.

Each function is broken by the operators for synthetic bugs (`benchmarks.data.synthetic`), and the row is the edit that
restores it. From them a model learns what functions look like, and what looks wrong in one. Invariant: no row is from a
function of a repository that is kept apart, from a near copy of one (regardless of the names of variables), or from a
folder with the name of such a repository.
"""

from __future__ import annotations

import json
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from io import StringIO
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any

from agent.actions import Edit
from agent.measure.diffs import common_ends
from agent.policy.edit.context import contexts
from agent.policy.mutate.candidates import compiles
from benchmarks.data.synthetic.copies import Copies
from benchmarks.data.synthetic.functions import Function, functions, unnamed
from benchmarks.data.synthetic.mutants import LINES, Mutant, mutants
from benchmarks.flywheel.leaks import holds
from benchmarks.flywheel.sharing import end_with_parent
from benchmarks.flywheel.swept import KINDS

LARGEST = 300_000
"""The largest file that is read, in bytes."""
LONGEST = 1500
"""The longest function that is broken, in characters."""


def write(
    out: Path,
    folders: Sequence[Path],
    apart: Sequence[Path],
    held_out: Sequence[str],
    *,
    most: int,
    a_function: int,
    workers: int,
    seed: int,
) -> dict[str, Any]:
    """Write at most `most` rows, and `a_function` of each function, in the format of an export to the new folder `out`,
    and return their manifest. Nothing is learned from the repositories `apart`, nor from the functions `held_out`, as
    text from `benchmarks.data.synthetic.functions.normal`."""
    out.mkdir(parents=True)
    held = [*held_out, *(function.text for folder in apart for function in _functions(folder))]
    work = partial(rows, copies=Copies(map(unnamed, held)), a_function=a_function, seed=seed)
    count, written = 0, set[bytes]()
    pool = get_context("spawn").Pool(workers, end_with_parent)
    with pool, (out / "train.jsonl").open("w", encoding="utf-8") as file:
        for of_file in pool.imap(work, _files(folders, apart, seed), chunksize=4):
            for name, lines in of_file:
                if name not in written and count < most:
                    written.add(name)
                    count += len(lines)
                    file.writelines(lines)
            if count >= most:
                break
    counts = {"policy": {"warm-up": count}}
    manifest = {"format": "edit", "rows": count, "functions": len(written), "counts": counts}
    (out / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    return manifest


def _files(folders: Sequence[Path], apart: Sequence[Path], seed: int) -> list[Path]:
    """The Python files in random order, without those whose path has the name of a repository that is kept apart."""
    names = {folder.name for folder in apart}
    paths = sorted({path for folder in folders for path in folder.rglob("*.py")})
    paths = [path for path in paths if not names & {path.stem, *path.parts}]
    Random(seed).shuffle(paths)
    return paths


def rows(path: Path, copies: Copies, a_function: int, seed: int) -> list[tuple[bytes, list[str]]]:
    """The digest of each function of a file that may be learned from, and its rows as JSON lines."""
    by_function = []
    for function, text in _texts(path):
        without_names = unnamed(function.text)
        if not copies.hold(without_names):
            rng = Random(f"{seed}/{function.text}")
            fit = (row for row in broken(function, text, a_function, rng) if not holds(copies, row))
            lines = [json.dumps(row) + "\n" for row in fit]
            if lines:
                by_function.append((blake2b(without_names.encode("utf-8", "replace"), digest_size=8).digest(), lines))
    return by_function


def broken(function: Function, text: str, count: int, rng: Random) -> Iterator[Mapping[str, Any]]:
    """At most `count` rows of a function, by random operators; `text` is a file with this function only."""
    waiting: defaultdict[str, list[Mutant]] = defaultdict(list)
    for mutant in mutants(function.path, text.encode()):
        if mutant.operator in KINDS:
            waiting[mutant.operator].append(mutant)
    for _ in range(count):
        if not waiting:
            return
        group = waiting[name := rng.choice(sorted(waiting))]
        mutant = group.pop(rng.randrange(len(group)))
        if not group:
            del waiting[name]
        if compiles(mutant.wrong) and (row := _row(mutant)):
            yield row


def _row(mutant: Mutant) -> dict[str, Any] | None:
    edit = _restoring(mutant)
    [context] = contexts(edit.path, mutant.wrong, [edit.line or 0])
    if not edit.old or not context.holds([edit]):
        return None
    return {
        "prompt": [{"role": "user", "content": context.prompt}],
        "completion": [{"role": "assistant", "content": context.action([edit])}],
        "provenance": {"source": mutant.function.path, "operator": mutant.operator},
    }


def _restoring(mutant: Mutant) -> Edit:
    wrong, right = (list(StringIO(data.decode())) for data in (mutant.wrong, mutant.right))
    head, tail = common_ends(wrong, right)
    old, new = "".join(wrong[head : len(wrong) - tail]), "".join(right[head : len(right) - tail])
    return Edit(mutant.function.path, old, new, head + 1)


def _texts(path: Path) -> Iterator[tuple[Function, str]]:
    """The functions and methods of a file, each with the text of a file that has only this function."""
    for function, text in _sources(path):
        method = text.startswith("    ") and not text.startswith("     ")
        if (method or not text[0].isspace()) and LINES[0] <= text.count("\n") and len(text) <= LONGEST:
            yield function, f"class _:\n{text}" if method else text


def _functions(folder: Path) -> Iterator[Function]:
    for path in folder.rglob("*.py"):
        yield from (function for function, _ in _sources(path))


def _sources(path: Path) -> Iterator[tuple[Function, str]]:
    """The functions of a file with their source; nothing if the file is very large or not Python."""
    data = path.read_bytes() if path.is_file() and path.stat().st_size <= LARGEST else b""
    try:
        with warnings.catch_warnings(action="ignore"):
            known, lines = list(functions(str(path), data)), list(StringIO(data.decode()))
    except (ValueError, SyntaxError, RecursionError):
        return
    for function in known:
        text = "".join(lines[function.first - 1 : function.last])
        yield function, text if text.endswith("\n") else text + "\n"
