"""Which states belong to which wave of rollouts, what was said of going on after each, and what each was worth, for
`ramify show`."""

from __future__ import annotations

from agent.analysis.report.summary import cost
from agent.run.run import Run
from agent.run.tree.node import ROOT
from agent.run.tree.tree import NodeId
from agent.solver.refine import worth
from agent.solver.refine.gates import gate_key

__all__ = ["waves"]


def waves(run: Run) -> list[str]:
    """A line for each wave; none for a run that is not searched in waves."""
    told = [(run.note(ROOT, gate_key(number)) or {}).get("why") for number in range(1, run.round + 1)]
    if not (run.rounds or told[0]):
        return []
    ends = [*run.starts[1:], len(run.tree)]
    numbers = [rollout.round for rollout in run.rollouts()]
    lines = [
        f"wave {number}: {_states(start, end - 1)}, {_rollouts(numbers.count(number))}{f'; {why}' if why else ''}"
        for number, (start, end, why) in enumerate(zip(run.starts, ends, told, strict=True), start=1)
    ]
    return [*lines, *_worth(run)] if run.rounds else lines


def _worth(run: Run) -> list[str]:
    """What each wave came to beside its price, and what refining changed."""
    grown = worth.waves(run)
    lines = [
        f"worth of wave {wave.number}: {wave.value:.3f}{' and solved' if wave.solved else ''}, for "
        f"{wave.usage.measurements} test runs, {wave.seconds:.0f} s{cost(wave.usage)}"
        for wave in grown
    ]
    return [*lines, f"refinement: {worth.changes(grown)}"]


def _states(first: NodeId, last: NodeId) -> str:
    if first > last:
        return "no new state"
    return f"state {first}" if first == last else f"states {first} to {last}"


def _rollouts(number: int) -> str:
    return "1 rollout" if number == 1 else f"{number} rollouts"
