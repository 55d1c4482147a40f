"""What rounds came to and cost: kept right, fixed wrong, and the price beside it, of a run and of a batch."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agent.budget import Usage
from agent.run.events import Added, Merged, Noted, Round, Spent, Started
from agent.run.run import Run
from agent.solver.refine.round_results import RefinementCounts, RoundResult, refinement_counts, round_results
from benchmarks.batch.batch import Attempt, Batch, Identity
from benchmarks.cli.app import app
from benchmarks.grading.verdicts import Verdict, patch_digest
from benchmarks.reports.round_effects import as_text, refinement
from sandboxes import Snapshot
from tests.trees import node

RIGHT, WRONG = b"right", b"wrong"


class TestTheFourCounts:
    def test_add_up_to_all_and_give_both_rates(self) -> None:
        pairs = [(True, True)] * 3 + [(True, False)] + [(False, True)] * 2 + [(False, False)] * 6
        found = RefinementCounts.of(pairs)
        assert (found.kept, found.lost, found.fixed, found.missed) == (3, 1, 2, 6)
        assert found.total == len(pairs)
        assert (found.kept_right, found.fixed_wrong) == (0.75, 0.25)

    def test_give_no_rate_of_nothing(self) -> None:
        assert (RefinementCounts.of([(True, True)]).fixed_wrong, RefinementCounts.of([]).kept_right) == (None, None)

    def test_of_a_run_are_those_of_its_later_rounds_against_the_best_before(self) -> None:
        solved = [False, True, False, True]
        grown = [RoundResult(n, 1, each, 0.0, "", Usage(), 0.0) for n, each in enumerate(solved, 1)]
        assert refinement_counts(grown) == RefinementCounts(kept=1, lost=1, fixed=1, missed=0)


@pytest.fixture
def run(tmp_path: Path) -> Any:
    """Two rounds: two rollouts that do not solve, then one that does, by its verification."""
    with Run.open(tmp_path / "run") as run:
        run.record(Started({}, {}, Snapshot("s0", "digest-0")))
        run.record(Added(node(0), 1.0))
        for each, at in ((node(1, 0, 0.5), 2.0), (node(2, 0, 0.7), 4.0)):
            run.record(Spent(Usage(measurements=1, model_calls=1, tokens_in=10), "tests", 0))
            run.record(Added(each, at))
        run.record(Noted(2, "verdict", {"solved": False, "patch": "abc"}))
        run.record(Merged(0, 1, elapsed_s=4.0))
        run.record(Round(2, 3))
        run.record(Spent(Usage(measurements=2), "tests", 0))
        run.record(Added(node(3, 0, 1.0), 9.0))
        yield run


class TestARun:
    def test_says_of_each_round_what_it_found_and_what_it_cost(self, run: Run) -> None:
        first, second = round_results(run)
        assert (first.number, first.rollouts, first.solved) == (1, 2, False)
        assert (first.value, first.patch_sha256) == (0.7, "abc")
        assert (first.usage, first.seconds) == (Usage(measurements=2, model_calls=2, tokens_in=20), 4.0)
        assert (second.number, second.rollouts, second.solved, second.value) == (2, 1, True, 1.0)
        assert (second.usage, second.seconds) == (Usage(measurements=2), 5.0)
        assert [(wave.expansions, wave.repeats) for wave in (first, second)] == [(3, 1), (1, 0)]

    def test_has_kept_right_what_a_later_round_came_to_again(self, run: Run) -> None:
        run.record(Round(3, 4))
        run.record(Merged(0, 3, elapsed_s=10.0))
        second, third = round_results(run)[1:]
        assert (second.solved, third.solved, third.value) == (True, True, 1.0)
        assert refinement_counts(round_results(run)) == RefinementCounts(kept=1, fixed=1)

    def test_counts_what_was_refuted_as_wrong(self, run: Run) -> None:
        run.record(Noted(3, "verdict", {"solved": False, "patch": "def"}))
        assert [wave.solved for wave in round_results(run)] == [False, False]

    def test_says_the_same_when_it_is_read_again(self, run: Run) -> None:
        assert round_results(Run.read(run.journal.directory)) == round_results(run)

    def test_says_nothing_of_a_price_that_is_unknown(self, run: Run) -> None:
        run.record(Spent(Usage(model_calls=1, unpriced_calls=1), "model", 0))
        assert [wave.to_json()["cost_usd"] for wave in round_results(run)] == [0.0, None]


def attempt(name: str, solved: list[bool], first: bytes = b"", last: bytes = b"", **wave: Any) -> Attempt:
    """An instance whose run had so many rounds."""
    facts = {"tokens": 10, "measurements": 2, "seconds": 1.5, "cost_usd": 0.5, "expansions": 4, "repeats": 1, **wave}
    digest = patch_digest(first) if first else ""
    grown = [{"round": n, "solved": each, "patch_sha256": digest, **facts} for n, each in enumerate(solved, 1)]
    return Attempt(name, "done", "hidden", last, facts={"round_results": grown})


SPENT = {"tokens": 1, "measurements": 1, "seconds": 1.0, "cost_usd": 0.0, "expansions": 1, "repeats": 0}
NOTHING_MADE = {"wave": 1, "solved": False, "patch_sha256": patch_digest(b""), **SPENT}
"""A round whose best state changes nothing, as earlier versions wrote it."""


def verdict(name: str, patch: bytes) -> tuple[tuple[str, str], Verdict]:
    digest = patch_digest(patch)
    return (name, digest), Verdict(name, "resolved" if patch == RIGHT else "unresolved", digest)


class TestABatch:
    def test_counts_visible_and_hidden_tests_apart(self) -> None:
        attempts = [
            attempt("a", [True, True], RIGHT, RIGHT),
            attempt("b", [True, False], RIGHT, WRONG),
            attempt("c", [False, True], WRONG, RIGHT),
            attempt("d", [False, False], b"", b""),
            replace(attempt("g", [False, True], b"", RIGHT), facts={"waves": [NOTHING_MADE, NOTHING_MADE]}),
            attempt("e", [False, True], b"not graded", RIGHT),
            attempt("f", [True]),
        ]
        graded = dict(verdict(name, patch) for name in "abceg" for patch in (RIGHT, WRONG))
        found = refinement(attempts, graded)
        assert found is not None
        assert found.by_visible == RefinementCounts(kept=1, lost=1, fixed=2, missed=2)
        assert found.by_hidden == RefinementCounts(kept=1, lost=1, fixed=2, missed=1)

    @pytest.mark.parametrize("failed", [RIGHT, WRONG])
    def test_leaves_out_what_the_world_failed_to_grade(self, failed: bytes) -> None:
        graded = dict(verdict("a", patch) for patch in (RIGHT, WRONG))
        key = "a", patch_digest(failed)
        graded[key] = replace(graded[key], status="error")
        found = refinement([attempt("a", [False, True], WRONG, RIGHT)], graded)
        assert found is not None
        assert found.by_hidden == RefinementCounts()

    def test_says_what_each_round_cost_beside_what_it_was_the_first_to_solve(self) -> None:
        attempts = [attempt("a", [True, True]), attempt("b", [False, True, True]), attempt("c", [False, False])]
        found = refinement(attempts, {})
        assert found is not None
        costs = [(cost.round, cost.instances, cost.first_solved, cost.tokens, cost.cost_usd) for cost in found.costs]
        assert costs == [(1, 3, 1, 30, 1.5), (2, 3, 1, 30, 1.5), (3, 1, 0, 10, 0.5)]

    def test_adds_no_price_that_is_unknown(self) -> None:
        found = refinement([attempt("a", [True, True]), attempt("b", [True, True], cost_usd=None)], {})
        assert found is not None
        assert [cost.cost_usd for cost in found.costs] == [None, None]
        assert "price unknown" in as_text(found)

    def test_without_a_later_round_says_nothing_of_refinement(self) -> None:
        assert refinement([attempt("a", [True]), replace(attempt("b", []), facts={})], {}) is None

    def test_prints_a_section_and_has_it_in_its_json(self, tmp_path: Path) -> None:
        batch = Batch(tmp_path, Identity("dev", "hidden", "mutate"))
        batch.record(attempt("a", [False, True], b"", RIGHT))
        batch.close()
        text = CliRunner().invoke(app, ["report", str(tmp_path)]).stdout
        assert "refinement by visible tests, rounds: 1; kept right 0 of 0, fixed wrong 1 of 1" in text
        assert "hidden tests, instances" not in text
        spent = "2 test runs, 10 tokens, 0.5000 dollars, 2 s; 1 of 4 attempts"
        assert f"round 2: 1 of 1 solved first by it; {spent}" in text
        data = json.loads(CliRunner().invoke(app, ["report", str(tmp_path), "--json"]).stdout)
        assert data["refinement"]["visible"] == RefinementCounts(fixed=1).to_json()
