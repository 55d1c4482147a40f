"""Splits of synthetic bugs: what may be trained on, and two kinds of what may not.

`train` is what is left; `lines` are functions of the repositories that are trained on of which no line is; and
`repositories` are whole repositories. Law: a family of functions (`benchmarks.data.synthetic.functions`), whatever
their variables are called, is in one split, by its name alone, so that material that is like none of it moves nothing;
near copies of held-out repositories are trained on nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent.learning.export.splits import bucket
from benchmarks.data.synthetic.functions import Families, Function, unnamed

__all__ = ["NAMES", "Splitting"]

NAMES = ("train", "lines", "repositories")


@dataclass(frozen=True, slots=True)
class Splitting:
    """Which functions are held out."""

    repositories: frozenset[str] = frozenset()
    """Held out as a whole."""
    lines: int = 25
    """Percent of the other families."""

    def of(self, material: Mapping[str, Sequence[Function]]) -> dict[tuple[str, str, str], str]:
        """The split of each function, by repository, path and name; empty for one that belongs on neither side, as do
        functions of one name (a property and its setter) whose families are in different splits."""
        places = [(name, function) for name, known in material.items() for function in known]
        families = Families([unnamed(function.text) for _, function in places])
        held_out = {families.of(n) for n, (name, _) in enumerate(places) if name in self.repositories}
        found = dict[tuple[str, str, str], str]()
        for number, (name, function) in enumerate(places):
            family = families.of(number)
            split = self._split(family, name in self.repositories, family in held_out)
            key = name, function.path, function.name
            found[key] = split if found.get(key, split) == split else ""
        return found

    def _split(self, family: str, unseen: bool, copied: bool) -> str:
        if unseen:
            return "repositories"
        if copied:
            return ""
        return "lines" if bucket(family) < self.lines else "train"
