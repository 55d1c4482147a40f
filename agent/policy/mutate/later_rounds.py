"""Later rounds: how the results of earlier rollouts change the order of proposals at the base state.

Invariants: only facts count, and the same briefing gives the same order. Repairs that made different goal tests pass
are first combined. Tests that no rollout has fixed show where to look next. Lines where an edit changed no test rank
lower.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain

from agent.policy import Position, Proposal
from agent.policy.mutate.candidates import Candidate, compiles, distinct, with_idle_lowered
from agent.policy.mutate.combining import Repair, combined, idle_lines, repairs
from agent.policy.mutate.source import Source, Unsupported, apply, edits


def proposals_of_later_round(
    position: Position, ranked: Sequence[Candidate], sources: Mapping[str, Source], patch: Callable[[str], bytes]
) -> Iterator[Proposal]:
    """The proposals of a later round: combined repairs of earlier rollouts, then single edits. Continuing from one
    repair alone is left to a rollout that begins at its state (`agent.solver.refine.local`)."""
    summaries = position.briefing.summaries if position.briefing else ()
    cache = dict(sources)
    together = combined(repairs(summaries, _goals(position), patch, lambda path: _source(position, path, cache)))
    proposals = filter(None, [_combined_proposal(repair, cache) for repair in together])
    return chain(proposals, proposals_of(with_idle_lowered(ranked, idle_lines(summaries, patch)), sources))


def proposals_of(ranked: Sequence[Candidate], sources: Mapping[str, Source]) -> Iterator[Proposal]:
    """The candidates as proposals, the likeliest first."""
    top = ranked[0].score if ranked else 1.0
    for candidate, _ in distinct(ranked, sources):
        yield Proposal(
            actions=edits(sources[candidate.path], candidate.changes),
            prior=max(1e-6, min(1.0, candidate.score / top)),
            label=f"mutate: {candidate.label}",
        )


def goals_to_fix(position: Position) -> set[str]:
    """The goal tests (without goals, the tests that failed at first) that fail at the position and that no rollout of
    its briefing has fixed. If there are none, all failing goals; if no goal fails, all goals."""
    goals = _goals(position)
    failing = {test for test in goals if not position.node.report.passed(test)}
    summaries = position.briefing.summaries if position.briefing else ()
    fixed = {test for summary in summaries for test in summary.tests_passed}
    return failing - fixed or failing or set(goals)


def _goals(position: Position) -> Sequence[str]:
    return position.task.goal_tests or position.path[0].report.failures


def _source(position: Position, path: str, cache: dict[str, Source]) -> Source | None:
    """A file of the base state; None if it cannot be edited."""
    if path not in cache:
        try:
            cache[path] = Source(path, position.box.read(path))
        except (OSError, Unsupported):
            return None
    return cache[path]


def _combined_proposal(repair: Repair, sources: Mapping[str, Source]) -> Proposal | None:
    """All of a repair's changes; None if a resulting file is not valid Python."""
    if not all(compiles(apply(sources[path].data, changes)) for path, changes in repair.changes.items()):
        return None
    actions = chain.from_iterable(edits(sources[path], changes) for path, changes in repair.changes.items())
    return Proposal(tuple(actions), label=f"mutate: earlier repairs together in {', '.join(repair.changes)}")
