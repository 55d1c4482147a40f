"""Comparison of rollouts: those of all rounds are verified, summarised and ranked.

Invariant: nothing is done twice. Verdicts, summaries and ballots are in the journal, and a later session reads them
there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from agent.budget import Usage
from agent.engine.components import RoundComponents
from agent.engine.session import Session
from agent.run.ballots import Judge
from agent.run.cross_tests import UNTESTED, Matrix
from agent.run.events import Noted, Summarised, Voted
from agent.run.rollouts import Candidate, Rollout, Summary, is_candidate
from agent.run.run import Run
from agent.run.tree.node import ROOT, Node, NodeId
from agent.solver.candidates import CANDIDATES, CandidatePool
from agent.solver.contrast import contrasted, unsuspected
from agent.solver.cross_testing import CrossCheck
from agent.solver.refine import summary_of
from agent.solver.summaries import JOURNAL, summarise, summarise_by_model
from agent.solver.tournament import Ranking, rank
from agent.solver.tournament.note import key, note, notes

VOTING_SHARE = 1 / 3
"""How many requests voting may take, as a share of the requests that produced the candidates, if a model produced
them."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Compares the rollouts of a run, in one session."""

    session: Session
    parts: RoundComponents
    pool: CandidatePool

    def candidate(self, rollout: Rollout, *, by_rules: bool = False) -> Candidate | None:
        """Return the candidate that a rollout offers, or None if its patch does not pass verification. The rollout is
        summarised in any case. `by_rules`: the verification is not reserved in the budget.

        Raises:
            sandboxes.SandboxError: the candidate cannot be verified: `StoreFull` if there is no room.
            agent.budget.BudgetSpent: a limit forbids the verification.
        """
        run, pool = self.session.run, self.pool
        node = run.tree[rollout.best]
        verified = pool.acceptable if by_rules else self._acceptable
        acceptable = is_candidate(node, run.tree.root) and verified(node)
        summary = self._summary(rollout, by_rules=by_rules)
        if not acceptable:
            return None
        patch, source, program = pool.patch(node), pool.source_change(node), pool.program(node)
        return Candidate(rollout, patch, node.evaluation, summary, pool.grade(node), source, program)

    def _acceptable(self, node: Node) -> bool:
        """As `agent.solver.candidates.CandidatePool.acceptable`, with the test run reserved in the budget."""
        if self.session.run.verdict(node.id) is not None:
            return self.pool.acceptable(node)
        with self.session.components.budget.reserve(Usage(measurements=1)):
            return self.pool.acceptable(node)

    def rank(self, candidates: Sequence[Candidate], *, by_rules: bool = False) -> Ranking:
        """Rank the candidates, best first. Each new ballot is recorded at once, and the ranking at the end. `by_rules`:
        no new votes are held."""
        if self.parts.contrast and not by_rules:
            contrasted(self.session, self.parts.contrast, self.pool.scorer.task, candidates)
        candidates = unsuspected(self.session.run, candidates)
        session, name, judge = self.session, key(self.session.run.round), None if by_rules else self.parts.judge
        ranking = self._rank(candidates, judge(session.gateway.at(None, "judge")) if judge else None)
        noted = note(ranking, candidates, seed=session.components.seed)
        if session.run.note(ROOT, name) != noted:
            session.record(Noted(ROOT, name, noted))
        return ranking

    def ranked(self) -> list[NodeId]:
        """Return the latest ranking of the candidates by any session, best first."""
        noted = [noted for _, noted in notes(self.session.run)]
        return [entrant["node"] for entrant in noted[-1]["order"]] if noted else []

    def _rank(self, candidates: Sequence[Candidate], judge: Judge | None) -> Ranking:
        session, parts = self.session, self.parts
        proposing = sum(asked.purpose in ("policy", "") for asked in session.run.asked)
        return rank(
            self.pool.scorer.task,
            candidates,
            judge,
            group=parts.tournament.group,
            votes=parts.tournament.votes,
            requests=int(VOTING_SHARE * proposing) if proposing else None,
            round=session.run.round,
            known=session.run.ballots,
            record=lambda ballot: session.record(Voted(ballot)),
            workers=session.components.workers,
            cross_test=self._cross_test,
        )

    def _cross_test(self, authors: Sequence[Candidate], nodes: Sequence[NodeId]) -> Matrix:
        if not self.parts.tournament.crosscheck:
            return UNTESTED
        return CrossCheck(self.session, self.pool.scorer.own).matrix(authors, nodes)

    def rollouts(self) -> list[Rollout]:
        """Return the most promising rollouts of each round, round by round and best first. Of several rollouts with the
        same best state, only the first is returned."""
        run, most = self.session.run, max(CANDIDATES, self.parts.rollouts)
        distinct = list({rollout.best: rollout for rollout in reversed(run.rollouts())}.values())
        ranked = sorted(distinct, key=lambda rollout: _sort_key(run, rollout))
        by_round = ([rollout for rollout in ranked if rollout.round == n][:most] for n in range(1, run.round + 1))
        return list(chain.from_iterable(by_round))

    def _summary(self, rollout: Rollout, *, by_rules: bool) -> Summary:
        """Return the recorded summary of a rollout, or else make one from the journal, and record it unless `by_rules`
        is set."""
        run = self.session.run
        if (known := summary_of(run, rollout.leaf)) is not None:
            return known
        summary = summarise(run, self.session.components.provider, rollout)
        if not by_rules:
            self.session.record(Summarised(summary))
        return summary

    def summarise_by_model(self, nodes: Sequence[NodeId]) -> None:
        """Have the model, if there is one, summarise the rollouts with these best states, each once.

        Raises:
            agent.budget.BudgetSpent: a limit forbids a summary.
            agent.errors.ModelError, agent.errors.ConfigError: the model's provider failed.
        """
        session, run, model = self.session, self.session.run, self.parts.summariser
        if model is None:
            return
        for rollout in self.rollouts():
            known = summary_of(run, rollout.leaf)
            if rollout.best in nodes and (known is None or known.author == JOURNAL):
                task, ask = self.pool.scorer.task, session.gateway.at(rollout.best, "summary")
                summary = summarise_by_model(model, task, run, session.components.provider, rollout, ask)
                session.record(Summarised(summary))


def _sort_key(run: Run, rollout: Rollout) -> tuple[bool, bool, bool, float, int]:
    """A sort key: the lower, the more promising the rollout's best state."""
    node = run.tree[rollout.best]
    evaluation = node.evaluation
    answer = is_candidate(node, run.tree.root)
    return not answer, not evaluation.solved, not evaluation.accepted, -node.value, node.id
