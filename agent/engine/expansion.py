"""Expansion: carries out one selected operation. It proposes or merges a child and measures it, or measures a node
again.

Invariant: a policy is shown what was known when its expansion began, and nothing that other workers found meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import assert_never

from agent.actions import Debug, Submit
from agent.actions.excerpt import printable
from agent.budget import BudgetSpent, Usage
from agent.counting import first_of
from agent.engine.components import Components
from agent.engine.feedback import Feedback
from agent.engine.merge import fuse
from agent.engine.session import Session
from agent.engine.turns import TurnRunner, TurnsResult
from agent.errors import MeasureError, PolicyError, RamifyError
from agent.evaluate.improvement import improves_strictly
from agent.evaluate.scorer import StagedScorer
from agent.policy import Policy, Position, Tried
from agent.policy.chat.conventions import conventions
from agent.policy.chat.layout import layout
from agent.run.events import Added, Begun, Merged, Remeasured
from agent.run.in_progress import SUSPECT, TRIES
from agent.run.run import Run
from agent.run.temporary_snapshots import TemporarySnapshots
from agent.run.tree.choice import Choice
from agent.run.tree.node import ROOT, Attempt, Node, NodeId, Step, Work
from agent.run.tree.tree import Tree, proposal_of
from agent.search.continuing import OpenLines
from agent.untrusted import one_line
from sandboxes import Sandbox, SandboxLost, Snapshot

TURNS = 200
"""Turns after which an expansion is measured even if its policy would continue."""
CACHED = {"__pycache__", ".pytest_cache", ".hypothesis", ".mypy_cache", ".ruff_cache"}
"""Folders that tests and other tools write to. Labels do not name files in them."""
FILES_NAMED = 5
"""The maximum number of changed files in the label of a state."""


@dataclass(frozen=True, slots=True)
class Context:
    """The objects that all expansions of one engine share."""

    session: Session
    scorer: StagedScorer
    ends_after: Callable[[Expansion, int], bool]
    """Whether an expansion should end after so many turns, and be recorded in its current state."""
    lines: dict[tuple[NodeId, NodeId], Tried] = field(default_factory=dict)
    """Lines of work that have ended, in the form that policies see, by their first and last node."""


@dataclass(frozen=True, slots=True)
class ExpansionResult:
    """The result of an expansion."""

    event: Added | Merged | Remeasured | None
    """An added node has no id yet. None: the policy has nothing left to propose at the node."""
    error: RamifyError | BudgetSpent | SandboxLost | None = None
    """What ended the policy's turns early, after a change that is recorded."""


@dataclass(frozen=True, slots=True, eq=False)
class Expansion:
    """A selected operation from the moment at which it begins: the `agent.engine.turns.TurnContext` of its policy."""

    context: Context
    choice: Choice
    policy: Policy | None
    """The policy that proposes; None if nothing is proposed."""
    index: int
    """How many times this work was started before, in the whole run."""
    number: int
    """Its ordinal among all selections of the run: the seed of its randomness."""
    begun_before: int
    """How many expansions had started before it (`agent.run.schedule`)."""
    nodes: int
    """How many nodes the tree had when it began: the policy is shown no later ones."""
    attempts: int
    """How many expansions of the node had ended when it began: the policy is shown no later ones."""
    lost: int = 0
    """How many processes that carried it out were killed."""

    @property
    def node(self) -> NodeId:
        """The node that is expanded."""
        return self.choice.node

    @property
    def policy_id(self) -> str:
        """The id of the policy; empty if no policy is asked."""
        return self.policy.policy_id if self.policy else ""

    @property
    def work(self) -> Work:
        """The key under which the tree counts this expansion."""
        return self.choice.node, self.choice.act, self.choice.other, self.policy_id

    @property
    def suspect(self) -> bool:
        """Whether this expansion may be the reason why processes were killed."""
        return self.lost >= SUSPECT

    @property
    def begun_event(self) -> Begun:
        """The event that it has started."""
        return Begun(self.choice, self.begun_before, self.index, self.policy_id, self.nodes, self.attempts)

    @property
    def _run(self) -> Run:
        return self.context.session.run

    @property
    def _tree(self) -> Tree:
        return self._run.tree

    @property
    def _components(self) -> Components:
        return self.context.session.components

    def run(self, temporary: TemporarySnapshots) -> ExpansionResult:
        """Carry the choice out and measure the state that it leads to, unless the tree has that state.

        Raises:
            agent.engine.merge.NotFused: two branches cannot be merged.
            agent.errors.RamifyError, agent.budget.BudgetSpent, sandboxes.SandboxError: it failed, and changed nothing.
        """
        if self.lost >= TRIES:
            raise PolicyError(f"the process that carried it out was killed each time, {self.lost} in all")
        match self.choice.act:
            case "expand":
                taken = self._take_turns(temporary)
                return ExpansionResult(self._reach(self._child(taken)) if taken.steps else None, taken.error)
            case "fuse":
                return ExpansionResult(self._reach(self._fused(temporary)))
            case "measure":
                return ExpansionResult(self._measure_again())
            case unknown:
                assert_never(unknown)

    def known_node(self, child: Node) -> Node | None:
        """The node that a child would be a second copy of (a transposition): what the same proposal led to before, else
        the node with its state. A node that only repeats its parent's state is new, and so is any turn of a model."""
        if child.by_model:
            return None
        if (same := self._tree.proposals.child_for(self.node, proposal_of(child.steps))) is not None:
            return self._tree[same]
        return None if child.state_hash == self._tree[self.node].state_hash else self._tree.with_state(child.state_hash)

    def merged(self, known: Node, child: Node) -> Merged:
        """The event that the expansion led to a node that the tree already has."""
        elapsed, proposal = self._components.budget.elapsed_s, proposal_of(child.steps)
        return Merged(self.node, known.id, child.label, self.policy_id, elapsed, self.choice, proposal)

    def _reach(self, child: Node) -> Added | Merged:
        if (known := self.known_node(child)) is not None:
            return self.merged(known, child)
        if child.state_hash != self._tree[self.node].state_hash:
            child = self._measured(child)
        return Added(child, elapsed_s=self._components.budget.elapsed_s, choice=self.choice)

    def _take_turns(self, temporary: TemporarySnapshots) -> TurnsResult:
        assert self.policy is not None
        components = self._components
        keep = self._run.journal.put_blob
        turns = TurnRunner(components.provider, self.policy, TURNS, temporary, self, components.allowed, keep)
        return turns.take(self._tree[self.node].snapshot, Random(f"{components.seed}/{self.node}/{self.index}"))

    def _child(self, taken: TurnsResult) -> Node:
        """The state that the policy's turns led to, not measured yet."""
        parent = self._tree[self.node]
        child = replace(
            parent,
            id=-1,
            parents=(parent.id,),
            steps=taken.steps,
            snapshot=taken.state,
            prior=taken.last.prior,
            policy_id=self.policy_id,
            terminal=self._is_over(taken),
            label=taken.last.label,
            kind=self.choice.kind,
            line_end=taken.line_end,
        )
        return (
            replace(child, label=self._label(parent, child)) if child.by_model and child.kind != "strategy" else child
        )

    def _is_over(self, taken: TurnsResult) -> bool:
        """Whether a line of work has ended for good. A search that repairs solutions may continue from a submitted one
        while a goal test fails."""
        submitted = any(step.submission for step in taken.steps)
        repairable = submitted and self.choice.kind in ("solution", "debug") and self.context.scorer.task.goal_tests
        return bool(taken.line_end) and not repairable

    def _fused(self, temporary: TemporarySnapshots) -> Node:
        """The merge of two branches, not measured yet."""
        node, other = self.node, self.choice.other
        if other is None:
            raise ValueError(f"node {node} cannot be fused with nothing: a search has to name `other`")
        return replace(
            self._tree[node],
            id=-1,
            parents=(node, other),
            steps=(),
            snapshot=temporary.add(fuse(self._components.provider, self._tree, node, other)),
            prior=1.0,
            policy_id="",
            terminal=False,
            label=f"fuse {node} + {other}",
            kind="fuse",
            line_end="",
        )

    def _measured(self, child: Node) -> Node:
        """The child with its report and evaluation."""
        path = self._tree.path(child.parents[0])
        report, evaluation, runs = self.context.scorer.score(child.snapshot, path, child.submission)
        self.context.session.record.spend(Usage(measurements=runs), "tests", child.parents[0])
        return replace(
            child,
            report=report,
            evaluation=evaluation,
            prior=child.prior if evaluation.expected is None else evaluation.expected,
            terminal=child.terminal or evaluation.solved,
            refused=self._components.gate == "strict" and not improves_strictly(path, report),
            patch=self._patch(child) if child.by_model or child.kind == "fuse" else "",
        )

    def _patch(self, child: Node) -> str:
        """Store a state's patch against the root, which is kept even if the state is removed. Returns its blob."""
        return self._run.journal.put_blob(self._components.provider.diff(self._tree.root.snapshot, child.snapshot))

    def _measure_again(self) -> Remeasured:
        """The node's report and evaluation from a fresh run of its tests, even if results are known."""
        node = self._tree[self.node]
        report, evaluation, runs = self.context.scorer.score_again(node, self._tree.path(node.id)[:-1])
        self.context.session.record.spend(Usage(measurements=runs), "tests", node.id)
        return Remeasured(node.id, evaluation, report, self._components.budget.elapsed_s, self.choice)

    def position(self, box: Sandbox, steps: tuple[Step, ...]) -> Position:
        """Return what the policy sees of a fork after these turns."""
        session, run, tree = self.context.session, self._run, self._tree
        recall, provider, task, memo = (
            self._components.recall,
            self._components.provider,
            self.context.scorer.task,
            session.memo,
        )
        return Position(
            task=task,
            path=tree.path(self.node),
            index=self.index - run.begun_in_earlier_rounds(self.node, self.policy_id),
            siblings=tuple(child for child in run.children(self.node) if child.id < self.nodes),
            tried=tuple(map(self._tried, run.attempts(self.node)[: self.attempts])),
            references=tuple(self._line(tree.root, tree[other]) for other in self.choice.references),
            continues=self.choice.continues,
            kind="" if self.choice.continues else self.choice.kind,
            hint=self.choice.hint,
            briefing=run.briefing if self.node == ROOT else None,
            earlier=run.earlier_proposals if self.node == ROOT else frozenset(),
            steps=steps,
            box=box,
            recall=partial(recall, task, tree.path(self.node), memo) if recall else str,
            layout=partial(layout, provider, tree.root.snapshot, memo),
            conventions=partial(conventions, provider, tree.root.snapshot, memo),
            ask=session.gateway.at(self.node, "policy"),
            memo=memo,
        )

    def known_state(self, step: Step) -> Snapshot | None:
        """Return the state that the step led to when it was taken from the same state before. A `submit` is always
        carried out, since its answer matters."""
        if any(isinstance(action, Submit) for action in step.actions):
            return None
        known = self._tree.proposals.child_for(self.node, proposal_of([step]))
        return None if known is None else self._tree[known].snapshot

    def ends_after(self, turns: int) -> bool:
        """Whether to stop after so many turns."""
        return self.context.ends_after(self, turns)

    def feedback(self, steps: tuple[Step, ...]) -> Feedback:
        """The object that answers `run_tests` and `submit` after these turns."""
        root, scorer = self._tree.root, self.context.scorer
        return Feedback(
            task=scorer.task,
            provider=self._components.provider,
            base=root.snapshot,
            baseline=root.report,
            scorer=scorer,
            spend=lambda usage: self.context.session.record.spend(usage, "tests"),
            turns=(*(step for node in self._tree.path(self.node) for step in node.steps), *steps),
            track=self._components.track,
        )

    def show_values(self, state: Snapshot, wanted: Debug) -> str:
        """Run one test and return the values that it shows. The run is reserved in addition to the one that will
        measure the expansion, and is refused if the budget has only that one left."""
        try:
            with self._components.budget.reserve(Usage(measurements=1)):
                values = self.context.scorer.debug(state, wanted)
                self.context.session.record.spend(Usage(measurements=1), "debug")
        except BudgetSpent as spent:
            raise MeasureError(f"no test can be run only to look at its values: {spent.stop.value}") from spent
        return values

    def _tried(self, attempt: Attempt) -> Tried:
        """Return an earlier expansion of the node in the form that the policy sees: the end of the line of work that it
        started."""
        tree = self._tree
        if attempt.child is None or attempt.known:
            known = None if attempt.child is None else tree[attempt.child]
            return Tried(attempt.label, node=known, known=attempt.known, reason=attempt.reason)
        last = tree[attempt.child]
        while last.by_model and (children := [c for c in tree.children(last.id) if c.id < self.nodes]):
            last = children[0]
        if not last.by_model or last.kind == "strategy":
            return Tried(last.label, node=last)
        if tree.pending_at(last.id) or tree.view(OpenLines, OpenLines).waits(last.id):
            return Tried(last.label)  # the line has not ended, and may still succeed
        return self._line(tree[self.node], last)

    def _line(self, begin: Node, last: Node) -> Tried:
        """Return a line of work: everything that it changed, and what the model said last."""
        key = begin.id, last.id
        if key not in self.context.lines:
            label = self._label(begin, replace(last, label=last.label.partition(": ")[2]))
            changes = printable(self._components.provider.diff(begin.snapshot, last.snapshot))
            self.context.lines[key] = Tried(label, changes, last)
        return self.context.lines[key]

    def _label(self, before: Node, after: Node) -> str:
        """Return a label: the files that differ between two states, and the model's own words."""
        same = after.state_hash == before.state_hash
        changes = () if same else self._components.provider.changes(before.snapshot, after.snapshot)
        paths = [
            change.path for change in changes if not (change.in_git or CACHED.intersection(change.path.split("/")))
        ]
        changed = f"changed {first_of(paths, FILES_NAMED)}" if paths else "changed nothing"
        return one_line(": ".join(filter(None, (changed, after.label))))
