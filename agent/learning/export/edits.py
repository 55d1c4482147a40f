"""Rows for the compact policy (`agent.policy.edit`): a function with numbered lines, and an edit of it.

Only searches with the policy `edit` record the functions that rows need; `policy.by=mutate` makes it propose the edits
of `mutate` in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import attrgetter
from typing import ClassVar, Literal

from agent.learning.export import AtLeastOne, Row, skipped
from agent.learning.export.provenance import of_answers
from agent.policy.edit.context import Context
from agent.policy.edit.counts import Trial, trials
from agent.policy.edit.record import Ranked
from agent.run.message_store import digest_of
from agent.run.run import Run
from agent.run.tree.node import NodeId


@dataclass(frozen=True, slots=True)
class Edits:
    """`sft`: each right edit (`prompt`, `completion`). `preference`: each right edit with wrong ones of the same
    function (`chosen`, `rejected`), the closest first. `kto`: every edit, and whether it was right (`label`). An edit
    is right if its state or one below it solved the task."""

    kind: Literal["sft", "preference", "kto"] = "sft"
    pairs: AtLeastOne = 4
    """The maximum number of pairs for one right edit."""

    def __call__(self, run: Run) -> Iterator[Row]:
        """The rows of a run."""
        for placed in _placed(run):
            known = [(replace(trial, right=self._is_right(trial, at)), at) for trial, at in placed if at is not None]
            yield from (skipped("an edit of no function, or of several") for _ in range(len(placed) - len(known)))
            yield from self._rows(run, known)

    def _is_right(self, trial: Trial, context: Context) -> bool:
        return trial.right

    def _rows(self, run: Run, known: Sequence[tuple[Trial, Context]]) -> Iterator[Row]:
        for trial, context in known:
            if self.kind == "kto":
                yield _row(run, context, [trial], completion=trial) | {"label": trial.right}
            elif trial.right and self.kind == "sft":
                yield _row(run, context, [trial], completion=trial)
            elif trial.right:
                wrong = [other for other, place in known if place == context and not other.right]
                wrong.sort(key=lambda other: (-run.tree[other.node].value, other.node))
                for other in wrong[: self.pairs]:
                    yield _row(run, context, [trial, other], chosen=trial, rejected=other)


@dataclass(frozen=True, slots=True)
class Judged(Edits):
    """As `Edits`, for kinds with right and wrong edits: an edit that was right in one run is right in all."""

    needs_all_runs: ClassVar[bool] = True
    _right: set[str] = field(default_factory=set, init=False, repr=False)
    """The right edits of all runs, by `_name`."""

    def collect(self, run: Run) -> None:
        """Collect the right edits of a run."""
        for placed in _placed(run):
            self._right.update(_name(trial, context) for trial, context in placed if context and trial.right)

    def _is_right(self, trial: Trial, context: Context) -> bool:
        return _name(trial, context) in self._right


def _placed(run: Run) -> Iterator[list[tuple[Trial, Context | None]]]:
    """The edits tried at each state whose functions are recorded, each with its function."""
    for parent, tried in groupby(trials(run), attrgetter("parent")):
        if ranked := Ranked.of(run, parent):
            yield [(trial, _context(trial, ranked.contexts)) for trial in tried]


def _name(trial: Trial, context: Context) -> str:
    """A key of an edit: a digest of its prompt and its text."""
    return digest_of([context.prompt, context.action(trial.edits)])


def _row(run: Run, context: Context, about: Sequence[Trial], **answers: Trial) -> Row:
    nodes: list[NodeId] = [trial.node for trial in about]
    columns = {
        column: [{"role": "assistant", "content": context.action(trial.edits)}] for column, trial in answers.items()
    }
    prompt = [{"role": "user", "content": context.prompt}]
    origin = of_answers(run, nodes[0], nodes, [None] * len(answers))
    return {"prompt": prompt, **columns, "provenance": origin | {"prompts": [digest_of([[], *prompt])] * len(answers)}}


def _context(trial: Trial, contexts: Sequence[Context]) -> Context | None:
    return next((context for context in contexts if context.holds(trial.edits)), None)
