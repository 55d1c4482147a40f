"""List the test functions of one file, those about a change first, for a scope that includes only a part of a long
file.

They are read from the source, so functions that a plugin generates are missing, and some that are not tests may be
listed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean

from agent.measure.scopes.changed import NAME, FileChange
from agent.measure.scopes.similarity import name_words, rarity, terms
from agent.parsing import first_line, python

SAME_WORD = 1.0
"""The weight of a word that the name of a test shares with that of a changed function or class. Mentioning a changed
name counts up to 3 (`similarity.NAMED`)."""
GOLDEN = 0.618034
"""The fractional part of the golden ratio. The fractional parts of its first multiples are spread evenly over [0, 1),
however many there are."""
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class _Test:
    """A test function or method."""

    name: str
    """Its id without the file."""
    identifiers: frozenset[str]
    """The identifiers in its source, decorators included."""

    @property
    def holder(self) -> str:
        """Its class; empty: none."""
        return self.name.rpartition("::")[0]


def most_relevant_first(source: str, changed: Mapping[str, FileChange]) -> list[str]:
    """Return the test functions and methods (`Class::test`) in the source of a test file; none if it is not Python.
    First come those that mention changed names or share words with them (rare words count most), and those of classes
    that do so. Then come the others, in an order in which the first few, however many, are spread evenly over the
    file."""
    tests = list(_tests(source))
    wanted = terms(changed)
    own = frozenset(word for change in changed.values() for name in change.names for word in name_words(name))
    words = [name_words(test.name) & own for test in tests]
    rare, rare_words = rarity([test.identifiers for test in tests], len(tests)), rarity(words, len(tests))
    scores = [
        sum(wanted[word] * rare[word] for word in sorted(wanted.keys() & test.identifiers))
        + sum(SAME_WORD * rare_words[word] for word in sorted(shared))
        for test, shared in zip(tests, words, strict=True)
    ]
    of_class: dict[str, list[float]] = {}
    for test, score in zip(tests, scores, strict=True):
        of_class.setdefault(test.holder, []).append(score)

    def order(index: int) -> tuple[float, float]:
        score = scores[index] + fmean(of_class[tests[index].holder])
        return -round(score, 1), index * GOLDEN % 1

    return list(dict.fromkeys(tests[index].name for index in sorted(range(len(tests)), key=order)))


def _tests(source: str) -> Iterator[_Test]:
    tree = python(source)
    if tree is None:
        return
    lines = source.split("\n")
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    for node in tree.body:
        if isinstance(node, _Function) and node.name.startswith("test"):
            yield _Test(node.name, _identifiers(lines, node))
        elif isinstance(node, ast.ClassDef) and (node.name.startswith("Test") or node.bases):
            for method in _methods(node, classes).values():
                yield _Test(f"{node.name}::{method.name}", _identifiers(lines, method))


def _methods(node: ast.ClassDef, classes: Mapping[str, ast.ClassDef]) -> dict[str, _Function]:
    """The test methods of a class by name, with those that it inherits from classes of the same file."""
    found: dict[str, _Function] = {}
    pending, seen = [node], {node.name}
    for each in pending:  # the list grows meanwhile
        own = (child for child in each.body if isinstance(child, _Function) and child.name.startswith("test"))
        found = {child.name: child for child in own} | found
        bases = {base.id for base in each.bases if isinstance(base, ast.Name)} & classes.keys() - seen
        pending += [classes[name] for name in sorted(bases)]
        seen |= bases
    return found


def _identifiers(lines: list[str], node: _Function) -> frozenset[str]:
    return frozenset(NAME.findall("\n".join(lines[first_line(node) - 1 : node.end_lineno])))
