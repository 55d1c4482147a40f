"""Mutants: every way in which the operators break the functions of some files, drawn by seed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from random import Random

import libcst as cst

from agent.policy.mutate.candidates import candidates
from agent.policy.mutate.scope import scopes
from agent.policy.mutate.site import Site
from agent.policy.mutate.source import Change, Source, Unsupported, apply
from benchmarks.data.synthetic.functions import Function, functions
from benchmarks.data.synthetic.operators import OPERATORS

__all__ = ["Mutant", "drawn", "mutants", "repairable"]

_EDITED = (cst.BaseExpression, cst.ComparisonTarget, cst.AugAssign, cst.BaseStatement, cst.Slice)
LINES = (2, 80)
"""Functions that are shorter or longer are left alone."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A file with one defect."""

    function: Function
    operator: str
    line: int
    """Where the defect begins, 1-based, in the whole file."""
    right: bytes
    """The file as it was."""
    wrong: bytes
    """The file with the defect."""

    @property
    def id(self) -> str:
        """Names the mutant among those of its repository."""
        digest = sha256(self.function.path.encode() + b"\0" + self.wrong).hexdigest()[:8]
        return f"{self.operator}-{digest}"


def mutants(path: str, data: bytes) -> Iterator[Mutant]:
    """Every mutant of a file, in the order of the text, also those that do not compile; none of a file that cannot be
    edited by span."""
    try:
        source = Source(path, data)
    except Unsupported:
        return
    known = scopes(source)
    places = [
        function for function in functions(path, data) if LINES[0] <= function.last - function.first + 1 <= LINES[1]
    ]
    seen = {data}
    for node in source.walk():
        if not isinstance(node, _EDITED):
            continue
        start = source.span(node)[0]
        function = next((each for each in places if each.first < source.line(start) <= each.last), None)
        if function is None:
            continue
        owner = next((each for each in source.ancestors(node) if each in known), source.module)
        for name, change in _changes(Site(source, node, known[owner])):
            wrong = apply(data, (change,))
            if wrong not in seen:
                seen.add(wrong)
                yield Mutant(function, name, source.line(change.start), data, wrong)


def _changes(site: Site) -> Iterator[tuple[str, Change]]:
    for name, operator in OPERATORS.items():
        for change in operator(site):
            yield name, change


def drawn(found: Sequence[Mutant], rng: Random, a_function: int) -> list[Mutant]:
    """The mutants in an order drawn at random, the operators in turn, with so many at most of one function."""
    waiting: defaultdict[str, list[Mutant]] = defaultdict(list)
    for mutant in found:
        waiting[mutant.operator].append(mutant)
    for group in waiting.values():
        rng.shuffle(group)
    made: Counter[Function] = Counter()
    order = list[Mutant]()
    while any(waiting.values()):
        for name in OPERATORS:
            while waiting[name]:
                mutant = waiting[name].pop()
                if made[mutant.function] < a_function:
                    made[mutant.function] += 1
                    order.append(mutant)
                    break
    return order


def repairable(mutant: Mutant) -> bool:
    """Whether one of `mutate`'s edits of the function gives the file back as it was."""
    source = Source(mutant.function.path, mutant.wrong)
    lines: Mapping[int, float] = dict.fromkeys(range(mutant.function.first, mutant.function.last + 2), 1.0)
    found = candidates([source], {source.path: lines}, "", {})
    return any(apply(source.data, each.changes) == mutant.right for each in found)
