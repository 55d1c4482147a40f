"""A diagnosis as text, for `ramify diagnose`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from agent.actions.excerpt import printable
from agent.analysis.diagnosis import Diagnosis
from agent.analysis.diagnosis.divergence import Divergence, Parting
from agent.analysis.diagnosis.onset import Onset
from agent.analysis.diagnosis.steps import TraceStep
from agent.untrusted import visible

_ASPECTS = {"plan": "stated plan", "action": "action", "result": "result of the action", "state": "state"}


def diagnosis_text(diagnosis: Diagnosis) -> str:
    """The stages with their steps, the onset and its reason, the dependent steps, and the command to continue with."""
    return printable(visible("\n".join(_lines(diagnosis))).encode()) + "\n"


def parted(parting: Parting) -> str:
    """Where two rollouts first differ, and the later steps that only the second has."""
    lines = [line for first in parting.first for line in _differs(first)] or ["the rollouts are the same"]
    if parting.first:
        lines.append(f"only in the second afterwards: {_steps(tuple(step.number for step in parting.later))}")
        lines += [f"  {step.number:>4}  {' '.join(step.what.split())}" for step in parting.later]
    return printable(visible("\n".join(lines)).encode()) + "\n"


def _differs(divergence: Divergence) -> Iterator[str]:
    yield f"step {divergence.step}: the {_ASPECTS[divergence.aspect]} differs"
    yield f"  first   {' '.join(divergence.one.split()) or '(nothing)'}"
    yield f"  second  {' '.join(divergence.other.split()) or '(nothing)'}"


def _lines(diagnosis: Diagnosis) -> Iterator[str]:
    way = f"rollout {' > '.join(map(str, diagnosis.path))}" if diagnosis.path else diagnosis.source
    yield f"{way}, ended {diagnosis.ended}"
    for stage in diagnosis.stages:
        yield stage.name
        for step in stage.steps:
            yield _line(step, diagnosis)
    if diagnosis.repeats:
        yield f"again    {_steps(diagnosis.repeats)}: the same as before, with the same result"
    if diagnosis.onset is None:
        yield "onset    none: no recorded fact says where it went wrong"
        return
    yield f"onset    {_where(diagnosis.onset)}: {diagnosis.onset.rule}"
    yield f"why      {diagnosis.onset.why}"
    yield f"depends  {_steps(diagnosis.dependents)}"
    if diagnosis.go_on:
        yield f"go on    {shlex.join(diagnosis.go_on)}"
    elif diagnosis.no_way:
        yield f"go on    not from here: {diagnosis.no_way}"


def _line(step: TraceStep, diagnosis: Diagnosis) -> str:
    onset = diagnosis.onset
    first = onset is not None and onset.step is not None and step.number == onset.step.number
    mark = ">" if first else "|" if step.number in diagnosis.dependents else " "
    node = "" if step.node is None else f" [state {step.node}]"
    return f"{mark} {step.number:>4}  {' '.join(step.what.split())}{node}"


def _where(onset: Onset) -> str:
    node = "" if onset.node is None else f" on the way to state {onset.node}"
    if onset.step is None:
        return f"state {onset.node}"
    return f"{'one of ' if onset.among else ''}{_steps(onset.among or (onset.step.number,))}{node}"


def _steps(numbers: tuple[int, ...]) -> str:
    many = "s" if len(numbers) > 1 else ""
    return f"step{many} {', '.join(map(str, numbers))}" if numbers else "no step"
