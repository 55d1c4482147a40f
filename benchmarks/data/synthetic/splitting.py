"""Divides synthetic bugs into a split for training and two held-out splits.

`lines` holds out functions, with all their lines, of repositories that are used for training; `repositories` holds out
whole repositories; `train` is the rest. Invariant: a family of functions (`benchmarks.data.synthetic.functions`),
regardless of the names of variables, is in one split. The family's name alone determines the split, so adding unrelated
functions does not move others. Near copies of functions in held-out repositories are never trained on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent.learning.export.splits import bucket
from benchmarks.data.synthetic.functions import Families, Function, unnamed

NAMES = ("train", "lines", "repositories")


@dataclass(frozen=True, slots=True)
class Splitting:
    """Which functions are held out."""

    repositories: frozenset[str] = frozenset()
    """Repositories that are held out as a whole."""
    lines: int = 25
    """The percentage of the other families that are held out."""

    def of(self, material: Mapping[str, Sequence[Function]]) -> dict[tuple[str, str, str], str]:
        """The split of each function, by repository, path and name; empty for a function that belongs to neither side.
        Functions with one name (a property and its setter) whose families are in different splits belong to neither."""
        places = [(name, function) for name, group in material.items() for function in group]
        families = Families([unnamed(function.text) for _, function in places])
        held_out = {families.of(n) for n, (name, _) in enumerate(places) if name in self.repositories}
        splits = dict[tuple[str, str, str], str]()
        for number, (name, function) in enumerate(places):
            family = families.of(number)
            split = self._split(family, name in self.repositories, family in held_out)
            key = name, function.path, function.name
            splits[key] = split if splits.get(key, split) == split else ""
        return splits

    def _split(self, family: str, unseen: bool, copied: bool) -> str:
        if unseen:
            return "repositories"
        if copied:
            return ""
        return "lines" if bucket(family) < self.lines else "train"
