"""The tests that one candidate adds, run on the others: what counts, what it costs, and what it decides."""

from __future__ import annotations

import threading
from copy import copy
from dataclasses import replace
from hashlib import sha256

import pytest

from agent.analysis.report.bracket import draw
from agent.budget import Budget, BudgetSpent, Stop
from agent.engine.components import Components, RoundComponents
from agent.engine.session import Session
from agent.evaluate.own_tests import FILE_BYTES
from agent.evaluate.scorer import StagedScorer
from agent.evaluate.value.tests import PassingTests
from agent.measure.measurer import find_baseline
from agent.run.cross_tests import Matrix, Row
from agent.run.events import Added, Noted, Spent
from agent.run.grade import Grade
from agent.run.rollouts import Candidate, Rollout, Summary
from agent.run.run import Run
from agent.run.tree.evaluation import Evaluation
from agent.run.tree.node import ROOT, Node
from agent.search.best_first import BestFirst
from agent.settings import TournamentSettings
from agent.solver.candidates import CandidatePool
from agent.solver.comparison import Comparison
from agent.solver.cross_testing import CrossCheck
from agent.solver.same_change import source_change
from agent.solver.tournament import rank
from agent.solver.tournament.note import key, note
from tests.candidates import TASK, FixedJudge, candidate
from tests.policies import edits
from tests.projects import BUG, FIX, SOURCE, means, task

FIXED = SOURCE.replace(BUG, FIX)
WHOLE = FIXED.replace("return max(numbers) - min(numbers)", "return max(numbers) - min(numbers) if numbers else 0")
WHOLE_TOO = FIXED.replace("return max", "if not numbers:\n        return 0\n    return max")
HALF = SOURCE.replace(BUG, "    if len(numbers) < 1:  # half\n")
SPREAD = "from means import spread\n\n\ndef test_nothing():\n    assert spread([]) == 0\n"
OWN = "def test_means():\n    assert 'half' in open('means.py').read()\n"
ENDS = "import os\n\n\ndef test_nothing():\n    os._exit(0)\n"
STATES = [
    {"means.py": WHOLE, "test_spread.py": SPREAD},
    {"means.py": WHOLE_TOO},
    {"means.py": HALF, "test_means_own.py": OWN},
    {"means.py": HALF},
    {
        "means.py": WHOLE + "# more\n",
        "test_spread.py/kept.txt": "",
        "test_big.py": SPREAD + "#" * FILE_BYTES,
        "test_ends.py": ENDS,
    },
]
"""Repaired in two ways; not repaired, with a test of something else that nobody but its kin passes; repaired, with a
directory where another has a test, and with tests of its own of which one cannot be read and one ends the process."""


@pytest.fixture(scope="module")
def lab(provider, tmp_path_factory):
    """A run with the candidates as its nodes, and what checks them with a budget."""
    folder = tmp_path_factory.mktemp("crosscheck")
    wanted = task(means(folder / "repo"))
    base = provider.create(wanted.workspace)
    report = find_baseline(provider, wanted, base, runs=1)
    scorer = StagedScorer(provider, wanted, base, report, PassingTests())
    events = []
    with Run.open(folder / "run") as run:
        run.record(Added(Node(0, (), (), base, report, Evaluation(0.1))))
        found = []
        for number, files in enumerate(STATES, 1):
            with provider.at(base) as box:
                for path, text in files.items():
                    box.write(path, text.encode())
                if number == len(STATES):
                    assert box.exec(["ln", "-s", "nowhere.py", "test_link.py"], timeout_s=100).exit_code == 0
                state = box.snapshot()
            evaluation = Evaluation(1.0, True, {"progress": 1.0, "harm": 0.0})
            run.record(Added(Node(number, (0,), (), state, report, evaluation)))
            rollout, summary = Rollout((0, number), number, 1), Summary(number, "journal", "solved")
            patch = provider.diff(base, state)
            source = source_change(patch, scorer.own.is_test)
            found.append(Candidate(rollout, patch, evaluation, summary, Grade.SOLVED, source, source))

        def check(**limits):
            parts = Components(provider, edits(), BestFirst(), PassingTests(), Budget(**limits))
            return CrossCheck(Session(wanted, parts, run, threading.Event(), events.append), scorer.own)

        yield check, found, events, scorer


def adding(candidate, name):
    """As if the candidate's patch added this file and no other."""
    return replace(candidate, patch=f"--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+pass\n".encode())


def scores(check, candidates):
    """The scores of candidates by their tests and those of their own kin."""
    nodes = [each.node for each in candidates]
    return check.matrix(candidates, nodes).scores(nodes)


def runs(events):
    return sum(event.usage.measurements for event in events if isinstance(event, Spent))


@pytest.mark.namespace
class TestInASandbox:
    def test_what_the_budget_has_no_room_for_is_left_out(self, lab):
        check, found, events, _ = lab
        assert scores(check(max_measurements=2), found) == dict.fromkeys(range(1, 6), 1.0)
        assert runs(events) == 2

    def test_what_an_earlier_session_found_of_one_author_counts_after_one_that_there_is_no_room_for(self, lab):
        check, found, _, _ = lab
        scored = {1: 1.0, 2: 1.0, 3: 0.0}
        assert scores(check(max_measurements=4), found[:3]) == scored
        assert scores(check(max_measurements=0), [found[2], *found[:2]]) == scored

    @pytest.mark.parametrize(("name", "more"), [("test_ends.py", 1), ("test_other.py", 0)])
    def test_a_test_that_ends_the_process_is_not_run_again_and_one_that_is_not_in_the_patch_never(
        self, lab, name, more
    ):
        check, found, events, _ = lab
        before = runs(events)
        assert scores(check(), [adding(each, name) for each in found]) == dict.fromkeys(range(1, 6), 1.0)
        assert runs(events) == before + more

    @pytest.mark.parametrize("cancelled", [True, False])
    def test_what_is_cancelled_or_out_of_time_leaves_no_ranking(self, lab, cancelled):
        check, found, _, scorer = lab
        session = check(max_seconds=None if cancelled else 0).session
        if cancelled:
            session.cancel.set()
        with pytest.raises(BudgetSpent) as spent:
            Comparison(session, RoundComponents(4), CandidatePool(session, scorer)).rank(found)
        assert spent.value.stop is (Stop.INTERRUPTED if cancelled else Stop.TIME)
        assert session.run.note(ROOT, key(1)) is None

    def test_a_test_counts_that_another_patch_passes_too_and_each_is_run_once_in_each_state(self, lab):
        check, found, events, _ = lab
        scored = {1: 1.0, 2: 1.0, 3: 0.0, 4: 0.0, 5: 1.0}
        assert scores(check(), found) == scored
        assert runs(events) == 2 * (1 + len(found)) + 1
        assert scores(check(max_measurements=0), found) == scored

    def test_tests_that_candidates_share_are_one_row(self, lab):
        check, found, _, _ = lab
        other = replace(found[0], source=b"another change")
        (row,) = check().matrix([found[0], other], [1, 2]).rows
        assert (row.authors, row.kin) == ((1, 1), frozenset({1}))

    @pytest.mark.parametrize(("wanted", "best"), [(True, 2), (False, 4)])
    def test_rounds_ask_it_unless_it_is_turned_off(self, lab, wanted, best):
        """Without it the shortest patch wins, which repairs only what the task's own test shows."""
        check, found, _, scorer = lab
        session, waves = check().session, RoundComponents(4, tournament=TournamentSettings(crosscheck=wanted))
        assert Comparison(session, waves, CandidatePool(session, scorer)).rank(found).order[0].node == best

    def test_of_two_states_with_one_patch_a_known_verdict_is_taken_for_both_and_its_blob_is_not_read(self, lab):
        check, found, events, scorer = lab
        session, before = check().session, runs(events)
        run, answers = session.run, CandidatePool(session, scorer)
        run.record(Added(replace(run.tree[2], id=len(run.tree))))
        verdict = {"patch": sha256(found[1].patch).hexdigest(), "solved": False, "improved": True}
        run.record(Noted(2, "verdict", verdict))
        answers.preferred = []
        assert [answers.verdict(node) for node in (run.tree[2], run.tree[len(run.tree) - 1])] == [verdict, verdict]
        assert runs(events) == before


def test_nothing_is_looked_at_where_tests_of_others_cannot_be_run(lab):
    check, found, events, scorer = lab
    before, own = runs(events), copy(scorer.own)
    own.can_run = False
    assert scores(CrossCheck(check().session, own), found) == dict.fromkeys(range(1, 6), 1.0)
    assert runs(events) == before


PASSES, FAILS, SAYS_NOTHING = {"t.py": "passed"}, {"t.py": "failed"}, {"t.py": "invalid"}


@pytest.mark.parametrize(
    ("base", "own", "others", "scored"),
    [
        (FAILS, PASSES, (PASSES, FAILS), [1.0, 1.0, 0.0]),
        (FAILS, PASSES, (PASSES, SAYS_NOTHING), [1.0, 1.0, 1.0]),
        (FAILS, PASSES, (FAILS, FAILS), [1.0, 1.0, 1.0]),
        (FAILS, FAILS, (PASSES, FAILS), [1.0, 1.0, 1.0]),
        (PASSES, PASSES, (PASSES, FAILS), [1.0, 1.0, 1.0]),
        (SAYS_NOTHING, PASSES, (PASSES, FAILS), [1.0, 1.0, 1.0]),
    ],
)
def test_a_test_counts_if_it_fails_before_and_passes_with_its_authors_patch_and_another(base, own, others, scored):
    row = Row((1,), {0: base, 1: own, 2: others[0], 3: others[1]}, frozenset({1}))
    assert list(Matrix((row,)).scores((1, 2, 3)).values()) == scored


def test_the_same_change_of_the_sources_is_no_other_patch():
    row = Row((1,), {0: FAILS, 1: PASSES, 2: PASSES, 3: FAILS}, frozenset({1, 2}))
    assert Matrix((row,)).scores((1, 2, 3)) == {1: 1.0, 2: 1.0, 3: 1.0}


def test_candidates_that_share_their_tests_are_one_author():
    """Each has made its change pass them, which says nothing of whether they are right."""
    row = Row((1,), {0: FAILS, 1: PASSES, 2: PASSES, 3: FAILS}, frozenset({1, 2}))
    assert not row.agreed


def test_an_author_of_many_tests_weighs_no_more_than_one_of_one():
    many = {f"t{n}.py": "passed" for n in range(9)}
    rows = [
        Row(
            (1,), {0: dict.fromkeys(many, "failed"), 1: many, 2: many, 3: dict.fromkeys(many, "failed")}, frozenset({1})
        ),
        Row((3,), {0: FAILS, 1: FAILS, 2: PASSES, 3: PASSES}, frozenset({3})),
    ]
    assert Matrix(tuple(rows)).scores((1, 2, 3)) == {1: 0.5, 2: 1.0, 3: 0.5}


def matrix(*passing):
    """A row of tests by a stranger, which fail in the root state and pass in these nodes."""
    cells = {node: PASSES if node in passing else FAILS for node in range(1, 5)}
    return Matrix((Row((9,), {0: FAILS, 9: PASSES, **cells}, frozenset({9})),))


class CrossTests:
    """Runs the cross tests: gives a matrix, and remembers what was asked."""

    def __init__(self, found):
        self.found, self.asked = found, []

    def __call__(self, authors, nodes):
        self.asked.append(([each.node for each in authors], list(nodes)))
        return self.found


def test_facts_go_before_cross_tests_and_two_candidates_without_a_judge_are_not_cross_tested():
    test = CrossTests(matrix(2, 3))
    many = [candidate(1), candidate(2), candidate(3), candidate(4, solved=False, progress=0.5)]
    ranking = rank(TASK, many, None, cross_test=test)
    assert [e.node for e in ranking.order] == [2, 3, 1, 4]
    assert "1 (solved, fails 100% of the cross-checks)" in draw(1, note(ranking, many))
    assert [e.node for e in rank(TASK, many[::3], None, cross_test=test).order] == [1, 4]
    assert [sorted(nodes) for _, nodes in test.asked] == [[1, 2, 3]]


def test_the_judge_is_shown_the_cross_tests_which_put_nobody_out():
    test, judge = CrossTests(matrix(1, 2)), FixedJudge()
    ranking = rank(TASK, [candidate(1), candidate(2), candidate(3)], judge, votes=1, cross_test=test)
    assert {node for group, _ in judge.asked for node in group} == {1, 2, 3}
    assert judge.shown == [test.found] * len(judge.asked)
    assert ranking.winner.node == 3
    assert len(test.asked) == 1


def test_tied_votes_are_left_to_the_cross_tests():
    test = CrossTests(matrix(1, 3))
    many = [candidate(1), candidate(2), candidate(3)]
    ranking = rank(TASK, many, FixedJudge(lambda nodes, vote: "tie"), cross_test=test)
    assert [e.node for e in ranking.order] == [1, 3, 2]
    assert len(test.asked) == 1
    assert "fails 100% of the cross-checks)" in draw(1, note(ranking, many))


def test_the_tests_of_a_candidate_that_another_represents_are_run_too():
    test = CrossTests(matrix(1, 2, 3))
    many = [candidate(1, source=b"same"), candidate(2, source=b"same"), candidate(3)]
    rank(TASK, many, FixedJudge(), cross_test=test)
    ((authors, nodes),) = test.asked
    assert (sorted(authors), len(nodes)) == ([1, 2, 3], 2)


def test_cross_tests_decide_where_votes_could_not_be_held():
    def spent(nodes, vote):
        raise BudgetSpent(Stop.CALLS)

    ranking = rank(
        TASK, [candidate(1), candidate(2), candidate(3)], FixedJudge(spent), cross_test=CrossTests(matrix(2))
    )
    assert (ranking.winner.node, ranking.error.stop) == (2, Stop.CALLS)
