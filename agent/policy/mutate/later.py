"""Later waves: how what earlier rollouts came to moves the order of proposals at the base state.

Laws: only facts count, and the same briefing gives the same order. Repairs that made different goal tests pass are
taken up together first; tests that no rollout has mended say where to look next; lines where an edit changed nothing in
any test come behind others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain

from agent.policy import Position, Proposal
from agent.policy.mutate.candidates import Candidate, compiles, distinct, put_back
from agent.policy.mutate.rejoin import Repair, idle_lines, joined, repairs
from agent.policy.mutate.source import Source, Unsupported, apply
from agent.policy.mutate.whole import edits

__all__ = ["later", "single", "unmended"]


def later(
    position: Position, found: Sequence[Candidate], sources: Mapping[str, Source], patch: Callable[[str], bytes]
) -> Iterator[Proposal]:
    """The proposals of a later wave: repairs of earlier rollouts together, then single edits. To go on from one repair
    alone is for a rollout that begins at its state (`agent.solver.refine.local`)."""
    told = position.briefing.summaries if position.briefing else ()
    known = dict(sources)
    together = joined(repairs(told, _goals(position), patch, lambda path: _source(position, path, known)))
    proposals = filter(None, [_together(repair, known) for repair in together])
    return chain(proposals, single(put_back(found, idle_lines(told, patch)), sources))


def single(found: Sequence[Candidate], sources: Mapping[str, Source]) -> Iterator[Proposal]:
    """Each candidate, the likeliest first."""
    top = found[0].score if found else 1.0
    for candidate, _ in distinct(found, sources):
        yield Proposal(
            actions=edits(sources[candidate.path], candidate.changes),
            prior=max(1e-6, min(1.0, candidate.score / top)),
            label=f"mutate: {candidate.label}",
        )


def unmended(position: Position) -> set[str]:
    """The goal tests (all failing ones where none is named) that fail at the position and that none of the rollouts it
    is told of has made pass; where there are none left, those that fail; where none fails, all of them."""
    goals = _goals(position)
    failing = {test for test in goals if not position.node.report.passed(test)}
    told = position.briefing.summaries if position.briefing else ()
    mended = {test for summary in told for test in summary.tests_passed}
    return failing - mended or failing or set(goals)


def _goals(position: Position) -> Sequence[str]:
    return position.task.goal_tests or position.path[0].report.failures


def _source(position: Position, path: str, known: dict[str, Source]) -> Source | None:
    """A file of the base state; None where it cannot be edited."""
    if path not in known:
        try:
            known[path] = Source(path, position.box.read(path))
        except (OSError, Unsupported):
            return None
    return known[path]


def _together(repair: Repair, sources: Mapping[str, Source]) -> Proposal | None:
    """All of a repair's changes; None where a file that they make is no Python."""
    if not all(compiles(apply(sources[path].data, changes)) for path, changes in repair.changes.items()):
        return None
    actions = chain.from_iterable(edits(sources[path], changes) for path, changes in repair.changes.items())
    return Proposal(tuple(actions), label=f"mutate: earlier repairs together in {', '.join(repair.changes)}")
