"""Whether a further round is grown, and where some of its rollouts begin."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from agent.actions import Observation, Submit
from agent.engine.selection import choose
from agent.measure import Outcome, SuiteReport
from agent.policy import Position
from agent.policy.chat.opening import situation
from agent.run.ballots import Ballot
from agent.run.commands import Order
from agent.run.events import Added, Exhausted, Round, Started, Steered
from agent.run.grade import Grade
from agent.run.rollouts import Candidate, Rollout, Summary
from agent.run.run import Run
from agent.run.tree.evaluation import Evaluation
from agent.run.tree.node import Step
from agent.search.best_first import BestFirst
from agent.solver.refine.gates import needed
from agent.solver.refine.local import last_right, repairs
from agent.solver.tournament import Match, Ranking
from agent.solver.tournament.facts import Entrant, facts
from sandboxes import Snapshot
from tests.projects import task
from tests.trees import node


def mends(entrant: Entrant, *tests: str) -> Entrant:
    """The same with a summary that says so."""
    summary = replace(entrant.candidate.summary, tests_passed=tests)
    return replace(entrant, candidate=replace(entrant.candidate, summary=summary))


def entrant(name: int, *, wave: int = 1, progress: float = 0.0, rollouts: int = 1) -> Entrant:
    """A candidate that solves the task where all goal tests pass."""
    evaluation = Evaluation(progress, progress == 1.0, {"progress": progress, "harm": 0.0})
    rollout = Rollout((0, name), name, wave)
    grade, patch = Grade.SOLVED if evaluation.solved else Grade.UNFINISHED, b"%d" % name
    candidate = Candidate(rollout, patch, evaluation, Summary(name, "journal", "improved"), grade, patch, patch)
    return Entrant(candidate, facts(candidate), (candidate,) * (rollouts - 1))


def ranking(*order: Entrant, votes: int | None = None) -> Ranking:
    """The first beat the second by so many votes of 40; None: nobody voted."""
    if votes is None:
        return Ranking(order)
    one, two = order[0].node, order[1].node
    wins = MappingProxyType({(one, two): float(votes), (two, one): 40.0 - votes})
    strengths = MappingProxyType({one: votes / 40, two: 1 - votes / 40})
    return Ranking(order, ((Match((one, two), one, "votes"),),), strengths, wins)


class TestTheFirstRound:
    @pytest.mark.parametrize("found", [(), (entrant(1, progress=0.5),)], ids=len)
    def test_is_followed_by_another_where_no_patch_solves_the_task(self, found: Any) -> None:
        decision = needed(ranking(*found), 1, 1)
        assert (decision.refine, decision.why) == (True, "hard: no patch solves the task")

    @pytest.mark.parametrize(("approved", "refine"), [(1.0, False), (0.0, True)])
    def test_is_the_last_where_a_critic_approved_a_patch_that_declares_what_it_breaks(
        self, approved: float, refine: bool
    ) -> None:
        evaluation = Evaluation(0.9, False, {"progress": 0.0, "harm": 0.1, "accept": 0.0, "approved": approved})
        declares = replace(entrant(1).candidate, evaluation=evaluation, grade=Grade.DECLARED)
        assert needed(ranking(Entrant(declares, facts(declares))), 1, 1).refine == refine

    def test_is_the_last_where_rollouts_agree(self) -> None:
        decision = needed(ranking(entrant(1, progress=1.0, rollouts=3), entrant(2, progress=0.5)), 1, 1)
        assert (decision.refine, decision.why) == (
            False,
            "easy: 3 rollouts agree on the one patch that solves the task",
        )

    def test_is_the_last_where_nobody_could_say_which_patch_is_better(self) -> None:
        assert not needed(ranking(entrant(1, progress=1.0), entrant(2, progress=1.0)), 1, 1).refine

    def test_is_the_last_where_votes_are_clear_and_not_where_they_are_level(self) -> None:
        two = entrant(1, progress=1.0), entrant(2, progress=1.0)
        clear, level = (needed(ranking(*two, votes=votes), 1, 1) for votes in (38, 20))
        assert (clear.refine, level.refine) == (False, True)
        assert clear.why.startswith("easy: 2 patches solve the task, and the votes have chosen one (confidence ")
        assert level.why.startswith("hard: 2 patches solve the task, and the votes have not chosen one (confidence 0.")

    @pytest.mark.parametrize("ties", [2, 1])
    def test_is_the_last_where_all_votes_call_the_patches_equally_good(self, ties: int) -> None:
        level = ranking(entrant(1, progress=1.0), entrant(2, progress=1.0), votes=20)
        votes = tuple(Ballot((1, 2), None if vote < ties else 2, vote=vote, tie=vote < ties) for vote in range(2))
        decision = needed(replace(level, bracket=((Match((1, 2), 1, "rule", votes),),)), 1, 1)
        assert decision.refine == (ties == 1)
        assert ties == 1 or decision.why.endswith("and no judge finds one better than the other")

    def test_is_followed_by_another_where_a_test_of_another_patch_fails_with_the_best(self) -> None:
        two = entrant(1, progress=1.0), entrant(2, progress=1.0)
        found = [needed(replace(ranking(*two, votes=38), checked={1: score, 2: 1.0}), 1, 1) for score in (0.5, 1.0)]
        assert [decision.refine for decision in found] == [True, False]
        assert found[0].why == "hard: the best patch fails 50% of the tests that other patches bring and pass"

    def test_is_never_the_last_without_the_gate(self) -> None:
        assert needed(ranking(entrant(1, progress=1.0)), 1, 1, gate=False).refine


class TestALaterRound:
    def test_is_followed_by_another_only_where_it_found_a_better_patch_that_solves_nothing_yet(self) -> None:
        before = entrant(1, progress=0.5)
        grew = {
            value: needed(ranking(entrant(2, wave=2, progress=value), before), 2, 2).refine for value in (0.4, 0.5, 0.6)
        }
        assert grew == {0.4: False, 0.5: False, 0.6: True}

    def test_is_the_last_where_its_best_patch_had_been_found_before(self) -> None:
        decision = needed(ranking(entrant(1, progress=0.5, rollouts=2)), 2, 2)
        assert not decision.refine
        assert decision.why == "round 2 found no better patch than earlier rounds, and fixed no other test"

    def test_is_followed_by_another_where_it_mended_what_none_before_it_has(self) -> None:
        before, now = mends(entrant(1, progress=0.5), "a", "b"), entrant(2, wave=2, progress=0.3)
        found = [needed(ranking(before, mends(now, *tests)), 2, 2).refine for tests in (("c",), ("a",), ())]
        assert found == [True, False, False]

    def test_is_no_better_by_a_patch_of_an_earlier_one_from_which_one_of_its_rollouts_went_on(self) -> None:
        assert not needed(ranking(entrant(1, wave=2, progress=0.5), entrant(2, progress=0.3)), 2, 3).refine

    def test_of_single_edits_is_followed_by_another_as_long_as_none_solves_the_task(self) -> None:
        before, level = entrant(1, progress=0.5), entrant(2, wave=2, progress=0.5)
        assert needed(ranking(before, level), 2, 2, until_solved=True).refine
        solved = entrant(1, progress=1.0), level
        assert not needed(ranking(*solved), 2, 2, until_solved=True).refine

    def test_counts_as_better_where_nothing_had_been_found_before(self) -> None:
        assert needed(ranking(entrant(2, wave=2, progress=0.1)), 2, 2).refine

    def test_is_the_last_where_nothing_was_found_at_all(self) -> None:
        assert not needed(ranking(), 2, 2).refine

    def test_is_the_last_where_it_solved_the_task(self) -> None:
        assert needed(ranking(entrant(2, wave=2, progress=1.0), entrant(1, progress=0.5)), 2, 2).why.startswith("easy")


def report(*passing: str) -> SuiteReport:
    """Three tests, of which these pass."""
    return SuiteReport({test: Outcome.PASSED if test in passing else Outcome.FAILED for test in "abc"}, collected=3)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Two rollouts that were better in the middle than at their end, one that was best at its end, one never better."""
    made = [
        replace(node(0, value=0.2), report=report("c")),
        replace(node(1, 0, 0.6), report=report("a", "c"), label="mend a"),
        replace(node(2, 1, 0.1), report=report("a"), label="break c"),
        replace(node(3, 0, 0.5), report=report("b", "c")),
        replace(node(4, 3, 0.5), report=report("b", "c"), label="look"),
        replace(node(5, 0, 0.4), report=report("b", "c")),
        replace(node(6, 0, 0.1), report=report()),
    ]
    with Run.open(tmp_path / "run") as run:
        run.record(Started({}, {}, Snapshot("s0", "digest-0")))
        for each in made:
            run.record(Added(each, 0.0))
        yield run


class TestALocalRepair:
    @pytest.mark.parametrize(
        ("values", "place"),
        [((0.2, 0.5, 0.1), 1), ((0.2, 0.2, 0.5, 0.5, 0.3), 2), ((0.2, 0.1), 0), ((0.2, 0.3, 0.4), 2), ((0.2,), 0)],
        ids=str,
    )
    def test_begins_where_the_value_was_highest_first(self, values: tuple[float, ...], place: int) -> None:
        assert last_right([node(number, value=value) for number, value in enumerate(values)]) == place

    def test_begins_at_the_recorded_state_with_what_went_wrong_as_the_hint(self, run: Run) -> None:
        (order,) = repairs(run, [1, 3, 5, 6], ["a", "b"], 1)
        assert (order.act, order.node, order.by) == ("fork", 1, "diagnosis")
        assert "its next step: break c" in order.hint
        assert "It broke c." in order.hint
        assert order.hint.endswith("do not yet:\n- b")

    def test_is_made_of_the_best_rollouts_first_and_of_none_that_was_never_right(self, run: Run) -> None:
        assert [order.node for order in repairs(run, [6, 5, 3, 1], [], 9)] == [5, 3, 1]
        assert [order.node for order in repairs(run, [6, 5, 3, 1], [], 2)] == [5, 3]
        assert repairs(run, [1, 3], [], 0) == []

    def test_is_none_of_a_rollout_that_was_submitted_and_breaks_nothing(self, run: Run) -> None:
        done = Step((Submit("Done.", ()),), (Observation("Submitted."),))
        run.record(Added(replace(node(7, 5, 0.4, steps=(done,)), report=report("b", "c")), 0.0))
        run.record(Added(replace(node(8, 3, 0.1, steps=(done,)), report=report("b")), 0.0))
        assert [order.node for order in repairs(run, [7, 5, 3, 8], [], 9)] == [3]

    def test_is_none_where_nothing_is_left_to_propose(self, run: Run) -> None:
        run.record(Exhausted(1))
        assert [order.node for order in repairs(run, [1, 3], [], 9)] == [3]

    def test_goes_on_from_a_state_that_was_left_off(self, run: Run) -> None:
        (order,) = repairs(run, [5], [], 9)
        assert order.hint.startswith("An earlier attempt stopped at this state.")

    def test_is_chosen_before_what_the_search_selects_and_once(self, run: Run) -> None:
        (order,) = repairs(run, [1], [], 1)
        run.record(Steered(order))
        choice = choose(run.tree, run.steering, BestFirst(), None)  # type: ignore[arg-type]  # nothing is drawn
        assert choice is not None
        assert (choice.node, choice.kind, choice.hint) == (1, "repair", order.hint)
        run.record(Added(replace(node(7, 1, 0.9), report=report("a", "b", "c")), 0.0, choice))
        assert list(run.steering.waiting(run.tree)) == []

    def test_is_read_as_before_from_a_journal_that_does_not_say_who_ordered(self, run: Run) -> None:
        run.record(Steered(Order("fork", 1, "try b")))
        text = run.journal.path.read_text().replace(', "by": "person"', "")
        assert '"by"' not in text
        run.journal.path.write_text(text)
        assert Run.read(run.journal.directory).steering.forks[0] == Order("fork", 1, "try b")

    def test_belongs_to_a_round_whose_journal_may_not_know_of_it(self, run: Run) -> None:
        run.record(Round(2, 7))
        text = run.journal.path.read_text().replace(', "repairs": []', "")
        assert '"repairs"' not in text
        run.journal.path.write_text(text)
        assert Run.read(run.journal.directory).rounds == [Round(2, 7)]

    def test_begins_with_its_round_and_again_where_a_session_was_cut_off(self, run: Run) -> None:
        orders = tuple(repairs(run, [1, 3], [], 2))
        run.record(Round(2, 7, repairs=orders))
        again = Run.read(run.journal.directory)
        assert [order for _, order in again.steering.waiting(again.tree)] == list(orders)

    def test_is_not_told_to_a_model_as_a_persons_wish(self, run: Run) -> None:
        path = run.tree.path(1)
        place = Position(task(Path("unused")), path, 0, (), (), None, kind="repair", hint="It went wrong.")  # type: ignore[arg-type]  # no sandbox is looked at
        texts = [str(situation(replace(place, kind=kind))[0]["content"]) for kind in ("repair", "")]
        assert ["A person who watches" in text for text in texts] == [False, True]
        assert all("It went wrong." in text for text in texts)
