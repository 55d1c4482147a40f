"""A test that the agent writes itself: when it counts, that it guides a search, and that it never decides one."""

from __future__ import annotations

import pytest

from agent.budget import Budget
from agent.engine.components import Components
from agent.evaluate.own_tests import OwnTests
from agent.evaluate.reproduction import ALONE, WORTH, Finding, Reader, valued
from agent.evaluate.value.judge import Judge
from agent.evaluate.value.tests import PassingTests
from agent.measure.measurer import find_baseline
from agent.measure.suite import rules_for
from agent.policy.chat.policy import ChatPolicy
from agent.run.run import Run
from agent.run.tree.evaluation import Evaluation
from agent.search.best_of_n import BestOfN
from agent.solver.solve import solve
from agent.solver.summaries import summarise
from tests.memories import report
from tests.projects import BUG, FIX, SOURCE, TESTS, commit, task
from tests.scripted import ScriptedModel, answer

PASSING = TESTS.replace("def test_mean_of_nothing():\n    assert mean([]) == 0.0\n", "")
GOOD = "from means import mean\n\n\ndef test_issue():\n    assert mean([]) == 0.0\n"
VACUOUS = "from means import mean\n\n\ndef test_issue():\n    assert mean([1]) == 1\n"
FIXED = SOURCE.replace(BUG, FIX)
SAME = "    if len(numbers) < -1:\n"


@pytest.fixture(scope="module")
def repo(tmp_path_factory):
    return commit(tmp_path_factory.mktemp("repo") / "means", {"means.py": SOURCE, "test_means.py": PASSING})


@pytest.fixture(scope="module")
def base(provider, repo):
    return provider.create(task(repo).workspace)


@pytest.fixture(scope="module")
def own(provider, repo, base):
    baseline = find_baseline(provider, task(repo), base, runs=1)
    assert not baseline.failures
    return OwnTests(provider, task(repo), base, baseline, rules_for(provider, task(repo), base, baseline))


@pytest.fixture
def state(provider, base):
    """The base state with some files written."""

    def state(**files):
        with provider.at(base) as box:
            for name, text in files.items():
                box.write(f"{name}.py", text.encode())
            return box.snapshot()

    return state


@pytest.mark.namespace
class TestAnOwnTest:
    @pytest.mark.slow
    def test_that_fails_before_the_change_and_passes_with_it_reproduces_the_issue_and_is_run_once(self, own, state):
        changed = state(test_issue=GOOD, means=FIXED)
        assert own.look(changed) == Finding(("test_issue.py::test_issue",), runs=3)
        assert own.look(changed) == Finding(("test_issue.py::test_issue",), runs=0)
        other = own.look(state(test_issue=GOOD, means=FIXED + "\n# more\n"))
        assert other == Finding(("test_issue.py::test_issue",), runs=1)

    def test_that_passes_before_the_change_says_nothing(self, own, state):
        found = own.look(state(test_issue=VACUOUS, means=FIXED))
        assert (found.shown, found.runs) == ((), 1)
        assert "test_issue.py passes without your change too" in found.problem

    def test_that_passes_when_it_is_run_once_more_without_the_change_says_nothing(self):
        fails, passes = report({"t": "AssertionError"}), report(passes=["t"])
        found = Reader("", report()).found
        finding = found(lambda: fails, lambda: passes, lambda: passes)
        assert finding == Finding(problem=finding.problem)
        assert "t failed on the unchanged code and then did not" in finding.problem
        assert found(lambda: fails, lambda: passes, lambda: fails) == Finding(("t",))

    def test_counts_the_other_new_tests_that_pass_with_the_change(self):
        fails, passes = report({"t": "AssertionError"}, passes=["guard"]), report(passes=["t", "guard", "old"])
        finding = Reader("", report(passes=["old"])).found(lambda: fails, lambda: passes, lambda: fails)
        assert finding == Finding(("t",), others=1)
        assert finding.text.endswith("passes with your change: t\n1 other new test passes.")

    def test_that_fail_with_the_change_too_are_all_named_and_compared(self):
        without = report({"t": "AssertionError: 1", "u": "AssertionError: 2"})
        changed = report({"t": "AssertionError: 1", "u": "TypeError: 3"})
        finding = Reader("", report()).found(lambda: without, lambda: changed, lambda: without)
        assert finding.text.startswith("t fails with your change as it does without:\nAssertionError: 1")
        assert finding.text.endswith("\nu fails, too: TypeError: 3")
        other = report({"t": "TypeError: 3"})
        finding = Reader("", report()).found(lambda: without, lambda: other, lambda: without)
        assert finding.text.startswith("t fails with your change and with another message than without:\nTypeError: 3")

    def test_that_fails_with_the_change_too_is_shown_its_failure(self, own, state):
        found = own.look(state(test_issue=GOOD, means=SOURCE.replace(BUG, SAME)))
        assert found.shown == ()
        assert "fails with your change as it does without" in found.problem
        assert "ZeroDivisionError" in found.problem

    @pytest.mark.parametrize(
        "broken",
        [
            GOOD.replace("import mean", "import median as mean"),
            GOOD.replace("from means import mean\n", ""),
            "def test_issue(wanted):\n    assert wanted\n",
        ],
        ids=["an import", "a name", "a fixture"],
    )
    def test_that_fails_of_itself_says_nothing(self, own, state, broken):
        fixed = FIXED + "\n\nmedian = mean\n"
        found = own.look(
            state(test_issue=broken, means=fixed, conftest="import pytest\nwanted = pytest.fixture(int)\n")
        )
        assert found.shown == ()
        assert "does not get as far as to fail on the unchanged code" in found.problem

    def test_that_is_a_link_to_nothing_says_nothing(self, own, provider, base):
        with provider.at(base) as box:
            assert box.exec(["ln", "-s", "nowhere.py", "test_issue.py"], timeout_s=100).exit_code == 0
            linked = box.snapshot()
        assert own.look(linked).problem.startswith("Your own tests cannot be run on the unchanged code")

    def test_may_be_added_to_a_file_that_was_there_before(self, own, state):
        assert own.look(state(means=FIXED)) is None
        found = own.look(state(means=FIXED, test_means=TESTS))
        assert found.shown == ("test_means.py::test_mean_of_nothing",)

    def test_may_miss_a_name_that_the_issue_names(self, own, state):
        missing = "from means import {name}\n\n\ndef test_issue():\n    assert {name}([]) == 0.0\n"
        fixed = FIXED + "\n\nmedian = divides = mean\n"
        assert own.look(state(test_issue=missing.format(name="divides"), means=fixed)).shown == ("test_issue.py",)
        assert own.look(state(test_issue=missing.format(name="median"), means=fixed)).shown == ()

    def test_in_a_state_that_changes_nothing_else_shows_the_issue_by_itself(self, own, state):
        test = GOOD + "\n# alone\n"
        alone = own.look(state(test_issue=test))
        assert (alone.shown, alone.alone, alone.runs) == ((), ("test_issue.py::test_issue",), 2)
        assert "ZeroDivisionError" in alone.text
        assert own.look(state(test_issue=test, scratch="print(1)\n")).alone == alone.alone
        assert own.look(state(test_issue=VACUOUS)).alone == ()

    def test_in_a_state_whose_author_looked_at_the_history_shows_the_issue_by_itself(self, own, provider, base):
        with provider.at(base) as box:
            box.write("test_issue.py", GOOD.encode())
            assert box.exec(["git", "add", "--all"], timeout_s=60).exit_code == 0
            looked = box.snapshot()
        assert own.look(looked).alone == ("test_issue.py::test_issue",)

    def test_is_run_without_the_change_beside_the_data_that_it_reads(self, own, provider, base):
        with provider.at(base) as box:
            box.write("tests/data.txt", b"1")
            box.write("tests/test_issue.py", b"def test_issue():\n    assert open('tests/data.txt').read() == '1'\n")
            box.write("means.py", FIXED.encode())
            changed = box.snapshot()
        assert "passes without your change too" in own.look(changed).problem


UNITTEST = {
    "means.py": SOURCE,
    "tests/__init__.py": "",
    "tests/test_means.py": "import unittest\n\nfrom means import mean\n\n\nclass Means(unittest.TestCase):\n"
    "    def test_some(self):\n        self.assertEqual(mean([1, 3]), 2)\n",
}
NODE = {
    "means.js": "exports.mean = (n) => n.reduce((a, b) => a + b, 0) / n.length;\n",
    "means.test.js": "const test = require('node:test');\nconst assert = require('node:assert');\n"
    "const { mean } = require('./means.js');\ntest('some', () => assert.equal(mean([1, 3]), 2));\n",
}
RUNNERS = {
    "unittest": (
        UNITTEST,
        "python -m unittest",
        ("means.py", FIXED),
        "tests/test_issue.py",
        UNITTEST["tests/test_means.py"].replace("test_some", "test_none").replace("[1, 3]), 2", "[]), 0.0"),
    ),
    "node": (
        NODE,
        "node --test",
        ("means.js", NODE["means.js"].replace("/ n.length", "/ (n.length || 1)")),
        "issue.test.js",
        NODE["means.test.js"].replace("'some'", "'none'").replace("[1, 3]), 2", "[]), 0"),
    ),
}


@pytest.mark.slow
@pytest.mark.namespace
@pytest.mark.parametrize("framework", RUNNERS)
def test_a_test_of_another_runner_reproduces_the_issue_too(framework, provider, tmp_path):
    files, command, (path, fixed), new, text = RUNNERS[framework]
    wanted = task(commit(tmp_path / "repo", files), test_command=command, framework=framework)
    base = provider.create(wanted.workspace)
    baseline = find_baseline(provider, wanted, base, runs=1)
    assert baseline.passes
    assert not baseline.failures
    own = OwnTests(provider, wanted, base, baseline, rules_for(provider, wanted, base, baseline))

    def look(**written):
        with provider.at(base) as box:
            for name, content in written.items():
                box.write(name, content.encode())
            return own.look(box.snapshot())

    (alone,) = look(**{new: text}).alone
    assert alone not in baseline.outcomes
    assert look(**{new: text, path: fixed}).shown == (alone,)
    assert not look(
        **{new: files[next(name for name in files if "test_" in name or ".test." in name)], path: fixed}
    ).shown


class TestItsWorth:
    def test_is_less_than_that_of_goal_tests_and_nothing_is_solved_by_it(self):
        best = valued(Evaluation(0.1, parts={"harm": 0.0}), Finding(("t",)))
        parts = {"harm": 0.0, "reproduction": 1.0}
        assert best == Evaluation(0.1 + WORTH, False, parts, best.notes, reproduced_by=("t",))
        assert best.value < 0.9
        assert valued(Evaluation(0.85), Finding(("t",))).value == 0.9
        assert "passes with your change: t" in best.notes

    def test_is_something_before_there_is_a_change(self):
        alone = valued(Evaluation(0.1), Finding(alone=("t",), problem="AssertionError"))
        assert 0.1 < alone.value == 0.1 + ALONE < 0.1 + WORTH
        assert (alone.shows_the_issue, alone.reproduces, alone.reproduced_by) == (True, False, ())
        assert alone.notes == "Your own test shows the issue, and waits for the change: t\nAssertionError"

    def test_is_less_where_something_broke_and_nothing_where_it_does_not_count(self):
        assert valued(Evaluation(0.05, parts={"harm": 0.5}), Finding(("t",))).value == pytest.approx(0.05 + WORTH / 2)
        vacuous = valued(Evaluation(0.1, notes="before"), Finding(problem="it passes"))
        assert vacuous == Evaluation(0.1, False, {"reproduction": 0.0}, "before\nit passes")

    def test_is_nothing_where_there_is_none_or_the_goal_is_reached(self):
        for evaluation, finding in ((Evaluation(0.1), None), (Evaluation(1.0, solved=True), Finding(("t",)))):
            assert valued(evaluation, finding) is evaluation


@pytest.mark.slow
@pytest.mark.namespace
def test_a_search_without_a_failing_test_prefers_the_state_whose_own_test_shows_the_issue(provider, repo, tmp_path):
    """The state with the empty test comes first, so that only their values can tell the two apart."""

    def says(test, change):
        return answer(
            "I add a test.",
            ("edit", {"path": "test_issue.py", "old": "", "new": test}),
            ("edit", {"path": "means.py", "old": BUG, "new": change}),
            ("run_tests", {"tests": ["test_issue.py::test_issue"]}),
        )

    done = answer("That is it.", ("submit", {}))
    model = ScriptedModel([says(VACUOUS, SAME), done, says(GOOD, FIX), done])
    with Run.open(tmp_path / "run") as run:
        policy, search, limits = ChatPolicy(model), BestOfN(n=2), Budget(max_nodes=9)
        parts = Components(provider, policy, search, PassingTests(), limits, baseline_runs=1, lines=2)
        result = solve(task(repo), parts, run)
        empty, good = run.tree[2], run.tree[4]
    assert "those that you add, in a new file or in one that was there" in str(model.heard[0])
    assert [node.parents[0] for node in run.tree if node.parents] == [0, 1, 0, 3]
    assert all(run.tree[n].steps[0].observations[2].text.startswith("1 passed in ") for n in (1, 3))
    assert (empty.evaluation.parts["reproduction"], good.evaluation.parts["reproduction"]) == (0.0, 1.0)
    assert empty.value < good.value < 0.9
    assert "passes without your change too" in empty.evaluation.notes
    assert (result.status, result.verified, result.best_node) == ("submitted", True, good.id)
    assert result.reproduced_by == ("test_issue.py::test_issue",)
    assert not good.evaluation.solved
    assert b"test_issue.py" in result.patch
    summary = summarise(run, provider, run.rollouts()[-1])
    assert (summary.outcome, summary.tests_passed) == ("submitted", ("test_issue.py::test_issue",))
    assert "passes 1 test of its own that did not pass on the unchanged code" in summary.progress
    assert summary.hypothesis == "I add a test.; That is it."
    assert not any("no test is known" in risk for risk in summary.risks)
    assert summary.failure_modes == ()
    vain = summarise(run, provider, run.rollouts()[0])
    assert (vain.tests_passed, vain.failure_modes) == ((), ())
    assert "no test is known that fails because of the issue" in vain.risks


@pytest.mark.namespace
@pytest.mark.parametrize(
    ("test", "change", "told", "left"),
    [
        (GOOD, FIX, "reproduces the issue, and passes with your change: test_issue.py::test_issue", "call `submit`"),
        pytest.param(
            GOOD,
            SAME,
            "test_issue.py::test_issue fails with your change as it does without",
            "correct the change, or",
            marks=pytest.mark.slow,
        ),
    ],
    ids=["repaired", "not repaired"],
)
def test_a_judge_and_the_author_are_told_what_the_tests_show_that_a_change_adds(
    provider, repo, tmp_path, test, change, told, left
):
    edits = (
        ("edit", {"path": "test_issue.py", "old": "", "new": test}),
        ("edit", {"path": "means.py", "old": BUG, "new": change}),
    )
    policy = ScriptedModel([answer("Done.", *edits, ("run_tests", {})), answer("That is it.", ("submit", {}))])
    opinion = '{"value": 0.9, "verdict": "refine", "assessment": "It is right."}'
    judge = ScriptedModel([answer(opinion)], "judge")
    with Run.open(tmp_path / "run") as run:
        parts = Components(
            provider, ChatPolicy(policy), BestOfN(n=1), Judge(judge), Budget(max_nodes=9), baseline_runs=1
        )
        solve(task(repo), parts, run)
    asked = str(judge.heard[0])
    assert "The change adds tests. Its author was told what running them showed:" in asked
    assert told in asked
    read = next(m["content"] for m in policy.heard[1] if m["role"] == "tool" and told in m["content"])
    assert left in read.splitlines()[-1]


@pytest.mark.namespace
def test_a_judge_is_asked_nothing_while_only_tests_are_changed(provider, repo, tmp_path):
    shows = ("edit", {"path": "test_issue.py", "old": "", "new": GOOD}), ("run_tests", {})
    repairs = ("edit", {"path": "means.py", "old": BUG, "new": FIX}), ("run_tests", {})
    policy = ScriptedModel([answer("", *shows), answer("", *repairs), answer("", ("submit", {}))])
    judge = ScriptedModel([answer('{"value": 0.9, "verdict": "refine", "assessment": "It is right."}')], "judge")
    with Run.open(tmp_path / "run") as run:
        limits = Budget(max_nodes=9)
        parts = Components(provider, ChatPolicy(policy), BestOfN(n=1), Judge(judge), limits, baseline_runs=1)
        solve(task(repo), parts, run)
        assert [node.evaluation.shows_the_issue for node in run.tree][:3] == [False, True, False]
    assert len(judge.heard) == 1
    assert "+++ b/means.py" in str(judge.heard[0])
