"""From a task to a verified patch: the engine and the solver in a real sandbox, with a scripted policy."""

from __future__ import annotations

import re
import threading
import time

import pytest

from agent.actions import Edit, RunTests, Shell, Submit, Write
from agent.analysis.report.summary import as_json, as_text
from agent.budget import Budget, Stop
from agent.engine.components import Components
from agent.engine.session import Cancellation
from agent.errors import MeasureError, ModelError, PolicyError, UsageError
from agent.evaluate.value.tests import PassingTests
from agent.policy import Proposal
from agent.run.events import Added, Asked, Failed, Merged, Spent
from agent.run.run import Run
from agent.search.best_first import BestFirst
from agent.search.best_of_n import BestOfN
from agent.search.linear import Linear
from agent.solver.solve import solve
from sandboxes.namespace.provider import namespace_provider
from tests.policies import Scripted, edits, pay
from tests.projects import BUG, FIX, GOAL, git, quick_means, quick_task, task

pytestmark = pytest.mark.namespace

WORSE = "    if len(numbers) < 4:\n"
SAME = "    if len(numbers) < -1:\n"


@pytest.fixture
def repo(tmp_path):
    return quick_means(tmp_path / "repo")


@pytest.fixture
def attempt(tmp_path, repo):
    """Solve the project with a policy; a second call goes on with the same run."""

    def attempt(policy, *, search=None, cancel=None, on_event=None, wanted=None, **settings):
        limits = {k: settings.pop(k) for k in list(settings) if k.startswith("max_")}
        settings = {"baseline_runs": 1} | settings
        with Run.open(tmp_path / "run") as run:
            provider = namespace_provider(tmp_path / "run" / "store")
            parts = Components(provider, policy, search or BestFirst(), PassingTests(), Budget(**limits), **settings)
            try:
                return solve(wanted or quick_task(repo), parts, run, cancel=cancel, on_event=on_event), run
            finally:
                provider.close()

    return attempt


def test_a_search_ends_with_a_verified_patch(attempt, repo):
    result, _run = attempt(edits(SAME, WORSE, FIX))
    assert (result.status, result.verified, result.stop) == ("solved", True, Stop.SOLVED)
    assert (result.baseline, result.final) == ({"passed": 3, "failed": 1}, {"passed": 4, "failed": 0})
    assert result.best_node == 3
    (repo / "p").write_bytes(result.patch)
    git(repo, "apply", "p")
    assert FIX in (repo / "means.py").read_text()


@pytest.mark.slow
def test_the_checkout_is_not_touched(attempt, repo):
    before = {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in repo.rglob("*") if p.is_file()}
    attempt(edits(WORSE, FIX))
    assert {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in repo.rglob("*") if p.is_file()} == before


@pytest.mark.slow
def test_a_patch_that_breaks_another_test_is_not_a_solution(attempt):
    breaking = (
        "    if len(numbers) < 2:\n        return 0.0\n    if len(numbers) == 3:\n        return 1\n    if False:\n"
    )
    result, run = attempt(edits(breaking))
    assert result.status == "no_patch"
    assert result.stop is Stop.EXHAUSTED
    assert not run.tree[1].evaluation.solved
    assert run.tree[1].report.complete


@pytest.mark.slow
def test_partial_progress_is_an_improvement(attempt, repo):
    (repo / "test_more.py").write_text("def test_never():\n    assert False\n")
    result, _ = attempt(edits(FIX))
    assert (result.status, result.verified) == ("improved", True)
    assert result.final == {"passed": 4, "failed": 1}


@pytest.mark.slow
def test_a_state_that_looked_better_and_is_refused_is_named_with_the_tests_that_it_breaks(attempt, repo):
    (repo / "test_more.py").write_text("def test_never():\n    assert False\n")
    breaking = "    if len(numbers) == 3:\n        return 1\n" + FIX
    result, run = attempt(edits(breaking), wanted=task(repo))
    assert (result.status, run.tree.best().id) == ("no_patch", 1)
    said = "state 1 looked better, but the full test run broke 1 test: test_means.py::test_mean_of_some"
    assert result.notes[0] == said
    assert f"note     {said}" in as_text(result, None)


@pytest.mark.slow
@pytest.mark.parametrize("status", ["no_patch", "improved"])
def test_a_better_state_that_breaks_a_test_is_named_with_it(attempt, repo, status):
    (repo / "test_more.py").write_text("import means\n\n\ndef test_none():\n    assert means.mean(()) == 0\n")
    breaking = "    if len(numbers) == 3:\n        return 1\n" + FIX
    half = "    if numbers == []:\n"
    result, _ = attempt(edits(breaking, *([half] if status == "improved" else [])))
    assert result.status == status
    said = "state 1 looked better, but it breaks 1 test: test_means.py::test_mean_of_some"
    assert said in result.notes


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        ({"max_seconds": 0.01}, r"time ran out before the first edit \(the first test run took \d+ s\)"),
        ({"max_nodes": 1}, "the limit of states is reached before the first edit"),
    ],
)
def test_a_run_that_a_limit_ended_before_an_edit_does_not_say_that_none_was_any_good(attempt, limits, says):
    result, _ = attempt(edits(FIX), **limits)
    assert re.fullmatch(f"no patch: {says}", as_text(result, None).splitlines()[0])


@pytest.mark.slow
def test_of_an_answer_that_was_not_verified_it_is_said_which_tests_were_run(attempt, repo):
    (repo / "test_more.py").write_text("def test_never():\n    assert False\n")
    cancel = Cancellation()

    def stop(event):
        if isinstance(event, Added) and event.node.parents:
            cancel.set()

    result, _ = attempt(edits(FIX, SAME), wanted=task(repo), cancel=cancel, on_event=stop)
    assert (result.status, result.verified) == ("improved", False)
    said = "tests    3 passed and 2 failed before; after: 1 of 2 goal tests pass; the other tests were not run"
    assert said in as_text(result, None).splitlines()


def test_two_edits_that_lead_to_one_state_are_measured_once(attempt):
    def answer(position):
        if len(position.path) > 1 or position.index > 1:
            return Proposal(())
        rewrite = position.box.read("means.py").decode().replace(BUG, SAME)
        return Proposal((Edit("means.py", BUG, SAME) if position.index == 0 else Write("means.py", rewrite),))

    events = []
    _result, run = attempt(Scripted(answer), on_event=events.append)
    assert len(run.tree) == 2
    assert [(e.parent, e.node) for e in events if isinstance(e, Merged)] == [(0, 1)]
    assert sum(isinstance(e, Spent) and e.what == "tests" for e in events) == 1


def test_a_policy_sees_what_its_actions_did_before_it_goes_on(attempt):
    def answer(position):
        if len(position.path) > 1:
            return Proposal(())
        if not position.steps:
            return Proposal((Shell("grep -n 'len(numbers) <' means.py"),), final=False)
        assert "9:" in position.steps[0].observations[0].text
        return Proposal((Edit("means.py", BUG, FIX), Submit("done")))

    result, run = attempt(Scripted(answer))
    assert result.status == "solved"
    assert len(run.tree[1].steps) == 2
    assert run.tree[1].terminal


@pytest.mark.slow
def test_a_command_that_times_out_loses_its_own_effects_only(attempt):
    def answer(position):
        if len(position.path) > 1:
            return Proposal(())
        slow = Shell("echo lost > lost.txt; sleep 60", timeout_s=0.5)
        return Proposal((Write("kept.txt", "1"), slow, Edit("means.py", BUG, FIX)))

    result, run = attempt(Scripted(answer))
    assert result.status == "solved"
    assert b"kept.txt" in result.patch
    assert b"lost.txt" not in result.patch
    assert not run.tree[1].steps[0].observations[1].ok


def test_a_failing_policy_closes_its_node_and_the_run_ends_and_its_money_is_an_event_when_it_is_spent(attempt):
    def answer(position):
        pay(position, tokens_in=10)
        raise PolicyError("and then it failed")

    events = []
    result, run = attempt(Scripted(answer), on_event=events.append)
    assert result.stop is Stop.EXHAUSTED
    assert isinstance(result.error, PolicyError)
    assert len(run.tree.failures(0)) == 3
    assert result.usage.model_calls == 3
    order = [type(e) for e in events if isinstance(e, (Asked, Failed))]
    assert order == [Asked, Failed] * 3


def test_a_refusing_provider_ends_the_run_with_the_best_so_far(attempt):
    def answer(position):
        if position.index == 1:
            raise ModelError("quota")
        return Proposal((Edit("means.py", BUG, SAME),))

    result, run = attempt(Scripted(answer), search=BestOfN(n=4, depth=1))
    assert result.stop is Stop.FAILED
    assert isinstance(result.error, ModelError)
    assert len(run.tree) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limit", "stop"), [({"max_nodes": 3}, Stop.NODES), ({"max_measurements": 4}, Stop.MEASUREMENTS)]
)
def test_a_limit_ends_the_search(attempt, limit, stop):
    texts = [f"    if len(numbers) < -{n}:\n" for n in range(1, 9)]
    result, run = attempt(edits(*texts), **limit)
    assert result.stop is stop
    assert len(run.tree) <= 4
    assert run.usage.measurements <= 4


@pytest.mark.slow
def test_a_search_without_time_left_still_answers(attempt):
    result, _ = attempt(edits(FIX), max_seconds=0.001)
    assert (result.status, result.stop) == ("no_patch", Stop.TIME)


@pytest.mark.slow
def test_cancelling_keeps_the_run(attempt):
    cancel = threading.Event()
    texts = [f"    if len(numbers) < -{n}:\n" for n in range(1, 9)]

    def stop_after_two(event):
        if isinstance(event, Added) and event.node.id == 2:
            cancel.set()

    result, run = attempt(edits(*texts, FIX), cancel=cancel, on_event=stop_after_two)
    assert (result.stop, len(run.tree)) == (Stop.INTERRUPTED, 3)
    again, run = attempt(edits(*texts, FIX))
    assert (again.status, len(run.tree)) == ("solved", 10)
    assert [n.label for n in run.tree][1:] == [f"edit {n}" for n in range(9)]


@pytest.mark.slow
def test_what_is_cancelled_leaves_the_best_patch_at_once_and_takes_it_away_with_the_answer(attempt, repo, tmp_path):
    """It is there while a policy is still at work, and while the answer is verified."""
    (repo / "means.py").write_text((repo / "means.py").read_text().replace("min(numbers)\n", "min(numbers) + 1\n"))
    git(repo, "commit", "-qam", "a second bug")
    cancel, left = threading.Event(), tmp_path / "run" / "salvaged.patch"
    seen = []

    def answer(position):
        if len(position.path) == 1 and position.index == 0:
            return Proposal((Edit("means.py", BUG, FIX),))
        cancel.set()
        give_up = time.monotonic() + 100
        while not left.exists() and time.monotonic() < give_up:
            time.sleep(0.05)
        seen.append(left.read_bytes())
        return Proposal(())

    result, _run = attempt(Scripted(answer), cancel=cancel)
    assert (result.status, result.verified, result.stop) == ("improved", True, Stop.INTERRUPTED)
    assert seen == [result.patch]
    assert FIX.encode() in result.patch
    assert not left.exists()


@pytest.mark.slow
def test_a_solved_run_is_not_searched_again(attempt):
    first, _ = attempt(edits(FIX))
    events = []
    again, _ = attempt(edits(FIX), on_event=events.append)
    assert (again.status, again.patch, events) == ("solved", first.patch, [])


@pytest.mark.slow
def test_workers_begin_several_children_of_one_state_at_once(attempt):
    together = threading.Barrier(3)

    def answer(position):
        if len(position.path) > 1 or position.index > 5:
            return Proposal(())
        if position.index < 3:
            together.wait(timeout=100)
        return Proposal((Edit("means.py", BUG, f"    if len(numbers) < -{position.index + 1}:\n"),))

    _, run = attempt(Scripted(answer), workers=3, lines=None)
    assert len(run.tree) == 7


@pytest.mark.slow
def test_workers_go_on_from_different_states_at_once(attempt):
    """The base state proposes three states that are worth the same, and no more."""
    together, gone_on_from = threading.Barrier(3), []

    def answer(position):
        if len(position.path) > 1:
            gone_on_from.append(position.node.id)
            if len(gone_on_from) <= 3:
                together.wait(timeout=200)
        if len(position.path) > 1 or position.index > 2:
            return Proposal(())
        return Proposal((Edit("means.py", BUG, f"    if len(numbers) < -{position.index + 1}:\n"),))

    attempt(Scripted(answer), workers=3, lines=None)
    assert sorted(gone_on_from[:3]) == [1, 2, 3]


@pytest.mark.slow
def test_goal_tests_that_do_not_exist_are_refused(attempt, repo):
    with pytest.raises(UsageError, match="test_mean_of_nothing"):
        attempt(edits(FIX), wanted=quick_task(repo, goal_tests=("test_means.py::test_mean_of_nothink",)))


def test_a_goal_test_that_passes_already_is_refused(attempt, repo):
    with pytest.raises(UsageError, match="passes already, so there is nothing to fix"):
        attempt(edits(FIX), wanted=quick_task(repo, goal_tests=("test_means.py::test_mean_of_some",)))


@pytest.mark.slow
def test_only_the_named_goal_has_to_be_repaired(attempt, repo):
    (repo / "test_more.py").write_text("def test_never():\n    assert False\n")
    result, _ = attempt(edits(FIX), wanted=quick_task(repo, goal_tests=(GOAL,)))
    assert result.status == "solved"


@pytest.mark.parametrize("command", ["no-such-program", "python -m pytest -q nowhere.py"])
def test_tests_that_cannot_be_run_are_an_error_that_names_the_command(attempt, repo, command):
    with pytest.raises(MeasureError, match="--test"):
        attempt(edits(FIX), wanted=quick_task(repo, test_command=command))


@pytest.mark.slow
def test_linear_search_goes_on_from_its_own_edit(attempt):
    def answer(position):
        texts = [SAME, FIX]
        depth = len(position.path) - 1
        if depth > 1:
            return Proposal(())
        before = BUG if depth == 0 else SAME
        return Proposal((Edit("means.py", before, texts[depth]),))

    result, run = attempt(Scripted(answer), search=Linear())
    assert result.status == "solved"
    assert run.tree.depth(2) == 2


@pytest.mark.slow
def test_workers_do_not_begin_more_lines_of_work_than_are_wanted(attempt):
    begun = []

    def answer(position):
        begun.append(position.index)
        time.sleep(1)
        return Proposal((Edit("means.py", BUG, FIX),), "That is it.")

    result, run = attempt(Scripted(answer), workers=3)
    assert (result.status, len(run.tree), begun) == ("solved", 2, [0])


@pytest.mark.slow
@pytest.mark.parametrize("said", ["", "That is it."], ids=["without a word", "in a conversation"])
def test_a_submitted_patch_without_a_failing_test_is_kept_when_it_breaks_nothing(attempt, repo, said):
    (repo / "test_means.py").write_text((repo / "test_means.py").read_text().replace("mean([]) == 0.0", "True"))

    def answer(position):
        if not position.steps:
            return Proposal((Edit("means.py", BUG, FIX), Submit("fixed")), said, final=False)
        return Proposal((Submit("fixed"),), said)

    result, _ = attempt(Scripted(answer), search=BestOfN(n=1))
    assert (result.status, result.verified, result.stop) == ("submitted", True, Stop.SUBMITTED)
    assert b"<= 0" in result.patch


GONE = Edit("test_means.py", "def test_mean_of_nothing", "def mean_of_nothing")
SKIPPED = Edit("test_means.py", "def test_mean_of_nothing", "@pytest.mark.skip\ndef test_mean_of_nothing")


def submitted_with(attempt, repo, edit):
    """The fix with another edit, of a task of which no test fails."""
    (repo / "test_means.py").write_text((repo / "test_means.py").read_text().replace("mean([]) == 0.0", "True"))

    def answer(position):
        if not position.steps:
            return Proposal((Edit("means.py", BUG, FIX), edit, Submit("fixed")), "That is it.", final=False)
        return Proposal((Submit("fixed"),), "That is it.")

    return attempt(Scripted(answer), search=BestOfN(n=1))


@pytest.mark.slow
def test_a_submitted_patch_that_changes_an_existing_test_is_kept_and_marked(attempt, repo):
    result, run = submitted_with(attempt, repo, GONE)
    assert (result.status, result.flagged) == ("submitted", 0)
    assert b"def mean_of_nothing" in result.patch
    assert "test_means.py" in run.note(1, "verdict")["remarks"][0]
    assert any(note.startswith("changed by the patch: test_means.py") for note in result.notes)
    assert result.final == {"passed": 4, "failed": 0}  # the test was put back


@pytest.mark.slow
def test_a_submitted_patch_that_disables_a_test_is_refused_although_no_test_failed(attempt, repo):
    result, run = submitted_with(attempt, repo, SKIPPED)
    assert (result.status, result.patch, result.flagged) == ("no_patch", b"", 1)
    assert as_json(result, None)["flagged"] == 1  # also what a batch reports
    assert "test_means.py" in run.note(1, "verdict")["why"]


@pytest.mark.slow
def test_a_dirty_checkout_is_taken_as_it_is(attempt, repo):
    (repo / "means.py").write_text("# edited\n" + (repo / "means.py").read_text())
    result, _ = attempt(edits(FIX))
    assert result.status == "solved"
    (repo / "p").write_bytes(result.patch)
    git(repo, "apply", "--check", "p")


def test_the_machine_outside_the_workspace_decides_nothing(attempt):
    """A state may change its own machine; its tests run on the base's, as the patch's user will."""

    def answer(position):
        if len(position.path) > 1 or position.index:
            return Proposal(())
        plant = "import sysconfig; print(sysconfig.get_path('purelib'))"
        return Proposal((Shell(f'echo "import os; os._exit(0)" > "$(python -c "{plant}")/sitecustomize.py"'), Submit()))

    result, _ = attempt(Scripted(answer))
    assert result.status == "no_patch"


@pytest.mark.slow
def test_what_a_policy_was_shown_is_not_measured_again_in_a_later_session(attempt):
    looked = []

    def answer(position):
        if not position.steps:
            return Proposal((Edit("means.py", BUG, SAME), RunTests(), RunTests((GOAL,))), final=False)
        looked.append([observation.text for observation in position.steps[0].observations])
        raise ModelError("quota")

    first, _ = attempt(Scripted(answer))
    again, _ = attempt(Scripted(answer))
    assert looked[0] == looked[1]
    assert first.usage.measurements == again.usage.measurements == 3


@pytest.mark.slow
def test_what_a_node_was_measured_by_is_known_in_a_later_session(attempt):
    breaking = "    if len(numbers) != 4:\n"

    def answer(position):
        if len(position.path) == 1:
            return Proposal((Edit("means.py", BUG, breaking),) if position.index == 0 else ())
        if not position.steps:
            return Proposal((RunTests(),), final=False)
        raise ModelError("quota")

    first, run = attempt(Scripted(answer))
    assert run.tree[1].report.complete
    again, _ = attempt(Scripted(answer))
    assert first.usage.measurements == again.usage.measurements


@pytest.mark.slow
def test_patches_that_break_something_do_not_hide_a_smaller_improvement(attempt, repo):
    (repo / "test_more.py").write_text("from means import mean\n\n\ndef test_two():\n    assert mean([1, 2]) == 0.0\n")
    breaking = [f"    if len(numbers) < {n}:\n" for n in range(4, 9)]
    events = []
    result, run = attempt(edits(*breaking, FIX), on_event=events.append)
    assert (result.status, result.best_node) == ("improved", 6)
    assert all(run.tree[n].value > run.tree[6].value for n in range(1, 6))
    assert [e.node for e in events if isinstance(e, Spent) and e.what == "verification"] == [6]
