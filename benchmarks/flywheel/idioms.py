"""Generates functions in which the same few idioms recur under other names.

A function combines one to three idioms. Three repositories are made: `seen` with some idioms, `combined` with other
combinations of the same idioms, and `unseen` with idioms that occur nowhere else. What a policy learns on the first is
useful in the second, and hardly in the third.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.data import clones

IDIOMS: tuple[str, ...] = (
    "{r} = 0\nfor {i} in {xs}:\n    if {i} > {k}:\n        {r} += 1",
    "{r} = 0\nfor {i} in {xs}:\n    if {i} % 2 == 0:\n        {r} += {i}",
    "{r} = {xs}[0]\nfor {i} in {xs}:\n    if {i} > {r}:\n        {r} = {i}",
    "{r} = {xs}[0]\nfor {i} in {xs}[1:]:\n    {r} = min({r}, {i})",
    "{r} = 0\n{i} = {k}\nwhile {i} > 0:\n    {r} += {i} % 10\n    {i} //= 10",
    "{r} = 1\nfor {i} in range(1, {k} + 1):\n    {r} *= {i}",
    "{r} = len([{i} for {i} in {xs} if {i} >= {k}])",
    "{r} = sum({xs}) // len({xs})",
    "{r} = max({xs}) - min({xs})",
    "{r} = {k}\nif {r} < 0:\n    {r} = -{r}",
    "{r} = max(0, min({k}, len({xs}) - 1))",
    "{r} = -1\nfor {j}, {i} in enumerate({xs}):\n    if {i} == {k}:\n        {r} = {j}\n        break",
)
UNSEEN: tuple[str, ...] = (
    "{r} = {xs}[0]\nfor {i} in {xs}[1:]:\n    {r} ^= {i}",
    "{r} = 0\nfor {i}, {j} in zip({xs}, {xs}[1:]):\n    if {j} < {i}:\n        {r} += 1",
    "{r} = sorted({xs})[len({xs}) // 2]",
    "{r} = 0\nfor {i} in reversed({xs}):\n    {r} = 2 * {r} + {i} % 2",
)
NAMES = ("amount", "base", "best", "count", "data", "depth", "each", "edge", "flow", "gain", "item", "level", "limit",
         "mark", "mass", "node", "part", "place", "point", "rank", "rate", "row", "score", "size", "span", "step",
         "sum_", "term", "total", "unit", "value", "weight", "width")  # fmt: skip
INPUTS: tuple[tuple[list[int], int], ...] = (
    ([1, 2, 3, 4], 2), ([5], 5), ([3, -1, 4, 1, 5], 0), ([2, 2, 7], 13), ([9, 8, 1, 0], 3), ([-4, 6], 1),
)  # fmt: skip
Named = tuple[str, str]
"""The name and the text of a function."""
A_MODULE = 4
"""The number of functions in a file."""


def write(folder: Path, count: int, rng: Random) -> tuple[Path, Path, Path]:
    """Write the git repositories `seen` (with `count` functions), `combined` and `unseen` (with half as many)."""
    sizes = {"seen": count, "combined": max(1, count // 2), "unseen": max(1, count // 2)}
    made = []
    for name, size in sizes.items():
        known = UNSEEN if name == "unseen" else IDIOMS
        made.append(repository(folder / name, [_function(f"{name}_{n}", known, rng) for n in range(size)], INPUTS))
    return made[0], made[1], made[2]


def plain(folder: Path, count: int, rng: Random) -> Path:
    """Write a folder with `count` further functions from the seen idioms, without tests."""
    return untested(folder, [_function(f"seen_{n}", IDIOMS, rng) for n in range(count)])


def repository(folder: Path, functions: Sequence[Named], inputs: Sequence[tuple[Any, ...]]) -> Path:
    """Write a git repository with these functions, and with tests that call each of them with these inputs."""
    folder.mkdir(parents=True)
    for number, some in enumerate(_modules(functions)):
        _module(folder, f"m{number}", some, inputs)
    clones.create(folder)
    return folder


def untested(folder: Path, functions: Sequence[Named]) -> Path:
    """Write a folder with these functions, without tests."""
    folder.mkdir(parents=True)
    for number, some in enumerate(_modules(functions)):
        (folder / f"p{number}.py").write_text("\n\n".join(text for _, text in some), encoding="utf-8")
    return folder


def _modules(functions: Sequence[Named]) -> list[Sequence[Named]]:
    return [functions[start : start + A_MODULE] for start in range(0, len(functions), A_MODULE)]


def _function(name: str, idioms: Sequence[str], rng: Random) -> Named:
    """The name and the text of a function; all its variables have different names."""
    chosen = rng.sample(idioms, rng.randint(1, min(3, len(idioms))))
    names = rng.sample(NAMES, 2 + 3 * len(chosen))
    xs, k, results, lines = names.pop(), names.pop(), [], []
    for idiom in chosen:
        r, i, j = names.pop(), names.pop(), names.pop()
        results.append(r)
        lines += idiom.format(xs=xs, k=k, r=r, i=i, j=j).splitlines()
    body = "".join(f"    {line}\n" for line in [*lines, f"return {', '.join(results)}"])
    return name, f"def {name}({xs}, {k}):\n{body}"


def _module(place: Path, name: str, functions: Sequence[Named], inputs: Sequence[tuple[Any, ...]]) -> None:
    text = "\n\n".join(text for _, text in functions)
    (place / f"{name}.py").write_text(text, encoding="utf-8")
    module: dict[str, Any] = {}
    exec(compile(text, name, "exec"), module)  # noqa: S102 - our own text, to compute the expected values
    tests = [f"from {name} import {', '.join(function for function, _ in functions)}\n"]
    for function, _ in functions:
        asserts = "".join(
            f"    assert {function}({', '.join(map(repr, given))}) == {module[function](*deepcopy(given))!r}\n"
            for given in inputs
        )
        tests.append(f"\n\ndef test_{function}():\n{asserts}")
    (place / f"test_{name}.py").write_text("".join(tests), encoding="utf-8")
