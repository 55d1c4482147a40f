"""Candidates: every edit of the suspicious lines, in order of likelihood.

A candidate's score is

    suspicion of its statement  x  weight of the variant  x  1.3 if the issue names the function

divided by a slowly growing function of how many better candidates its line has, so that the first edits of every
suspicious line come before the last ones of any. A statement is as suspicious as its worst line. Code that no failing
test executes but that a suspicious function contains or reads (its signature, a constant of the module) gets a share.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import chain, combinations, pairwise

import libcst as cst

from agent.policy.mutate.localise import Suspicion
from agent.policy.mutate.scope import Scope, scopes
from agent.policy.mutate.site import Site, Template
from agent.policy.mutate.source import Change, Source, apply
from agent.policy.mutate.templates import TEMPLATES

Frozen = Mapping[str, Sequence[tuple[int, int]]]
"""For each path, the byte spans that earlier edits wrote and that are not edited again."""

SHARE_OF_SIGNATURE = 0.3
SHARE_OF_UNEXECUTED = 0.1
NAMED_IN_ISSUE = 1.3
CROWDING = 0.35
"""Exponent of the discount for better candidates of the same line."""
TOGETHER = 0.3
"""How likely the same edit at all its places is, compared with one place."""
PAIR = 0.02
"""How likely two edits are needed, compared with one."""
IDLE = 0.3
"""How likely an edit is at a line where another edit has changed no test, compared with other lines."""
PAIRED = 60
"""How many candidates are combined into pairs."""
STATEMENTS = 300
"""How many statements are edited, the most suspicious ones."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An edit of one file."""

    path: str
    changes: tuple[Change, ...]
    label: str
    line: int
    score: float


@dataclass(frozen=True, slots=True)
class _Statement:
    """A statement, with its nodes except those of inner statements."""

    source: Source
    scope: Scope
    nodes: tuple[cst.CSTNode, ...]
    suspicion: float


def candidates(sources: Sequence[Source], suspicion: Suspicion, issue: str, frozen: Frozen) -> list[Candidate]:
    """All candidates, the likeliest first; deterministic."""
    words = set(re.findall(r"[A-Za-z_]\w{3,}", issue))
    found = (_statements(source, suspicion.get(source.path, {}), words) for source in sources)
    statements = sorted(chain.from_iterable(found), key=lambda statement: -statement.suspicion)
    ranked: list[Candidate] = []
    groups: dict[tuple[str, str, str], list[Candidate]] = defaultdict(list)
    for statement in statements[:STATEMENTS]:
        for template, candidate in _discounted(_edits_of(statement, frozen.get(statement.source.path, ()))):
            ranked.append(candidate)
            texts = [statement.source.data[c.start : c.end].decode() + "\0" + c.text for c in candidate.changes]
            groups[statement.source.path, template.__name__, "\0".join(texts)].append(candidate)
    ranked += [_together(group) for group in groups.values() if 1 < len(group) < 20 and not _overlap(group)]
    ranked.sort(key=_order)
    ranked += _pairs(ranked[:PAIRED])
    return sorted(ranked, key=_order)


def with_idle_lowered(ranked: Sequence[Candidate], idle: Collection[tuple[str, int]]) -> list[Candidate]:
    """The candidates in a new order: those at the `idle` paths and lines, where an edit changed no test, rank lower."""
    lowered = [replace(c, score=c.score * IDLE) if (c.path, c.line) in idle else c for c in ranked]
    return sorted(lowered, key=_order)


def distinct(ranked: Sequence[Candidate], sources: Mapping[str, Source]) -> Iterator[tuple[Candidate, bytes]]:
    """The candidates and the files that they make, without those that change nothing, repeat a file or do not
    compile."""
    made = {(path, _digest(source.data)) for path, source in sources.items()}
    for candidate in ranked:
        result = apply(sources[candidate.path].data, candidate.changes)
        key = (candidate.path, _digest(result))
        if key not in made:
            made.add(key)
            if compiles(result):
                yield candidate, result


def compiles(data: bytes) -> bool:
    """Whether a file is valid Python."""
    with warnings.catch_warnings(action="ignore"):
        try:
            compile(data, "candidate", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True


def _order(candidate: Candidate) -> tuple[float, str, int, str]:
    return -candidate.score, candidate.path, candidate.line, candidate.label


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


def _statements(source: Source, lines: Mapping[int, float], words: Collection[str]) -> Iterator[_Statement]:
    scope_of = scopes(source)
    read_by = _read_by_suspicious_functions(source, lines)
    todo: list[tuple[cst.CSTNode, Scope, float]] = [(source.module, scope_of[source.module], 0.0)]
    while todo:
        node, scope, around = todo.pop()
        if isinstance(node, cst.FunctionDef):
            first, last = source.statement_lines(node)
            inside = {n: lines[n] for n in range(first, last + 1) if n in lines}
            if node.name.value in words:
                inside = {n: value * NAMED_IN_ISSUE for n, value in inside.items()}
                lines = {**lines, **inside}
            around = max(inside.values(), default=0.0)
        suspicion = _suspicion_of(source, node, lines, around, read_by)
        if suspicion > 0 and not isinstance(node, cst.Module):
            yield _Statement(source, scope, (node, *_own_nodes(source, node)), suspicion)
        inner = scope_of.get(node, scope)
        todo += [(child, inner, around) for child in reversed(list(_inner_statements(source, node)))]


def _suspicion_of(
    source: Source, node: cst.CSTNode, lines: Mapping[int, float], around: float, read_by: Mapping[str, float]
) -> float:
    match node:
        case cst.Module() | cst.ClassDef():
            return 0.0
        case cst.FunctionDef():
            return SHARE_OF_SIGNATURE * around
        case cst.SimpleStatementLine(
            body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]), *_]
        ) if not around:
            return SHARE_OF_SIGNATURE * read_by.get(name, 0.0)
        case _:
            first, last = source.statement_lines(node)
            body = getattr(node, "body", None)
            if isinstance(body, cst.BaseSuite):
                last = max(first, source.line(source.span(body)[0]) - 1)
            return max(*(lines.get(n, 0.0) for n in range(first, last + 1)), SHARE_OF_UNEXECUTED * around)


def _read_by_suspicious_functions(source: Source, lines: Mapping[int, float]) -> Mapping[str, float]:
    """Names, with the suspicion of the worst line that reads them."""
    read_by: dict[str, float] = defaultdict(float)
    for node in source.all(cst.Name):
        value = lines.get(source.line(source.span(node)[0]), 0.0)
        read_by[node.value] = max(read_by[node.value], value)
    return read_by


def _is_statement(node: cst.CSTNode) -> bool:
    return isinstance(
        node, cst.SimpleStatementLine | cst.SimpleStatementSuite | cst.BaseCompoundStatement | cst.ExceptHandler
    )


def _own_nodes(source: Source, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    for child in source.children(node):
        if not _is_statement(child) and not isinstance(child, cst.BaseSuite | cst.Else | cst.Finally):
            yield child
            yield from _own_nodes(source, child)


def _inner_statements(source: Source, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    for child in source.children(node):
        if _is_statement(child):
            yield child
        elif isinstance(child, cst.BaseSuite | cst.Else | cst.Finally):
            yield from _inner_statements(source, child)


def _edits_of(statement: _Statement, frozen: Sequence[tuple[int, int]]) -> Iterator[tuple[Template, Candidate]]:
    source = statement.source
    for node in statement.nodes:
        site = Site(source, node, statement.scope)
        for template in TEMPLATES:
            for variant in template(site):
                if any(c.start <= end and start <= c.end for c in variant.changes for start, end in frozen):
                    continue
                line = source.line(min(c.start for c in variant.changes))
                label = f"{' '.join(variant.label.split())} {source.path.rpartition('/')[2]}:{line}"
                yield (
                    template,
                    Candidate(source.path, variant.changes, label, line, variant.weight * statement.suspicion),
                )


def _discounted(edits: Iterator[tuple[Template, Candidate]]) -> Iterator[tuple[Template, Candidate]]:
    """The edits, best first, their scores reduced by the number of better ones on the same line."""
    rank: Counter[int] = Counter()
    for template, candidate in sorted(edits, key=lambda item: _order(item[1])):
        rank[candidate.line] += 1
        yield template, replace(candidate, score=candidate.score / rank[candidate.line] ** CROWDING)


def _together(group: Sequence[Candidate]) -> Candidate:
    first = min(group, key=_order)
    changes = tuple(change for candidate in group for change in candidate.changes)
    label = f"{first.label} and {len(group) - 1} more"
    return replace(first, changes=changes, label=label, score=first.score * TOGETHER)


def _overlap(group: Sequence[Candidate]) -> bool:
    spans = sorted((c.start, c.end) for candidate in group for c in candidate.changes)
    return any(one[1] >= two[0] for one, two in pairwise(spans))


def _pairs(likely: Sequence[Candidate]) -> Iterator[Candidate]:
    top = likely[0].score if likely else 1.0
    for one, two in combinations(likely, 2):
        if one.path == two.path and not _overlap((one, two)):
            score = PAIR * one.score * two.score / top
            yield Candidate(one.path, (*one.changes, *two.changes), f"{one.label}; {two.label}", one.line, score)
