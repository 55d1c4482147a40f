"""Rounds: rollouts are finished and compared; the next ones start at the root, with a briefing about the earlier ones.

Invariant: all results of a round are in the journal, so that a session that is killed at any point can be continued.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from agent.budget import BudgetSpent, Stop
from agent.engine.completion import FinishedRollouts
from agent.engine.components import RoundComponents
from agent.engine.session import Session
from agent.errors import RamifyError, Stopped
from agent.run.events import Round
from agent.run.grade import succeeded
from agent.run.rollouts import RoundPlan, Summary
from agent.run.tree.node import ROOT, NodeId
from agent.solver.candidates import CandidatePool
from agent.solver.comparison import Comparison
from agent.solver.refine import brief
from agent.solver.refine.gates import gate_key, needed
from agent.solver.refine.local import repairs
from agent.solver.refine.plan import draw_plan
from agent.solver.searcher import Searcher
from agent.solver.tournament import Ranking
from sandboxes import SandboxError

CHOOSING_SHARE = 0.2
"""The share of each limit that is kept for choosing among several finished rollouts."""
AGREEING = 3
"""The fewest rollouts whose agreement ends a round early."""


@dataclass(frozen=True, slots=True)
class Rounds:
    """The rounds of a run, in one session."""

    session: Session
    parts: RoundComponents
    searcher: Searcher
    pool: CandidatePool

    def run(self) -> Stop:
        """Run rounds until no other is needed, or the search ends for another reason. A round continues to its end even
        if one of its rollouts has solved the task. If a limit is reached, the rollouts are compared by rules."""
        self.pool.preferred = self._comparison.ranked()
        while True:
            stop = self.searcher.run(self.session.cancel, self._enough)
            try:
                if stop not in (Stop.FINISHED, Stop.EXHAUSTED):
                    self._judge_by_rules(stop)
                    return stop
                if (end := self._compare_rollouts()) is not None:
                    return end
                self._begin_next()
            except (BudgetSpent, RamifyError, SandboxError) as error:
                return self._failed(error)

    def _enough(self) -> Stop | None:
        """Return the reason to stop, or None. A round stops if its rollouts are finished or agree, or if only the share
        of the limits that is kept for choosing among them is left; but expansions that a person has ordered are done
        first."""
        done = self._finished.count >= self.parts.rollouts or self._agreed() or self._late()
        return Stop.FINISHED if done and not any(self.session.run.steering.waiting(self.session.run.tree)) else None

    @property
    def _finished(self) -> FinishedRollouts:
        """The finished rollouts of the round. A single edit is finished only if it solves the task."""
        tree, solved_only = self.session.run.round_tree or self.session.run.tree, self.parts.single_edits
        return tree.view((FinishedRollouts, solved_only), lambda t: FinishedRollouts(t, solved_only=solved_only))

    def _agreed(self) -> bool:
        """Whether more than half of the round's rollouts, and at least three, succeed (`agent.run.grade.succeeded`),
        and make the same change, so that the others cannot outvote it, or were all accepted by a critic.
        Sampling until the majority is clear is Adaptive-Consistency (arXiv 2305.11860)."""
        enough, ends = max(AGREEING, self.parts.rollouts // 2 + 1), self._finished.ends
        if not self.parts.tournament.stop_agreed or self.parts.single_edits or len(ends) < enough:
            return False
        tree, goals = self.session.run.tree, self.pool.scorer.task.goal_tests
        successes = [node for node in map(tree.__getitem__, ends) if succeeded(node, tree.root, goals)]
        if sum(node.evaluation.approved for node in successes) >= enough:
            return True
        try:
            programs = Counter(map(self.pool.program, successes))
        except SandboxError:  # the comparison of the rollouts meets it again, and reports it
            return False
        return max(programs.values(), default=0) >= enough

    def _late(self) -> bool:
        """Whether only the share of the limits that is kept for choosing is left. Single edits may never finish as many
        rollouts as requested, so each round with them ends when its share of the limits is used."""
        run, parts, budget = self.session.run, self.parts, self.session.components.budget
        if parts.single_edits:
            return run.round < parts.rounds * budget.used_share()
        return self._finished.count > 1 and budget.used_share(excluding=(Stop.NODES,)) >= 1.0 - CHOOSING_SHARE

    def _compare_rollouts(self) -> Stop | None:
        """Compare the rollouts of all rounds. Returns the reason why no round follows, or why the comparison failed;
        None: another round follows."""
        comparison, candidates = self._comparison, []
        if self.parts.tournament.model_summaries:
            comparison.summarise_by_model([rollout.best for rollout in comparison.rollouts()])
        for rollout in comparison.rollouts():
            if (stop := self._interrupted()) is not None:
                return stop
            if (candidate := comparison.candidate(rollout)) is not None:
                candidates.append(candidate)
        ranking = comparison.rank(candidates)
        self.pool.preferred = comparison.ranked()
        return self._no_further(ranking) if ranking.error is None else self._failed(ranking.error)

    def _judge_by_rules(self, stop: Stop) -> None:
        """Compare the rollouts after a limit was reached, without further requests. Each is verified like any
        answer."""
        if stop not in (Stop.NODES, Stop.CALLS, Stop.TOKENS, Stop.COST, Stop.BATCH) or self.parts.single_edits:
            return
        comparison = self._comparison
        offers = [comparison.candidate(rollout, by_rules=True) for rollout in comparison.rollouts()]
        comparison.rank([offer for offer in offers if offer is not None], by_rules=True)
        self.pool.preferred = comparison.ranked()

    def _no_further(self, ranking: Ranking) -> Stop | None:
        """Return the reason why no round follows; None: another one follows."""
        can_begin = self._can_begin()
        if can_begin and self.session.run.round < self.parts.rounds and self._is_needed(ranking):
            return None
        if any(entrant.facts.solved for entrant in ranking.order):
            return Stop.SOLVED
        return Stop.FINISHED if can_begin else Stop.EXHAUSTED

    def _is_needed(self, ranking: Ranking) -> bool:
        """Whether the gate asks for another round; it decides once a round. Single edits that solve nothing continue
        until a limit is reached."""
        run, parts = self.session.run, self.parts
        first = run.rounds[-1].first if run.rounds else 1

        def decide() -> Mapping[str, Any]:
            decision = needed(ranking, run.round, first, gate=parts.refine.gate, until_solved=parts.single_edits)
            return asdict(decision)

        return bool(self.session.memo(gate_key(run.round), decide)["refine"])

    def _can_begin(self) -> bool:
        """Whether rollouts can start at the root: it can be expanded, and no other node is pinned."""
        tree, steering = self.session.run.tree, self.session.run.steering
        return tree.expandable(ROOT) and steering.pin(tree) in (None, ROOT)

    def _begin_next(self) -> None:
        """Start a round. A share of its rollouts continue from states of earlier rounds."""
        run, refine, order = self.session.run, self.parts.refine, self._best_first()
        self._comparison.summarise_by_model(order[: refine.priors])
        briefing = brief(run, order, refine, self._draw)
        local = repairs(run, order, self.pool.scorer.task.goal_tests, int(refine.local * self.parts.rollouts))
        self.session.record(Round(run.round + 1, len(run.tree), briefing, tuple(local)))

    def _draw(self, summaries: Sequence[Summary]) -> RoundPlan | None:
        planner, ask = self.parts.planner, self.session.gateway.at(None, "plan")
        return draw_plan(planner, self.pool.scorer.task, summaries, ask) if planner else None

    def _best_first(self) -> list[NodeId]:
        """Return the best states of the rollouts: the ranked candidates first, then the others."""
        tree = self.session.run.tree
        others = [rollout.best for rollout in self._comparison.rollouts()]
        by_value = sorted(others, key=lambda node: (-tree[node].value, node))
        return list(dict.fromkeys([*(self.pool.preferred or ()), *by_value]))

    @property
    def _comparison(self) -> Comparison:
        return Comparison(self.session, self.parts, self.pool)

    def _interrupted(self) -> Stop | None:
        budget = self.session.components.budget
        if self.session.cancel.is_set():
            return Stop.INTERRUPTED
        return budget.stop() if budget.left_s <= 0 else None

    def _failed(self, error: Exception) -> Stop:
        """Return the reason to stop when the rollouts cannot be compared."""
        if isinstance(error, BudgetSpent):
            return error.stop
        if isinstance(error, Stopped) and (stop := self._interrupted()) is not None:
            return stop
        self.searcher.error = error
        return Stop.FAILED
