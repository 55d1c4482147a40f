"""The details of a state: its diff, tests, turns and cost, and why it was selected."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from agent.actions import Action, Edit, Observation
from agent.analysis.report.edits import as_diff
from agent.analysis.report.why import Selection, selections
from agent.errors import JournalError
from agent.measure import SuiteReport
from agent.policy.chat.transcript import said
from agent.run.events import Asked, Event
from agent.run.eviction import kept_patch
from agent.run.run import Run
from agent.run.tree.node import Node, NodeId, Step

PATCH_BYTES = 200_000
ANSWER_CHARACTERS = 4_000


@dataclass(slots=True)
class _Index:
    """What the journal says about each node."""

    created: dict[NodeId, Selection] = field(default_factory=dict)
    others: defaultdict[NodeId, list[Selection]] = field(default_factory=lambda: defaultdict(list))
    asked: defaultdict[NodeId, list[Asked]] = field(default_factory=lambda: defaultdict(list))
    patches: dict[NodeId, str] = field(default_factory=dict)


def details(run: Run, events: Sequence[Event]) -> Iterator[dict[str, Any]]:
    """An object for each node, by id."""
    index = _index(run, events)
    return (_of(run, index, node) for node in run.tree)


def _index(run: Run, events: Iterable[Event]) -> _Index:
    index = _Index()
    for selection in selections(events):
        node, created = selection.led_to, selection.outcome == "added"
        if created and node is not None:
            index.created[node] = selection
        else:
            index.others[selection.expanded if node is None else node].append(selection)
    for asked in run.asked:
        if asked.node is not None:
            index.asked[asked.node].append(asked)
    best = {rollout.leaf: rollout.best for rollout in run.rollouts()}
    index.patches |= {
        best[leaf]: s.patch_blob for (leaf, _), s in run.summaries.items() if s.patch_blob and leaf in best
    }
    if run.ended is not None and run.ended.best is not None and run.ended.patch_blob:
        index.patches[run.ended.best] = run.ended.patch_blob
    return index


def _of(run: Run, index: _Index, node: Node) -> dict[str, Any]:
    created = index.created.get(node.id)
    return {
        "diff": as_diff(_fused(run, node) if node.kind == "fuse" else node.steps),
        "patch": _patch(run, kept_patch(run, node.id) or index.patches.get(node.id, "")),
        "tests": _tests(node.report, run.tree.root.report),
        "parts": dict(node.evaluation.parts),
        "notes": node.evaluation.notes,
        "prior": node.prior,
        "visits": run.tree.visits(node.id),
        "mean": run.tree.value_sum(node.id) / run.tree.visits(node.id),
        "measured": [evaluation.value for evaluation in run.tree.evaluations(node.id)],
        "turns": [_turn(said(step), step.actions, step.observations) for step in node.steps],
        "usage": asdict(sum((step.usage for step in node.steps[1:]), node.steps[0].usage)) if node.steps else {},
        "made": asdict(created) if created else None,
        "others": [asdict(selection) for selection in index.others[node.id]],
        "asked": [_answer(asked) for asked in index.asked[node.id]],
    }


def _fused(run: Run, node: Node) -> list[Step]:
    """The steps that a merge adds to the first parent: those of its other parents that the first one lacks."""
    first, *others = node.parents
    added = sorted(_sources(run, others) - _sources(run, [first]))
    return [step for node_id in added for step in run.tree[node_id].steps]


def _sources(run: Run, nodes: Iterable[NodeId]) -> set[NodeId]:
    """These nodes and all nodes whose changes they contain: their ancestors, for a merge on every side."""
    found, left = set[NodeId](), list(nodes)
    while left:
        node = run.tree[left.pop()]
        if node.id not in found:
            found.add(node.id)
            left += node.parents if node.kind == "fuse" else node.parents[:1]
    return found


def _patch(run: Run, blob: str) -> str:
    """The whole patch against the root state, if the run has kept it."""
    directory = run.journal.directory.resolve()
    if not blob or not (directory / "blobs" / blob).resolve().is_relative_to(directory):
        return ""
    try:
        data = run.journal.get_blob(blob)
    except JournalError:
        return ""
    cut = f"\n[... {len(data) - PATCH_BYTES} bytes left out here ...]" if len(data) > PATCH_BYTES else ""
    return data[:PATCH_BYTES].decode(errors="replace") + cut


def _tests(report: SuiteReport, base: SuiteReport) -> dict[str, Any]:
    """The test results that differ from those of the root state; all results for the root itself."""
    before = {} if report is base else base.outcomes
    missing = [test for test in before if test not in report.outcomes]
    few = len(report.outcomes) < len(missing)
    return {
        "changed": {test: o.value for test, o in report.outcomes.items() if before.get(test) is not o},
        "only": list(report.outcomes) if few else None,
        "missing": [] if few else missing,
        "scope": report.scope,
        "said": {test: text for test, text in report.messages.items() if text},
        "problem": "" if report.valid else report.problem or "not valid",
        "leftOut": max(len(missing), report.left_out) + sum(report.late.values()),
        "seconds": report.duration_s,
        "output": report.output,
    }


def _turn(words: str, actions: Sequence[Action], observations: Sequence[Observation]) -> dict[str, Any]:
    acts = [
        {"action": _action(a), "text": o.text, "ok": o.ok, "elided": o.elided_bytes, "refused": o.refused}
        for a, o in zip(actions, observations, strict=False)
    ]
    return {"said": words, "acts": acts}


def _action(action: Action) -> dict[str, Any]:
    """An action as plain data; an edit with several replacements is shown as one."""
    if not (isinstance(action, Edit) and action.more):
        return asdict(action)
    old, new = ("\n".join(texts) for texts in zip(*((e.old, e.new) for e in action.replacements), strict=True))
    return asdict(replace(action, old=old, new=new, more=()))


def _answer(asked: Asked) -> dict[str, Any]:
    answer = asked.answer
    text = answer.text[:ANSWER_CHARACTERS]
    return {"model": asked.model, "purpose": asked.purpose, "text": text, "usage": asdict(answer.usage)}
