"""Mutants: every way in which the operators break the functions of a file, and a random order of them."""

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

_EDITED = (cst.BaseExpression, cst.ComparisonTarget, cst.AugAssign, cst.BaseStatement, cst.Slice)
LINES = (2, 80)
"""The lengths of the shortest and the longest function that are broken."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A file with one defect."""

    function: Function
    operator: str
    line: int
    """The line of the file where the defect begins, 1-based."""
    right: bytes
    """The file without the defect."""
    wrong: bytes
    """The file with the defect."""

    @property
    def id(self) -> str:
        """Unique among the mutants of its repository."""
        digest = sha256(self.function.path.encode() + b"\0" + self.wrong).hexdigest()[:8]
        return f"{self.operator}-{digest}"


def mutants(path: str, data: bytes) -> Iterator[Mutant]:
    """Every mutant of a file, in the order of the text, including those that do not compile; none if the file cannot be
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
        function = next((place for place in places if place.first < source.line(start) <= place.last), None)
        if function is None:
            continue
        owner = next((ancestor for ancestor in source.ancestors(node) if ancestor in known), source.module)
        for name, change in _changes(Site(source, node, known[owner])):
            wrong = apply(data, (change,))
            if wrong not in seen:
                seen.add(wrong)
                yield Mutant(function, name, source.line(change.start), data, wrong)


def _changes(site: Site) -> Iterator[tuple[str, Change]]:
    for name, operator in OPERATORS.items():
        for change in operator(site):
            yield name, change


def drawn(all_mutants: Sequence[Mutant], rng: Random, a_function: int) -> list[Mutant]:
    """The mutants in random order, with the operators in turn and at most `a_function` mutants of one function."""
    waiting: defaultdict[str, list[Mutant]] = defaultdict(list)
    for mutant in all_mutants:
        waiting[mutant.operator].append(mutant)
    for group in waiting.values():
        rng.shuffle(group)
    taken: Counter[Function] = Counter()
    order = list[Mutant]()
    while any(waiting.values()):
        for name in OPERATORS:
            while waiting[name]:
                mutant = waiting[name].pop()
                if taken[mutant.function] < a_function:
                    taken[mutant.function] += 1
                    order.append(mutant)
                    break
    return order


def repairable(mutant: Mutant) -> bool:
    """Whether one of `mutate`'s edits of the function restores the file exactly."""
    source = Source(mutant.function.path, mutant.wrong)
    lines: Mapping[int, float] = dict.fromkeys(range(mutant.function.first, mutant.function.last + 2), 1.0)
    edits = candidates([source], {source.path: lines}, "", {})
    return any(apply(source.data, edit.changes) == mutant.right for edit in edits)
