"""The result of a run: a JSON object for programs, a few lines for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.budget import Stop, Usage
from agent.counting import counted
from agent.run.grade import Grade
from agent.run.spending import Activity
from sandboxes import Forked

if TYPE_CHECKING:
    from agent.measure import SuiteReport
    from agent.solver.result import Result


_VERDICTS = {
    "solved": "solved: the goal tests pass, and nothing that passed before fails",
    "submitted": "submitted: the model calls the work done, and nothing that passed before fails",
    "improved": "improved, not solved: better than before, but not all goal tests pass",
    "no_patch": "no patch: no candidate improves on the original code without breaking a test",
}
_FINER = {
    Grade.DECLARED: "submitted: the model says that the failing tests contradict the issue; check before you apply it",
    Grade.BROKEN: "submitted, not accepted: tests that passed before fail, and the model does not say why",
    Grade.UNFINISHED: "not finished: this is the best change so far",
}
"""The sentences for grades that say more than the status, used when a model was called."""
_LIMITS = (Stop.NODES, Stop.MEASUREMENTS, Stop.CALLS, Stop.TOKENS, Stop.COST, Stop.TIME, Stop.BATCH)
_CUT_SHORT = (*_LIMITS, Stop.INTERRUPTED, Stop.FAILED)
NAMED = 10


def as_json(result: Result, patch_path: Path | None) -> dict[str, Any]:
    """The object that `--json` prints. `error` is null unless an error ended the search, `cost_usd` when the price of a
    call is unknown."""
    usage = result.usage
    return {
        "status": result.status,
        "resolved": result.resolved,
        "grade": result.grade.name.lower(),
        "broken": list(result.broken),
        "declared": dict(result.declared),
        "reproduced_by": list(result.reproduced_by),
        "verified": result.verified,
        "patch_path": None if patch_path is None else str(patch_path),
        "stop": result.stop.name.lower(),
        "error": None if result.error is None else str(result.error),
        "nodes": result.nodes,
        "rollouts": result.rollouts,
        "rounds": result.rounds,
        "round_results": [each.to_json() for each in result.round_results],
        **_costs(usage),
        "tokens_cached": usage.tokens_cached,
        "spent": {activity: _costs(part) for activity, part in result.spent.items()},
        "lines": [_line(*line) for line in zip(result.lines, result.lines_s, strict=True)],
        "seconds": round(result.seconds, 3),
        "baseline": dict(result.baseline),
        "final": dict(result.final),
        "scope": result.scope,
        "flagged": result.flagged,
        "run_dir": str(result.run_dir),
    }


def as_text(result: Result, patch_path: Path | None, *, verbose: bool = False) -> str:
    """The result for people, a fact a line. `verbose`: also how often states were forked; if forks were checked, this
    is always included."""
    lines = answer_lines(result)
    lines.append(f"search   {counted(result.nodes, 'state')} in {result.seconds:.0f} s; {result.stop.value}")
    lines.append(f"spent    {counted(result.usage.measurements, 'test run')}" + cost(result.usage))
    lines += [f"of which {parts}" for parts in [_activities(result.spent)] if parts]
    if verbose or result.forked.checked:
        lines.append(f"states   {forks(result.forked)}")
    if patch_path is not None:
        lines.append(f"patch    {patch_path}")
    lines.append(f"run      {result.run_dir}")
    lines.extend(f"note     {note}" for note in result.notes)
    if result.error is not None:
        lines.append(f"error    {result.error}")
    return "\n".join(lines)


def answer_lines(result: Result) -> list[str]:
    """The facts about the answer: how good it is, the tests that show it, and the tests that it breaks."""
    if not result.nodes:
        return ["no patch: the search ended before the first test run had finished"]
    finer = _FINER if result.usage.model_calls else {}
    verdict = _before_an_edit(result) or finer.get(result.grade, _VERDICTS[result.status])
    reasons = {test: f" (declared: {reason})" for test, reason in result.declared.items()}
    return [
        verdict + ("" if result.verified or not result.patch else " (not verified)"),
        f"tests    {_tests(result.baseline)} before{_after(result)}",
        *([f"rests on {result.scope}"] if result.scope and result.patch and result.verified else []),
        *(f"shown by {test}: fails without the patch, passes with it" for test in result.reproduced_by[:NAMED]),
        *(f"broken   {test}{reasons.get(test, '')}" for test in result.broken[:NAMED]),
        *([f"broken   {len(result.broken) - NAMED} more"] if len(result.broken) > NAMED else []),
    ]


def _before_an_edit(result: Result) -> str:
    """The verdict on a run that was cut short before the first edit; empty for others."""
    if result.nodes == 1 and result.stop is Stop.EXHAUSTED:
        return "no patch: no edit could be proposed"
    if result.nodes > 1 or result.stop not in _CUT_SHORT:
        return ""
    if result.stop is Stop.TIME:
        return f"no patch: time ran out before the first edit (the first test run took {result.first_run_s:.0f} s)"
    return f"no patch: {result.stop.value} before the first edit"


_WORDS: Mapping[Activity, str] = {
    "propose": "to propose",
    "judge": "to judge states",
    "choose": "to choose",
    "plan": "to plan",
    "measure": "to measure",
}


def _activities(spent: Mapping[Activity, Usage]) -> str:
    """What the model calls were for; empty if all had one purpose."""
    asked = {activity: usage for activity, usage in spent.items() if usage.model_calls}
    if len(asked) < 2:
        return ""
    parts = []
    for activity, usage in asked.items():
        runs = f" and {counted(usage.measurements, 'test run')}" if usage.measurements else ""
        dollars = f" for {usage.cost_usd:.4f} dollars" if usage.cost_usd else ""
        parts.append(f"{counted(usage.model_calls, 'call')}{runs} {_WORDS[activity]}{dollars}")
    return ", ".join(parts)


def _costs(usage: Usage) -> dict[str, Any]:
    return {
        "measurements": usage.measurements,
        "model_calls": usage.model_calls,
        "tokens": usage.tokens,
        "cost_usd": None if usage.unpriced_calls else usage.cost_usd,
    }


def _line(usage: Usage, seconds: float | None) -> dict[str, Any]:
    return {**_costs(usage), "seconds": None if seconds is None else round(seconds, 3)}


def forks(forked: Forked) -> str:
    """How often states were forked, and how many forks differed from their snapshot, if that was checked."""
    times = f"forked {counted(forked.times, 'time')}"
    return f"{times}, {counted(forked.mismatches, 'mismatch', 'mismatches')}" if forked.checked else times


def cost(usage: Usage) -> str:
    """The calls, tokens and price of the models, as the end of a line; empty if no model was called."""
    if not usage.model_calls:
        return ""
    known = f"{usage.cost_usd:.4f} dollars"
    unpriced = f"at least {known} (the price of {counted(usage.unpriced_calls, 'call')} is unknown)"
    if not usage.cost_usd:
        unpriced = "price unknown"
    cached = f" ({usage.tokens_cached} of {usage.tokens_in} prompt tokens were read from a cache)"
    tokens = f"{counted(usage.tokens, 'token')}{cached if usage.tokens_cached else ''}"
    return f", {counted(usage.model_calls, 'model call')}, {tokens}, {unpriced if usage.unpriced_calls else known}"


def tally(report: SuiteReport, goals: Sequence[str] = ()) -> str:
    """How many goal tests pass; and, unless only those ran, how many tests passed, failed, and were not run."""
    goal = f"goal {sum(map(report.passed, goals))}/{len(goals)}" if goals else ""
    if goal and set(report.asked or report.outcomes) <= set(goals):
        return goal
    not_run = report.left_out + sum(report.late.values())
    left_out = f", {not_run} not run" if not_run else ""
    counts = f"{len(report.passes)} passed, {len(report.failures)} failed{left_out}"
    return f"{goal}, {counts}" if goal else counts


def _tests(counts: Any) -> str:
    return f"{counts.get('passed', 0)} passed and {counts.get('failed', 0)} failed"


def _after(result: Result) -> str:
    """How the tests end with the patch."""
    if result.scope and not result.verified:
        return f"; after: {result.scope}"
    return f", {_tests(result.final)} after"
