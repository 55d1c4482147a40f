"""Answers by the conversation before them, over all runs of a task: conversations that begin alike share a prefix.

TreeCUA (arXiv 2602.09662) stores trajectories of many explorations as one tree in this way. A prefix is the digest of a
prompt and its tools, so that it is kept once, however many runs have it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from agent.learning.export.hygiene import flagged
from agent.learning.export.provenance import journal_digest, task_key
from agent.learning.export.turns import Turn, Turns
from agent.run.action_log import task_of
from agent.run.credit import mean_values
from agent.run.run import Run


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer to a prefix."""

    journal: str
    """The digest of the run's journal."""
    run: str
    """The name of the run's directory."""
    turn: Turn
    """The turn without its prompt, which is the prefix."""
    score: float
    """The mean value in the subtree of the state that the turn led to, in [0, 1]."""


@dataclass(slots=True)
class Prefixes:
    """For each prefix, the answer with the lowest score in all runs that were added."""

    _worst: dict[tuple[str, str], Answer] = field(default_factory=dict)

    def take_in(self, run: Run) -> None:
        """Add the answers of a run, except those that tampered with tests."""
        for key, answer in _answers(run):
            if key not in self._worst or answer.score < self._worst[key].score:
                self._worst[key] = replace(answer, turn=replace(answer.turn, prompt=()))

    def beaten(self, run: Run, gap: float) -> Iterator[tuple[Answer, Answer]]:
        """Answers of a run, each with the worst answer of another run to the same prefix, if that answer differs and
        its score is lower by more than `gap`. If the run has several answers to a prefix, only the best counts."""
        best = dict[tuple[str, str], Answer]()
        for key, answer in _answers(run):
            if key not in best or answer.score > best[key].score:
                best[key] = answer
        for key, answer in best.items():
            worst = self._worst.get(key)
            if (
                worst
                and worst.journal != answer.journal
                and answer.score - worst.score > gap
                and not answer.turn.same_answer(worst.turn)
            ):
                yield answer, worst


def _answers(run: Run) -> Iterator[tuple[tuple[str, str], Answer]]:
    turns, task, q, tampered = Turns(run), task_key(task_of(run)), mean_values(run), flagged(run)
    for node in run.tree:
        for turn in turns.of(node.id) if node.id not in tampered else ():
            if turn.asked is not None:
                by = replace(turn.step, policy_id=turn.step.policy_id or node.policy_id)
                of_run = journal_digest(run), run.journal.directory.name
                yield (task, turn.digest), Answer(*of_run, replace(turn, step=by), q[node.id])
