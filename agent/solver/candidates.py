"""The candidate pool: states whose patch may be the run's answer, each verified once, and the choice among them.

`CandidatePool.finish` maintains the invariant of `agent.solver.solve`: there is always an answer.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

from agent.budget import Stop, Usage
from agent.engine.session import Cancellation, Session
from agent.evaluate.scorer import StagedScorer
from agent.evaluate.verification import verify
from agent.run.events import Noted, Spent
from agent.run.grade import Grade, grade
from agent.run.rollouts import is_candidate
from agent.run.tree.node import Node, NodeId
from agent.run.verdict import VERDICT
from agent.search.continuing import OpenLines
from agent.solver.outcome import end
from agent.solver.result import Result
from agent.solver.same_change import program, source_change
from sandboxes import SandboxError, StoreFull

log = logging.getLogger(__name__)

CANDIDATES = 5
"""How many states are verified when a search ends, best first; with rounds, how many in each round."""


class CandidatePool:
    """The candidates of a run, in one session."""

    def __init__(self, session: Session, scorer: StagedScorer) -> None:
        self._session, self.scorer = session, scorer
        self._run = session.run
        self._by_patch: dict[str, Node] = {}
        """The first state seen with each patch, by the patch's blob; kept while candidates are compared."""
        self._programs: dict[NodeId, bytes] = {}
        self.preferred: Sequence[NodeId] | None = None
        """The candidates in the order in which a comparison ranked them, best first; None: nothing was compared."""

    def solved(self) -> Node | None:
        """The oldest solved state that no verification has refuted."""
        run = self._run
        return next((run.tree[node_id] for node_id in run.tree.solved if run.solved(node_id)), None)

    def done(self) -> Stop | None:
        """Return the reason to stop, or None. The search stops if a state is solved, if no goal is known and as many
        lines of work as requested were submitted, or if several lines in a row ended without a better state."""
        if self.solved():
            return Stop.SOLVED
        lines, tree = self._session.components.lines, self._run.tree
        if lines is None:
            return None
        ended = list(tree.view(OpenLines, OpenLines).ended)
        if not self.scorer.task.goal_tests and sum(map(self._is_finished_line, ended)) >= lines:
            return Stop.SUBMITTED
        patience = self._session.components.patience
        best = max((tree[node_id].value for node_id in ended[:-patience]), default=tree.root.value)
        stuck = len(ended) >= lines + patience - 1 and all(tree[n].value <= best for n in ended[-patience:])
        return Stop.NO_PROGRESS if stuck else None

    def _is_finished_line(self, node_id: NodeId) -> bool:
        """Whether the line of work that ended at this node counts as one of those requested: it was submitted without a
        change, or with a patch that applies and does not tamper with the tests, and no critic wants it abandoned."""
        node = self._run.tree[node_id]
        refuted = self._run.verdict(node_id) is not None and self.grade(node) is Grade.NONE
        return node.submitted and not node.evaluation.aborted and not (refuted and self.patch(node))

    def unchecked(self) -> Node | None:
        """Return the state to verify next: a solved one (it is verified only once), else the end of a finished line
        without a verdict, else None."""
        if (node := self.solved()) is not None:
            return node
        ended = self._run.tree.view(OpenLines, OpenLines).ended
        waiting = (n for n in ended if self._is_finished_line(n) and self._run.verdict(n) is None)
        return next((self._run.tree[node_id] for node_id in waiting), None)

    def verdict(self, node: Node) -> Mapping[str, Any]:
        """Return the verification of a state (`agent.evaluate.verification.Verdict.to_note`). It is made once and then
        read from the journal. While candidates are compared, states with the same patch share one verification.

        Raises:
            sandboxes.SandboxError: the state cannot be verified; `StoreFull` if there is no room.
        """
        if (known := self._run.verdict(node.id)) is not None:
            self._same_patch(node, known["patch"])
            return known
        patch = self.patch(node)
        first = self._same_patch(node, sha256(patch).hexdigest())
        verdict = self._verify(node, patch) if first is node else self.verdict(first)
        self._session.record(Noted(node.id, VERDICT, verdict))
        return verdict

    def acceptable(self, node: Node) -> bool:
        """Whether the verification says that the state's patch may be the answer.

        Raises:
            sandboxes.SandboxError: as `verdict`.
        """
        self.verdict(node)
        return self.grade(node) > Grade.NONE

    def grade(self, node: Node) -> Grade:
        """How good the state's patch is; NONE until it is verified."""
        return grade(node, self._run.verdict(node.id) or {}, self.scorer.task.goal_tests)

    def patch(self, node: Node) -> bytes:
        """The state's patch against the root state."""
        if (verdict := self._run.verdict(node.id)) is not None:
            return self._run.journal.get_blob(verdict["patch"])
        return self._session.components.provider.diff(self._run.tree.root.snapshot, node.snapshot)

    def source_change(self, node: Node) -> bytes:
        """The part of the state's patch that changes neither tests nor scratch files."""
        return source_change(self.patch(node), self.scorer.own.is_test)

    def program(self, node: Node) -> bytes:
        """A digest of the program that results from the state's source change (`agent.solver.same_change.program`)."""
        if node.id not in self._programs:
            with self._session.components.provider.at(node.snapshot) as box:
                self._programs[node.id] = program(self.source_change(node), box.read)
        return self._programs[node.id]

    def candidates(self) -> list[Node]:
        """States worth a patch (`agent.run.rollouts.is_candidate`), the most promising first: solved, then submitted
        if no goal is known, then by the results of tests and critics."""
        tree, goals = self._run.tree, self.scorer.task.goal_tests
        better = [node for node in tree if is_candidate(node, tree.root)]

        def sort_key(node: Node) -> tuple[bool, bool, bool, float, bool, int]:
            done, evaluation = node.submitted and not goals, node.evaluation
            age = -node.id if node.by_model and not evaluation.solved else node.id
            return not evaluation.solved, not done, not evaluation.accepted, -node.value, not node.submitted, age

        return sorted(better, key=sort_key)[:CANDIDATES]

    def verified_rank(self, node: Node) -> tuple[Grade, int, int]:
        """A sort key made of the facts about a verified candidate, the higher the better: its grade, how many goal
        tests pass with it, and minus how many other tests it breaks."""
        passing = sum(node.report.passed(test) for test in self.scorer.task.goal_tests)
        return self.grade(node), passing, -len((self._run.verdict(node.id) or {}).get("broken", ()))

    def finish(self, stop: Stop, error: BaseException | None) -> Result:
        """Choose the answer and record how the session ended. The answer is the most promising state whose patch passes
        verification; after a comparison, the one with the best facts, and among equals the most preferred. States that
        cannot be verified are skipped."""
        answer = None
        cancel = self._session.cancel
        at_once = stop is Stop.INTERRUPTED and isinstance(cancel, Cancellation) and not cancel.verifies
        for candidate in self.candidates():
            if at_once and self._run.verdict(candidate.id) is None:
                return self._end_unverified(candidate, stop, error)
            try:
                if self.acceptable(candidate):
                    answer = candidate
                    break
            except StoreFull as full:
                return self._end_unverified(candidate, Stop.FAILED, error or full)
            except SandboxError as lost:
                log.warning("node %d cannot be verified and is skipped: %s", candidate.id, lost)
                error = error or lost
        if self.preferred is not None:
            answer = max(self._verified(self.preferred), key=self.verified_rank, default=answer)
        verdict = self._run.verdict(answer.id) or {} if answer else {}
        return end(self._session, self.grade(answer).status if answer else "no_patch", answer, stop, error, verdict)

    def _same_patch(self, node: Node, patch_blob: str) -> Node:
        """Return the first known state with this patch; without a comparison, the state itself."""
        return node if self.preferred is None else self._by_patch.setdefault(patch_blob, node)

    def _verify(self, node: Node, patch: bytes) -> Mapping[str, Any]:
        """Verify a state's patch (`agent.evaluate.verification.verify`). Returns the verdict as a note."""
        provider = self._session.components.provider
        provider.require_room(to_finish=True)
        verdict = verify(provider, self._run.tree.root, node, patch, self.scorer)
        self._session.record(Spent(Usage(measurements=verdict.measurements), "verification", node.id))
        return verdict.to_note(self._run.journal.put_blob(patch))

    def _verified(self, preferred: Sequence[NodeId]) -> Iterator[Node]:
        """Yield all states whose patch passes verification, the preferred ones first."""
        tree = self._run.tree
        for node_id in dict.fromkeys([*preferred, *range(len(tree))]):
            if self.grade(tree[node_id]) > Grade.NONE:
                yield tree[node_id]

    def _end_unverified(self, best: Node, stop: Stop, error: BaseException | None) -> Result:
        """End with the best state's patch unverified because there is no room or no time. A later session verifies
        it."""
        patch = self._session.components.provider.diff(self._run.tree.root.snapshot, best.snapshot)
        final = {"passed": len(best.report.passes), "failed": len(best.report.failures)}
        note = {"patch": self._run.journal.put_blob(patch), "final": final}
        return end(self._session, "improved", best, stop, error, note, verified=False)
