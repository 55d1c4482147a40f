"""Derives the items that a verified run leaves in memory from its journal, without a model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from agent.actions import Edit, Replacement, Write
from agent.actions.excerpt import excerpt
from agent.learning.memory.clusters import cluster_of, errors_of, shape_of
from agent.learning.memory.items import Episode, Experience, Item, Reflection, Source, name_of
from agent.measure.diffs import parse
from agent.run.events import Added
from agent.run.run import Run
from agent.run.tree.choice import Choice
from agent.run.tree.evaluation import MANIPULATION
from agent.run.tree.node import Node
from agent.run.tree.tree import Tree
from agent.untrusted import one_line, terminal_text, visible

PATCH_BYTES = 6_000
CHANGE_BYTES = 1_000
SAID_BYTES = 600
FAILURES = 5
TRIED = 6
CONTRASTS = 2
"""The maximum number of contrasts of one run that a model is shown."""
LESSON = "reflection"
"""The key of a node's note with what a model learned from its value (`agent.learning.memory.reflecting`)."""
SURPRISE_SHARE = 0.3
"""The difference between predicted and measured value from which on a state is reflected on, as a share of the range of
the values of unsolved states: by tests alone they may lie within a tenth, with a judge they spread further."""
LEAST_SURPRISE = 0.02
"""The minimum of this difference."""
REFLECTIONS = 3
"""The maximum number of reflections per run: its largest surprises."""
LEAST_GAIN = 0.05
"""The smallest gain in value that makes a step an experience."""
EXPERIENCES = 5
"""The maximum number of experiences per run, those with the largest gains, so that a long run does not crowd out the
others (SLEA-RL)."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """Two changes of one state."""

    right: str
    """What led to the solution, in the form of a diff."""
    wrong: str
    """What led elsewhere, in the form of a diff."""
    said: str
    """The notes about the state that the wrong change led to."""


def recollections(run: Run, source: Source) -> list[Item]:
    """All items of one run, except insights."""
    return [episode(run, source), *reflections(run, source), *experiences(run, source)]


def episode(run: Run, source: Source) -> Episode:
    """The repair as a whole. ExpeRepair (arXiv 2506.10484) keeps failures as well as successes."""
    root = run.tree.root.report
    failures = tuple(dict.fromkeys(errors_of(root).values()))[:FAILURES]
    patch, tried = _patch(run), tuple[str, ...]()
    files = tuple(file.path for file in parse(patch))
    if source.outcome == "failed":
        files = tuple(dict.fromkeys((*files, *(path for node in run.tree for path in node.edited))))
        tried = tuple(dict.fromkeys(one_line(node.label) for node in run.tree if node.parents and node.label))[:TRIED]
    return Episode(
        id=name_of("episode", source.id),
        sources=(source.id,),
        issue=source.issue.statement,
        failures=failures,
        files=files,
        patch=_note(patch.decode(errors="replace"), PATCH_BYTES),
        outcome=source.outcome,
        evidence=source.evidence,
        tried=tried,
    )


def contrasts(run: Run) -> list[Contrast]:
    """The changes made at each state where the path to the solution and a failed path diverge; LightSearcher learns
    from such pairs of trajectories. The last forks come first, since the paths differ least there."""
    tree = run.tree
    best = tree.best()
    if not best.evaluation.solved:
        return []
    found = list[Contrast]()
    for above, node in pairwise(tree.path(best.id)):
        failed = [child for child in tree.children(above.id) if child != node and tree.value_max(child.id) < 1.0]
        for child in sorted(failed, key=lambda child: (-child.value, child.id))[:1]:
            right, wrong = done_in(node), done_in(child)
            found += [Contrast(right, wrong, _note(child.evaluation.notes, SAID_BYTES))] if wrong and right else []
    return found[::-1][:CONTRASTS]


def reflections(run: Run, source: Source) -> list[Reflection]:
    """The states whose measured value was furthest from the predicted one, as R-MCTS (arXiv 2410.02052) reflects on.
    A solved state that is better than its measured parent is no surprise."""
    choices = {event.node.id: event.choice for event in run.journal.events() if isinstance(event, Added)}
    states = [_reflection(run, node, choices.get(node.id), source) for node in run.tree if node.parents]
    least = _least_surprise(run.tree)
    states = [state for state in states if abs(state.predicted - state.measured) >= least]
    states = [state for state in states if state.measured < 1.0 or state.basis != "measured"]
    return sorted(states, key=lambda state: (-abs(state.predicted - state.measured), state.node))[:REFLECTIONS]


def _least_surprise(tree: Tree) -> float:
    values = [node.value for node in tree if not node.evaluation.solved]
    return max(LEAST_SURPRISE, SURPRISE_SHARE * (max(values, default=0.0) - min(values, default=0.0)))


def experiences(run: Run, source: Source) -> list[Experience]:
    """The steps that made failing tests pass: the one with the largest gain for each error, the largest gains first."""
    best: dict[str, Experience] = {}
    for step in (step for node in run.tree for step in _experiences(run.tree, node, source)):
        other = best.get(step.cluster)
        if other is None or (-step.score, step.node) < (-other.score, other.node):
            best[step.cluster] = step
    return sorted(best.values(), key=lambda step: (-step.score, step.node, step.cluster))[:EXPERIENCES]


def _experiences(tree: Tree, node: Node, source: Source) -> Iterator[Experience]:
    if not node.parents:
        return
    parent = tree[node.parents[0]]
    gain = node.evaluation.by_tests - parent.evaluation.by_tests
    if gain < LEAST_GAIN:
        return
    fixed = [error for test, error in errors_of(parent.report).items() if node.report.passed(test)]
    for error in dict.fromkeys(fixed):
        cluster = cluster_of(error)
        name = name_of("experience", source.id, node.id, cluster)
        done, change = one_line(node.label), done_in(node)
        yield Experience(name, (source.id,), cluster, shape_of(error), node.id, done, change, round(gain, 6))


def _reflection(run: Run, node: Node, choice: Choice | None, source: Source) -> Reflection:
    predicted, basis = _predicted(run.tree[node.parents[0]], choice)
    return Reflection(
        id=name_of("reflection", source.id, node.id),
        sources=(source.id,),
        node=node.id,
        predicted=round(predicted, 6),
        measured=round(node.value, 6),
        basis=basis,
        done=one_line(node.label),
        said=_note(node.evaluation.notes, SAID_BYTES),
        issue=source.issue.statement,
        lesson=run.note(node.id, LESSON) or "",
    )


def _predicted(parent: Node, choice: Choice | None) -> tuple[float, str]:
    """The value expected of a child when the parent was chosen, and its basis: the search's value of the parent, else
    the parent's own value, from a judge or from tests."""
    for reason in reversed(choice.reasons if choice else ()):
        value = reason.terms.get("value")
        if reason.node == parent.id and value is not None and 0.0 <= value <= 1.0:
            return value, "search"
    return parent.value, "measured" if parent.value == parent.evaluation.by_tests else "judge"


def _patch(run: Run) -> bytes:
    """The verified patch; for a failed run, one that verification refuted and the guard did not refuse."""
    assert run.ended is not None
    if run.ended.patch_blob:
        return run.journal.get_blob(run.ended.patch_blob)
    verdicts = run.verdicts()
    honest = [note["patch"] for note in verdicts if not note["why"].startswith(MANIPULATION)]
    return run.journal.get_blob(honest[0]) if honest else b""


def _note(text: str, most_bytes: int) -> str:
    return excerpt(visible(terminal_text(text)), most_bytes)[0]


def done_in(node: Node) -> str:
    """The edits and writes that led to a state, in the form of a diff."""
    edits = [action for action in node.actions if isinstance(action, (Edit, Write))]
    return visible(excerpt("\n".join(line for edit in edits for line in _lines(edit)), CHANGE_BYTES)[0])


def _lines(edit: Edit | Write) -> Iterator[str]:
    yield edit.path
    for replacement in edit.replacements if isinstance(edit, Edit) else [Replacement("", edit.content)]:
        yield from (f"- {line}" for line in replacement.old.splitlines())
        yield from (f"+ {line}" for line in replacement.new.splitlines())
