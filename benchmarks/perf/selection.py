"""Measures how often each way to choose among several patches chooses a right one, on candidates with known verdicts.

    python -m benchmarks.perf.selection SOURCE --out DIR [--sets 400]

Candidates are real: reference patches and variants of them (`benchmarks.perf.variants`), examined by the hidden tests
in the sandbox. None breaks a test that passed before, so only what a model adds can tell them apart. Each set has right
and wrong ones. What is drawn, and how likely:

- whether a candidate has tests of its own (`--tests`), and the share of wrong candidates whose tests assert the mistake
  (`--misled`): such a test passes only where the hidden test fails in the same words. All others are hidden tests that
  the candidate passes. Tests that pass before the repair show nothing and are left out, as in a run;
- what the judge votes: it prefers the right one of two with probability q. Its votes on a pair are alike, as a model's
  are: it has an opinion of each pair, which a vote follows with probability 0.9. `reading` also sees the matrix: where
  the tests tell two candidates apart, it follows them with probability 0.8.

The ranking, the rules of the matrix and the votes are those of a run (`agent.solver.tournament.rank`). No run chooses
by `matrix first`: there, tests that a model wrote never rule a candidate out.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from agent.run.ballots import Ballot
from agent.run.cross_tests import UNTESTED, Cell, Matrix, Row
from agent.run.grade import Grade
from agent.run.rollouts import Candidate, Rollout, Summary
from agent.run.tree.evaluation import Evaluation
from agent.run.tree.node import ROOT, NodeId
from agent.solver.tournament.baselines import baselines
from agent.task import Task
from benchmarks.data.sources import open_source
from benchmarks.perf.table import line, share
from benchmarks.perf.tournament_sim import winner
from benchmarks.perf.variants import Variant, examined
from sandboxes.namespace.provider import namespace_provider

FOLLOWS = 0.9
"""The probability that a vote follows the judge's opinion of the pair."""
HEEDS = 0.8
"""The probability that a judge who reads the matrix follows it."""
MOST_TESTS = 3
"""The maximum number of tests of a candidate."""


@dataclass(frozen=True, slots=True)
class OwnTest:
    """A test that a candidate has: a hidden test, or one that asserts how the hidden test fails."""

    name: str
    asserts: str = ""
    """How the hidden test fails with the author's patch; empty: it passes."""

    def end(self, variant: Variant) -> Cell:
        """How the test ends with a patch."""
        passes = variant.messages.get(self.name) == self.asserts if self.asserts else self.name in variant.passed
        return "passed" if passes else "failed"


@dataclass(frozen=True, slots=True)
class Case:
    """A set of candidates."""

    base: Variant
    variants: Sequence[Variant]
    tests: Sequence[Sequence[OwnTest]]
    """The tests of each candidate; a candidate can have none."""

    @property
    def candidates(self) -> list[Candidate]:
        """The candidates, from node 1 on."""
        return [_candidate(n, v, t) for n, (v, t) in enumerate(zip(self.variants, self.tests, strict=True), 1)]

    def matrix(self, authors: Sequence[Candidate], nodes: Sequence[NodeId]) -> Matrix:
        """How the tests of each author end with the others' patches, as `agent.solver.cross_testing` finds it out."""
        return Matrix(tuple(self._row(each, authors, nodes) for each in authors if self.tests[each.node - 1]))

    def _row(self, author: Candidate, authors: Sequence[Candidate], nodes: Sequence[NodeId]) -> Row:
        tests = self.tests[author.node - 1]
        states = {ROOT: self.base} | {node: self.variants[node - 1] for node in (*nodes, author.node)}
        kin = frozenset(each.node for each in authors if each.source == author.source)
        return Row((author.node,), {n: {str(t): t.end(v) for t in tests} for n, v in states.items()}, kin)

    def right(self, node: NodeId) -> bool:
        """Whether a candidate's patch is right."""
        return self.variants[node - 1].right


@dataclass(frozen=True, slots=True)
class SimulatedJudge:
    """A judge that has an opinion of each pair."""

    case: Case
    q: float
    heeds: float = 0.0
    seed: int = 0
    name: str = "simulated"

    def requests(self, size: int) -> int:
        """One."""
        return 1

    def vote(self, task: Task, group: tuple[Candidate, ...], vote: int, matrix: Matrix = UNTESTED) -> Ballot:
        """A ballot; ties are not voted for."""
        pair = sorted(candidate.node for candidate in group)
        rng = Random(f"{self.seed}/{pair}")
        scores = matrix.scores(pair)
        by_tests = max(pair, key=scores.__getitem__) if len(set(scores.values())) > 1 else None
        right = [self.case.right(node) for node in pair]
        better = pair[right.index(True)] if len(set(right)) > 1 else rng.choice(pair)
        opinion = better if rng.random() < self.q else next(node for node in pair if node != better)
        if by_tests is not None and rng.random() < self.heeds:
            opinion = by_tests
        others = [node for node in pair if node != opinion]
        preferred = opinion if Random(f"{self.seed}/{pair}/{vote}").random() < FOLLOWS else others[0]
        return Ballot(tuple(candidate.node for candidate in group), preferred, vote=vote)


def _candidate(node: NodeId, variant: Variant, tests: Sequence[OwnTest]) -> Candidate:
    evaluation = Evaluation(0.4, parts={"progress": 0.0}, reproduced_by=tuple(map(str, tests)))
    rollout, summary = Rollout((0, node), node, 1), Summary(node, "", "submitted")
    return Candidate(rollout, variant.patch, evaluation, summary, Grade.SUBMITTED, variant.patch, variant.patch)


def cases(variants: Sequence[Variant], count: int, given: Namespace, rng: Random) -> Iterator[Case]:
    """Sets of candidates of one task, none of which breaks a test; none if all candidates are right, or all wrong."""
    base = variants[0]
    right = [each for each in variants[1:] if each.right]
    wrong = [each for each in variants[1:] if not each.right and not each.breaks]
    for _ in range(count if right and wrong else 0):
        drawn = [rng.choice(right if rng.random() < given.right else wrong) for _ in range(given.n)]
        if len({each.right for each in drawn}) == 1:
            drawn[rng.randrange(given.n)] = rng.choice(wrong if drawn[0].right else right)
        yield Case(base, drawn, [_tests(each, base, given, rng) for each in drawn])


def _tests(variant: Variant, base: Variant, given: Namespace, rng: Random) -> list[OwnTest]:
    """Tests that fail in the base state and pass with the variant; none if there are no such tests."""
    honest = [OwnTest(name) for name in sorted(variant.passed - base.passed)]
    misled = [
        OwnTest(name, how)
        for name, how in sorted(variant.messages.items())
        if how and base.messages.get(name, how) != how
    ]
    if rng.random() >= given.tests:
        return []
    chosen = misled if misled and rng.random() < given.misled else honest
    return rng.sample(chosen, min(len(chosen), rng.randint(1, MOST_TESTS)))


def _ranked(q: float = 0.0, *, tested: bool = True, heeds: float = 0.0) -> Callable[[Case, int], NodeId]:
    """Choose by a tournament, without a judge if q is 0, and without the matrix unless `tested`."""

    def way(case: Case, seed: int) -> NodeId:
        judge = SimulatedJudge(case, q, heeds, seed) if q else None
        cross_test = case.matrix if tested else lambda authors, nodes: UNTESTED
        return winner(case.candidates, judge, cross_test=cross_test)

    return way


def _matrix_first(q: float) -> Callable[[Case, int], NodeId]:
    """Choose by votes among the candidates with the best score by the matrix. No run does this."""

    def way(case: Case, seed: int) -> NodeId:
        candidates = case.candidates
        scores = case.matrix(candidates, [each.node for each in candidates]).scores([each.node for each in candidates])
        left = [each for each in candidates if scores[each.node] == max(scores.values())]
        return winner(left, SimulatedJudge(case, q, seed=seed))

    return way


def _baseline(name: str) -> Callable[[Case, int], NodeId]:
    return lambda case, seed: baselines(case.candidates, seed=seed)[name]


WAYS: Mapping[str, Callable[[Case, int], NodeId]] = {
    "any": _baseline("random"),
    "oldest": _baseline("first"),
    "most offered": _baseline("majority"),
    "matrix": _ranked(),
    "votes, q = 0.6": _ranked(0.6, tested=False),
    "votes, q = 0.8": _ranked(0.8, tested=False),
    "votes, then matrix, q = 0.6": _ranked(0.6),
    "votes, then matrix, q = 0.8": _ranked(0.8),
    "reading, q = 0.6": _ranked(0.6, heeds=HEEDS),
    "reading, q = 0.8": _ranked(0.8, heeds=HEEDS),
    "matrix first, then votes, q = 0.6": _matrix_first(0.6),
    "matrix first, then votes, q = 0.8": _matrix_first(0.8),
}
"""Ways to choose, by name."""


def main() -> None:
    """Examine the variants, draw sets, and print the table."""
    given = _given()
    drawn = list(_drawn(given))
    sets = len(drawn)
    print(f"{sets} sets of {given.n} candidates; the right one was chosen, with 95 % intervals\n")
    for name, way in WAYS.items():
        found = sum(case.right(way(case, seed)) for seed, case in enumerate(drawn))
        print(line(name, share(found, sets)), flush=True)


def _drawn(given: Namespace) -> Iterator[Case]:
    out, rng = Path(given.out), Random(given.seed)
    source = open_source(given.source, out / "source")
    instances = [each for each in source.instances() if each.hidden.test_patch]
    with namespace_provider(out / "store") as provider:
        found = [examined(each, source, provider, out) for each in instances]
    told = [v for variants in found for v in variants[1:]]
    print(f"{len(instances)} tasks; {len(told)} variants, {sum(v.right for v in told)} of them right,", end=" ")
    print(f"{sum(v.breaks for v in told)} break a test", flush=True)
    fit = [variants for variants in found if any(True for _ in cases(variants, 1, given, Random(0)))]
    for variants in fit:
        yield from cases(variants, -(-given.sets // len(fit)), given, rng)


def _given() -> Namespace:
    parser = ArgumentParser(prog="python -m benchmarks.perf.selection", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("source", help="instances; see `ramify bench run --help`")
    parser.add_argument("--out", required=True, metavar="DIR", help="where the results of the tests are kept")
    parser.add_argument("--sets", type=int, default=400, metavar="N")
    parser.add_argument("-n", type=int, default=4, metavar="N", help="candidates in a set")
    parser.add_argument("--right", type=float, default=0.5, metavar="P", help="probability that a candidate is right")
    parser.add_argument("--tests", type=float, default=0.8, metavar="P", help="that it has tests")
    parser.add_argument("--misled", type=float, default=0.3, metavar="P", help="that those of a wrong one assert it")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    return parser.parse_args()


if __name__ == "__main__":
    main()
