"""The rounds of a run, for `ramify show`: the states of each, the gate's decision after it, and its result."""

from __future__ import annotations

from agent.analysis.report.summary import cost
from agent.counting import counted
from agent.run.run import Run
from agent.run.tree.node import ROOT, NodeId
from agent.solver.refine.gates import gate_key
from agent.solver.refine.round_results import refinement_counts, round_results


def round_lines(run: Run) -> list[str]:
    """A line for each round; empty for a run without rounds."""
    decisions = [(run.note(ROOT, gate_key(number)) or {}).get("why") for number in range(1, run.round + 1)]
    if not (run.rounds or decisions[0]):
        return []
    ends = [*run.starts[1:], len(run.tree)]
    numbers = [rollout.round for rollout in run.rollouts()]
    lines = [
        f"round {number}: {_states(start, end - 1)}, {counted(numbers.count(number), 'rollout')}"
        + (f"; {why}" if why else "")
        for number, (start, end, why) in enumerate(zip(run.starts, ends, decisions, strict=True), start=1)
    ]
    return [*lines, *_results(run)] if run.rounds else lines


def _results(run: Run) -> list[str]:
    """The result of each round with its price, and what refinement changed."""
    rounds = round_results(run)
    lines = [
        f"worth of round {each.number}: {each.value:.3f}{' and solved' if each.solved else ''}, for "
        f"{counted(each.usage.measurements, 'test run')}, {each.seconds:.0f} s{cost(each.usage)}"
        for each in rounds
    ]
    return [*lines, f"refinement: {refinement_counts(rounds)}"]


def _states(first: NodeId, last: NodeId) -> str:
    if first > last:
        return "no new state"
    return f"state {first}" if first == last else f"states {first} to {last}"
