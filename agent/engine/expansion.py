"""What a choice asks for, carried out: a child proposed or fused, a state measured. `engine` records the outcome."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random

from agent.actions import Debug, Submit
from agent.actions.excerpt import printable
from agent.budget import BudgetSpent, Usage
from agent.engine.components import Components, Scorer
from agent.engine.in_flight import Ticket
from agent.engine.merge import fuse
from agent.engine.model_calls import ModelGateway
from agent.engine.review import Review
from agent.engine.turns import Taken, Turns
from agent.errors import MeasureError, RamifyError
from agent.evaluate.improvement import improves_strictly
from agent.policy import Position, Tried
from agent.policy.chat.conventions import conventions
from agent.policy.chat.layout import layout
from agent.run.events import Remeasured
from agent.run.memo import Memo
from agent.run.run import Run
from agent.run.temporary_snapshots import TemporarySnapshots
from agent.run.tree.node import ROOT
from agent.run.tree.proposals import proposal_of
from agent.run.tree.tree import Attempt, Node, NodeId, Step, Tree
from agent.search.continuing import OpenLines
from agent.task import Task
from agent.untrusted import one_line
from sandboxes import Sandbox, Snapshot

__all__ = ["Acts"]

FILES_NAMED = 5
"""Changed files in the label of a state."""


@dataclass(frozen=True, slots=True)
class Acts:
    """Carries choices out, beside one another, in the sandboxes of one run."""

    task: Task
    parts: Components
    run: Run
    scorer: Scorer
    asker: ModelGateway
    once: Memo
    spend: Callable[[Usage, str, NodeId | None], None]
    """Records what was used the moment it was used, for what, and at which node."""
    stopped: Callable[[Ticket, int], bool]
    """Whether an expansion should come to its end after so many turns."""
    _lines: dict[tuple[NodeId, NodeId], Tried] = field(default_factory=dict, init=False)
    """Lines of work that were told, by where they began and ended."""

    @property
    def tree(self) -> Tree:
        """All that the run has found."""
        return self.run.tree

    def expand(self, ticket: Ticket, made: TemporarySnapshots) -> tuple[Node | None, RamifyError | BudgetSpent | None]:
        """The child that the policy makes of the node, not measured yet (None: it has nothing left to propose), and the
        error that ended its turns early, if one did."""
        assert ticket.policy is not None
        parent = self.tree[ticket.node]
        rng = Random(f"{self.parts.seed}/{ticket.node}/{ticket.index}")
        parts, known = self.parts, partial(self._known, parent)
        turns = Turns(
            parts.provider,
            ticket.policy,
            parts.turns_per_node,
            made,
            partial(self._review, parent),
            partial(self.stopped, ticket),
            known,
            parts.allowed,
            self.run.journal.put_blob,
            self._show_values,
        )
        taken = turns.take(parent.snapshot, rng, partial(self._position, ticket))
        child = replace(
            parent,
            id=-1,
            parents=(parent.id,),
            steps=taken.steps,
            snapshot=taken.state,
            prior=taken.last.prior,
            policy_id=ticket.policy_id,
            terminal=self._is_over(taken, ticket),
            label=taken.last.label,
            kind=ticket.choice.kind,
            line_end=taken.line_end,
        )
        if child.by_model and child.kind != "strategy":
            child = replace(child, label=self._label(parent, child))
        return child if taken.steps else None, taken.error

    def fuse(self, ticket: Ticket, made: TemporarySnapshots) -> Node:
        """The merge of two branches, not measured yet.

        Raises:
            agent.engine.merge.NotFused: they cannot be merged.
        """
        node, other = ticket.node, ticket.choice.other
        if other is None:
            raise ValueError(f"node {node} cannot be fused with nothing: a search has to name `other`")
        state = made.add(fuse(self.parts.provider, self.tree, node, other))
        label = f"fuse {node} + {other}"
        return replace(
            self.tree[node],
            id=-1,
            parents=(node, other),
            steps=(),
            snapshot=state,
            prior=1.0,
            policy_id="",
            terminal=False,
            label=label,
            kind="fuse",
            line_end="",
        )

    def measured(self, child: Node) -> Node:
        """A child whose state is new, with its report, and what follows from that."""
        path = self.tree.path(child.parents[0])
        report, evaluation, runs = self.scorer.score(child.snapshot, path)
        self.spend(Usage(measurements=runs), "tests", child.parents[0])
        return replace(
            child,
            report=report,
            evaluation=evaluation,
            terminal=child.terminal or evaluation.solved,
            refused=self.parts.gate == "strict" and not improves_strictly(path, report),
        )

    def measure_again(self, ticket: Ticket) -> Remeasured:
        """What the node's state is measured as now, whatever is known."""
        node = self.tree[ticket.node]
        report, evaluation, runs = self.scorer.score_again(node, self.tree.path(node.id)[:-1])
        self.spend(Usage(measurements=runs), "tests", node.id)
        return Remeasured(node.id, evaluation, report, self.parts.budget.elapsed_s, ticket.choice)

    def _is_over(self, taken: Taken, ticket: Ticket) -> bool:
        """Whether nothing is to follow where a line of work has ended. What a search that has solutions repaired asked
        for may be, as long as a goal test fails."""
        submitted = any(step.submission for step in taken.steps)
        repairable = submitted and ticket.choice.kind in ("solution", "debug") and self.scorer.task.goal_tests
        return bool(taken.line_end) and not repairable

    def _known(self, parent: Node, step: Step) -> Snapshot | None:
        """Where the step led to from the same state, if it was taken there before. A `submit` counts by its answer, and
        is carried out."""
        if any(isinstance(action, Submit) for action in step.actions):
            return None
        known = self.tree.proposals.known(parent.id, proposal_of([step]))
        return None if known is None else self.tree[known].snapshot

    def _position(self, ticket: Ticket, box: Sandbox, steps: tuple[Step, ...]) -> Position:
        tree, run, recall = self.tree, self.run, self.parts.recall
        tried = (self._tried(ticket, each) for each in run.attempts(ticket.node)[: ticket.attempts])
        return Position(
            task=self.task,
            path=tree.path(ticket.node),
            index=ticket.index - run.before(ticket.node, ticket.policy_id),
            siblings=tuple(child for child in run.children(ticket.node) if child.id < ticket.nodes),
            tried=tuple(tried),
            continues=ticket.choice.continues,
            kind="" if ticket.choice.continues else ticket.choice.kind,
            hint=ticket.choice.hint,
            briefing=run.briefing if ticket.node == ROOT else None,
            earlier=run.earlier if ticket.node == ROOT else frozenset(),
            steps=steps,
            box=box,
            recall=partial(recall, self.task, tree.path(ticket.node), self.once) if recall else str,
            layout=partial(layout, self.parts.provider, tree.root.snapshot, self.once),
            conventions=partial(conventions, self.parts.provider, tree.root.snapshot, self.once),
            ask=self.asker.at(ticket.node, "policy"),
            once=self.once,
        )

    def _tried(self, ticket: Ticket, attempt: Attempt) -> Tried:
        """What had come of an expansion of the node when the ticket was drawn: the end of the line that it began."""
        if attempt.child is None or attempt.known:
            known = None if attempt.child is None else self.tree[attempt.child]
            return Tried(attempt.label, node=known, known=attempt.known, reason=attempt.reason)
        last = self.tree[attempt.child]
        while last.by_model and (children := [c for c in self.tree.children(last.id) if c.id < ticket.nodes]):
            last = children[0]
        if not last.by_model or last.kind == "strategy":
            return Tried(last.label, node=last)
        if self.tree.pending(last.id) or self.tree.view(OpenLines, OpenLines).waits(last.id):
            return Tried(last.label)  # it may still become right
        place = ticket.node, last.id
        if place not in self._lines:
            self._lines[place] = self._line(self.tree[ticket.node], last)
        return self._lines[place]

    def _line(self, begin: Node, last: Node) -> Tried:
        """A line of work: all that it changed, and how the model put it in the end."""
        label = self._label(begin, replace(last, label=last.label.partition(": ")[2]))
        return Tried(label, printable(self.parts.provider.diff(begin.snapshot, last.snapshot)), last)

    def _label(self, parent: Node, child: Node) -> str:
        """Which files differ from a state before, and how the model put it."""
        same = child.state_hash == parent.state_hash
        changes = () if same else self.parts.provider.changes(parent.snapshot, child.snapshot)
        paths = [change.path for change in changes if not change.path.endswith(".pyc")]
        more = f" and {len(paths) - FILES_NAMED} more" if len(paths) > FILES_NAMED else ""
        changed = f"changed {', '.join(paths[:FILES_NAMED])}{more}" if paths else "changed nothing"
        return one_line(": ".join(filter(None, (changed, child.label))))

    def _review(self, parent: Node, steps: tuple[Step, ...]) -> Review:
        """Answers `run_tests` and `submit` after these turns of an expansion of a node."""
        root = self.tree.root
        return Review(
            task=self.scorer.task,
            provider=self.parts.provider,
            base=root.snapshot,
            baseline=root.report,
            scorer=self.scorer,
            spend=lambda usage: self.spend(usage, "tests", None),
            turns=(*(step for node in self.tree.path(parent.id) for step in node.steps), *steps),
        )

    def _show_values(self, state: Snapshot, wanted: Debug) -> str:
        """The run is reserved beside the one that will measure the expansion, and refused where there is no other."""
        try:
            with self.parts.budget.reserve(Usage(measurements=1)):
                shown = self.scorer.debug(state, wanted)
                self.spend(Usage(measurements=1), "debug", None)
        except BudgetSpent as spent:
            raise MeasureError(f"no test can be run only to look at its values: {spent.stop.value}") from spent
        return shown
