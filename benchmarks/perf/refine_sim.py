"""Simulates the value of a second round of rollouts, by what is passed on to it.

    python -m benchmarks.perf.refine_sim --seeds 500

A repair has parts, some of which the tests check. A rollout finds each part by itself with one probability, and adopts
it from each prior that has it with a second one; each prior that has the part wrong prevents the rollout from having it
right with a third one. A rollout is right if it has all parts. The tournament and the gate are the real
`agent.solver.tournament.rank` and `agent.solver.refine.gates.needed`; the judge of patches that are equal by the tests
prefers the one with more parts with probability q.

The first table has rollouts with a fixed number of priors, by the number of right ones. The second has whole runs of
two rounds: how often the answer of the first and of the second round is right, how often a right answer stays right and
a wrong one becomes right, and how many rollouts the second round takes. That summaries are read as simulated is an
assumption. Nothing is timed.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

from agent.run.ballots import Ballot
from agent.run.cross_tests import UNTESTED, Matrix
from agent.run.grade import Grade
from agent.run.rollouts import Candidate, Rollout, Summary
from agent.run.tree.evaluation import Evaluation
from agent.solver.refine.gates import needed
from agent.solver.tournament import rank
from agent.task import Task
from benchmarks.reports.report import wilson
from sandboxes import Workspace

TASK = Task("simulated", "", Workspace(), "")

Parts = frozenset[int]
"""The parts of the repair that a rollout has."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The parameters of the simulation. Probabilities are in [0, 1]."""

    finds: float
    """The probability that a rollout finds a part by itself."""
    takes: float = 0.5
    """The probability that it adopts a part from one prior that has it."""
    misled: float = 0.1
    """The probability that one prior that has a part wrong prevents it from having the part right."""
    parts: int = 6
    visible: int = 3
    """The number of parts without which a test fails."""
    rollouts: int = 8
    """The number of rollouts in a round."""
    priors: int = 4
    rounds: int = 2
    q: float = 0.8
    """The probability that the judge is right about a pair."""
    votes: int = 8
    gate: bool = True

    @property
    def whole(self) -> Parts:
        """All parts: the right repair."""
        return frozenset(range(self.parts))


EASY = Setting(finds=0.99)
HARD = Setting(finds=0.5)


@dataclass(frozen=True, slots=True)
class Refined:
    """The result of a run."""

    answers: tuple[Parts, ...]
    """The answer after each round."""
    progress: tuple[float, ...]
    """The share of the visible parts in each answer."""
    later: int
    """The number of rollouts after the first round."""
    why: str
    """The gate's last reason."""


@dataclass(frozen=True, slots=True)
class _Judge:
    """Prefers the patch with more parts with probability `q`."""

    q: float
    rng: Random
    name: str = "simulated"

    def requests(self, size: int) -> int:
        """One."""
        return 1

    def vote(self, task: Task, group: tuple[Candidate, ...], vote: int, matrix: Matrix = UNTESTED) -> Ballot:
        """A ballot with the judge's preference."""
        fewer, more = sorted(group, key=lambda candidate: len(candidate.patch))
        preferred = more if self.rng.random() < self.q else fewer
        return Ballot(tuple(candidate.node for candidate in group), preferred.node, judge=self.name, vote=vote)


def refined(setting: Setting, seed: int) -> Refined:
    """Simulate a whole run."""
    rng, ballots = Random(f"refine/{seed}"), list[Ballot]()
    judge, answers, candidates, why = _Judge(setting.q, rng), list[Parts](), list[Candidate](), ""
    told_of: Sequence[Parts] = ()
    for number in range(1, setting.rounds + 1):
        rollouts = [rollout(setting, told_of, rng) for _ in range(setting.rollouts)]
        candidates += [_candidate(setting, parts, number, len(candidates) + n) for n, parts in enumerate(rollouts, 1)]
        order = rank(TASK, candidates, judge, votes=setting.votes, round=number, known=ballots, record=ballots.append)
        best_first = [_parts(entrant.candidate) for entrant in order.order]
        answers.append(best_first[0])
        decision = needed(order, number, len(candidates) - setting.rollouts + 1, gate=setting.gate)
        why = decision.why
        if not decision.refine:
            break
        told_of = best_first[: setting.priors]
    progress = tuple(_progress(setting, parts) for parts in answers)
    return Refined(tuple(answers), progress, len(candidates) - setting.rollouts, why)


def is_right(setting: Setting, right: int, seed: int) -> bool:
    """Whether a rollout with `setting.priors` priors, of which `right` are right, is right itself."""
    rng = Random(f"told/{right}/{seed}")
    wrong = (parts for parts in iter(lambda: rollout(setting, (), rng), None) if parts != setting.whole)
    priors = [setting.whole] * right + [next(wrong) for _ in range(setting.priors - right)]
    return rollout(setting, priors, rng) == setting.whole


def rollout(setting: Setting, priors: Sequence[Parts], rng: Random) -> Parts:
    """The parts that a rollout with these priors has."""
    return frozenset(part for part in range(setting.parts) if rng.random() < _chance(setting, part, priors))


def _chance(setting: Setting, part: int, priors: Sequence[Parts]) -> float:
    right = sum(part in prior for prior in priors)
    missed = (1 - setting.finds) * (1 - setting.takes) ** right
    return (1 - missed) * (1 - setting.misled) ** (len(priors) - right)


def _progress(setting: Setting, parts: Parts) -> float:
    return sum(part < setting.visible for part in parts) / setting.visible


def _candidate(setting: Setting, parts: Parts, round_number: int, node: int) -> Candidate:
    """A candidate whose patch has one byte for each part, so that equal rollouts have equal patches."""
    progress = _progress(setting, parts)
    evaluation = Evaluation(progress, progress == 1.0, {"progress": progress})
    summary, patch = Summary(node, "", "improved"), bytes(sorted(parts))
    grade = Grade.SOLVED if evaluation.solved else Grade.UNFINISHED
    return Candidate(Rollout((0, node), node, round_number), patch, evaluation, summary, grade, patch, patch)


def _parts(candidate: Candidate) -> Parts:
    return frozenset(candidate.patch)


def main() -> None:
    """Read the command line, simulate, print the tables."""
    given = _given()
    seeds = range(given.seeds)
    print("\n".join(_by_priors(replace(HARD, priors=given.priors), seeds)), flush=True)
    print()
    print("\n".join(_runs(given, seeds)))


def _by_priors(setting: Setting, seeds: Sequence[int]) -> Iterator[str]:
    yield _line(f"right priors of {setting.priors}", "a rollout that is told of them is right")
    yield _line("---", "---")
    for right in range(setting.priors + 1):
        yield _line(str(right), _share(sum(is_right(setting, right, seed) for seed in seeds), len(seeds)))


def _runs(given: Namespace, seeds: Sequence[int]) -> Iterator[str]:
    yield _line("task", "right after round 1", "in the end", "kept right", "fixed wrong", "later rollouts a run")
    yield _line(*["---"] * 6)
    for name, setting in (("easy", EASY), ("hard", HARD)):
        runs = [refined(replace(setting, priors=given.priors, q=given.q), seed) for seed in seeds]
        right = [(run.answers[0] == setting.whole, run.answers[-1] == setting.whole) for run in runs]
        kept, fixed = ([after for before, after in right if before is was] for was in (True, False))
        later = sum(run.later for run in runs) / len(runs)
        ends = [[before for before, _ in right], [after for _, after in right], kept, fixed]
        yield _line(name, *(_share(sum(flags), len(flags)) for flags in ends), f"{later:.1f}")


def _share(times: int, among: int) -> str:
    low, high = wilson(times, among)
    return f"{times / among:.3f} ({low:.3f} to {high:.3f})" if among else "none"


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _given() -> Namespace:
    parser = ArgumentParser(prog="python -m benchmarks.perf.refine_sim", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seeds", type=int, default=500, metavar="N")
    parser.add_argument("--priors", type=int, default=4, metavar="K")
    parser.add_argument("--q", type=float, default=0.8, help="how often the judge is right, in [0, 1]")
    return parser.parse_args()


if __name__ == "__main__":
    main()
