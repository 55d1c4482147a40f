"""Generates functions whose source does not show what is right.

Each line computes one value of the result from the two parameters, by an operator, a variable and a number that are
drawn: any other would be as likely. Only the tests know what a function has to return, so a broken one can be
recognised only by what a failing test prints.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

from benchmarks.flywheel.idioms import NAMES, Named, repository, untested

SEEN, APART = "seen", "apart"
"""The repository that may be learned from, and the one that is held out."""
FORMS = ("{x} + {n}", "{x} - {n}", "{x} * {n}", "{x} + {y} - {n}", "{x} - {y} + {n}")
LINES = (2, 5)
"""The fewest and the most values that a function returns."""
INPUTS = ((14, 25), (31, 12), (20, 47))


def write(folder: Path, count: int, held_out: int, rng: Random) -> list[Path]:
    """Write the git repositories `seen` (with `count` functions) and `apart` (with `held_out` functions)."""
    sizes = {SEEN: count, APART: held_out}
    return [repository(folder / name, list(_functions(size, rng)), INPUTS) for name, size in sizes.items()]


def plain(folder: Path, count: int, rng: Random) -> Path:
    """Write a folder with `count` further functions, without tests."""
    return untested(folder, list(_functions(count, rng)))


def _functions(count: int, rng: Random) -> Iterator[Named]:
    for number in range(count):
        names = rng.sample(NAMES, 2 + rng.randint(*LINES))
        given, results = names[:2], names[2:]
        values = [_value(given, rng) for _ in results]
        lines = [f"{result} = {value}" for result, value in zip(results, values, strict=True)]
        body = "".join(f"    {line}\n" for line in [*lines, f"return {', '.join(results)}"])
        yield f"part_{number}", f"def part_{number}({', '.join(given)}):\n{body}"


def _value(given: list[str], rng: Random) -> str:
    x, y = rng.sample(given, 2)
    return rng.choice(FORMS).format(x=x, y=y, n=rng.randint(2, 9))
