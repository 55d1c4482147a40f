"""EditPolicy: the edits that `mutate` enumerates, in a learned order.

A ranking estimates how likely each of a state's first edits is right. That likelihood is the edit's prior (for PUCT and
similar searches), and edits are proposed in its order. Edits beyond the first `width` come afterwards, in the order of
`mutate`. The ranking of a state is computed once and recorded in the run, so that a resumed search continues with it
and asks no model again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from agent.actions import Edit
from agent.policy import Position, Proposal
from agent.policy.edit.context import Context, contexts, printed_by
from agent.policy.edit.ranking import Choice, Ranking, ranked
from agent.policy.edit.record import Ranked, key
from agent.policy.mutate import MutatePolicy
from agent.policy.mutate.later_rounds import goals_to_fix

__all__ = ["EditPolicy"]


@dataclass(frozen=True, slots=True)
class EditPolicy:
    """Proposes the edits of `mutate` in the order of a ranking."""

    mutate: MutatePolicy
    ranking: Ranking
    width: int = 200
    """How many edits of a state are ranked, at least 1."""
    printed: bool = False
    """Whether a model is shown what the failing tests of the state printed, and rows for training have it."""

    def __post_init__(self) -> None:
        if self.width < 1:
            raise ValueError(f"width={self.width} is too small: give at least 1")
        if not isinstance(self.printed, bool):
            raise ValueError(f"printed={self.printed!r}: give true or false")

    @property
    def policy_id(self) -> str:
        """The name, with the version of the ranking, and whether the rows have what tests printed."""
        return f"edit/1/{self.ranking.version}{'/printed' if self.printed else ''}"

    def propose(self, position: Position, rng: Random) -> Proposal:
        """The next edit of the position's state."""
        note = position.memo(key(position.node.id, len(position.earlier)), lambda: self._ranked(position).to_json())
        order = Ranked.from_json(note).order
        if position.index >= len(order):
            return self.mutate.propose(position, rng)
        entry = order[position.index]
        proposal = self.mutate.propose(replace(position, index=entry.index), rng)
        return replace(proposal, prior=entry.prior, label=proposal.label.replace("mutate:", "edit:", 1))

    def _ranked(self, position: Position) -> Ranked:
        """The ranking of a state. Its randomness depends on the task and the state alone, not on the run's seed."""
        rng = Random(f"{position.node.state_hash}/{position.task.id}")
        proposals = list[Proposal]()
        while len(proposals) < self.width:
            proposal = self.mutate.propose(replace(position, index=len(proposals)), rng)
            if not proposal.actions:
                break
            proposals.append(proposal)
        functions = self._contexts(position, proposals)
        choices = [Choice.of(_edits(proposal), proposal.prior, functions) for proposal in proposals]
        return ranked(self.ranking, choices, functions, position.ask, rng)

    def _contexts(self, position: Position, proposals: list[Proposal]) -> list[Context]:
        """The functions that the proposals edit."""
        lines: dict[str, list[int]] = {}
        for edit in (edit for proposal in proposals for edit in _edits(proposal)):
            lines.setdefault(edit.path, []).append(edit.line or 0)
        shown = printed_by(position.node.report.messages, goals_to_fix(position)) if self.printed else ""
        files = {path: position.box.read(path) for path in sorted(lines)}
        return [context for path, data in files.items() for context in contexts(path, data, lines[path], shown)]


def _edits(proposal: Proposal) -> tuple[Edit, ...]:
    return tuple(action for action in proposal.actions if isinstance(action, Edit))
