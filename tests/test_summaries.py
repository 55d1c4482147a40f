"""What a rollout came to is read off the journal: faithful, the same each time, and readable."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from typing import get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.actions import Edit, Observation, Shell, Submit, View, Write
from agent.analysis.report.summaries import block, draw
from agent.budget import Budget, BudgetSpent, Stop
from agent.engine.components import Components
from agent.errors import TooLong
from agent.evaluate.guard import Flag, cap
from agent.evaluate.value.tests import PassingTests
from agent.measure import SuiteReport
from agent.measure.probing.spectrum import Spectrum
from agent.models import directly
from agent.policy.mutate import MutatePolicy
from agent.run.events import Failed, Noted, Summarised
from agent.run.rollouts import Summary
from agent.run.run import Run
from agent.search.best_first import BestFirst
from agent.solver.solve import solve
from agent.solver.summaries import summarise, summarise_by_model
from agent.solver.summaries.account import read_account
from agent.solver.summaries.contradictions import RecordedNames, contradictions
from agent.solver.summaries.faults import Fault
from agent.solver.summaries.record import record
from sandboxes.namespace.provider import namespace_provider
from tests.histories import ENDS, TASK, F, History, P, T, turn
from tests.projects import GOAL, means, task
from tests.scripted import ScriptedModel, answer

NO = Observation("Not done: calc.py is unchanged: it is not there", ok=False)
PATCH = b"diff --git a/calc.py b/calc.py\n--- a/calc.py\n+++ b/calc.py\n@@ -2 +2 @@\n-x = 1\n+x = 2\n"


@pytest.fixture
def history(tmp_path):
    made = History(tmp_path / "run")
    yield made
    made.run.close()


def the_last(history) -> Summary:
    return summarise(history.run, None, history.run.rollouts()[-1])


def faults_of(summary) -> list[str]:
    return [mode.partition(": ")[0] for mode in summary.failure_modes]


# ---- what is said


def test_a_mutation_reads_well(history):
    history.add(0, turn(Edit("/w/calc.py", "x = 1", "x = 2")), label="mutate: + -> - at calc.py:12", patch=PATCH, a=P)
    summary = the_last(history)
    assert summary.outcome == "improved"
    assert summary.hypothesis == "+ -> - at calc.py:12"
    assert summary.files_changed == ("calc.py",)
    assert summary.progress == "state 1 (mutate: + -> - at calc.py:12) fixes t.py::a."
    assert summary.insights == ("`mutate: + -> - at calc.py:12` makes t.py::a pass",)
    assert (summary.tests_passed, summary.tests_failed) == (("t.py::a",), ("t.py::b",))
    assert summary.failure_modes == ()
    assert history.run.journal.get_blob(summary.patch_blob) == PATCH


def test_a_broken_test_that_the_submit_declares_is_a_risk_and_no_regression(history):
    work = turn(Edit("/w/calc.py", "x = 1", "x = 2"), Submit("Done.", ("t.py::c: it wants the old result",)))
    history.add(0, work, patch=PATCH, a=P, c=F)
    summary = the_last(history)
    assert faults_of(summary) == []
    assert (
        "the attempt says of tests that fail that they contradict the issue: t.py::c (it wants the old result)"
        in summary.risks
    )


def test_each_node_is_compared_with_what_was_known_above_it(history):
    history.add(0, label="one", a=P)
    history.add(1, label="two", report=SuiteReport({"t.py::a": F}, complete=False))
    history.add(2, label="three", a=P, b=P, c=F)
    summary = the_last(history)
    assert summary.progress == (
        "state 1 (one) fixes t.py::a. state 2 (two) breaks t.py::a. "
        "state 3 (three) fixes t.py::a (run again: t.py::b pass; t.py::c fail)."
    )


def test_what_may_have_broken_while_it_was_not_run_is_laid_on_no_node_alone(history):
    history.add(0, label="one", report=SuiteReport({"t.py::a": F, "t.py::b": F}, complete=False))
    history.add(1, label="two", a=P, b=P, c=F)
    summary = the_last(history)
    assert summary.progress == (
        "state 1 (one) changes no test that was run. state 2 (two) fixes t.py::a, t.py::b (run again: t.py::c fail)."
    )
    assert summary.failure_modes == (
        "no change in any test: state 1 (one)",
        "regression: t.py::c failed at state 2 (two), and may since state 1",
    )
    assert not any("breaks" in insight for insight in summary.insights)


def test_files_and_commands_are_those_of_the_path_and_of_no_sibling(history):
    history.add(0, turn(Edit("other.py", "a", "b"), Shell("ls other")))
    history.add(0, turn(View("a.py"), (View("nope.py"), NO), (View("src"), Observation("src is a directory:\na.py"))))
    history.add(2, turn(Shell("grep -n x a.py"), Write("/w/new.py", "x"), (Edit("calc.py", "q", "x"), NO)), patch=PATCH)
    history.add(3, turn(Shell("grep -n x a.py"), Submit("done")))
    summary = the_last(history)
    assert summary.files_read == ("a.py",)
    assert summary.files_changed == ("new.py",)
    assert summary.commands == ("grep -n x a.py",)


def test_a_file_that_a_command_changed_is_seen_in_the_patch(history):
    history.add(0, turn(Shell("sed -i s/1/2/ calc.py")), patch=PATCH)
    assert the_last(history).files_changed == ("calc.py",)


def test_a_long_command_is_cut(history):
    history.add(0, turn(Shell("echo " + "x" * 5000)))
    (command,) = the_last(history).commands
    assert len(command) < 400
    assert command.endswith("x [...]")


@pytest.mark.parametrize(
    ("outcome", "ends", "report"),
    [
        ("solved", {"a": P, "b": P}, None),
        ("improved", {"a": P}, None),
        ("unchanged", {}, None),
        ("worse", {"c": F}, None),
        ("improved", {"a": P, "b": P, "c": F}, None),
        ("invalid", {}, SuiteReport(dict(ENDS), valid=False, problem="it broke off")),
    ],
)
def test_the_outcome_is_by_the_tests_of_the_best_state(history, outcome, ends, report):
    history.add(0, report=report, **ends)
    assert the_last(history).outcome == outcome


def test_a_solution_that_its_verification_refutes_is_none(history):
    history.add(0, a=P, b=P)
    verdict = {"patch": "", "solved": False, "improved": False, "why": "Broken: t.py::d"}
    history.run.record(Noted(1, "verdict", verdict))
    summary = the_last(history)
    assert summary.outcome == "unchanged"
    assert summary.failure_modes == ("refuted by verification: Broken: t.py::d",)


def test_every_class_of_failure_is_named_where_it_happened(history):
    broken = SuiteReport(dict(ENDS), valid=False, problem="collection failed: SyntaxError: invalid syntax (calc.py)")
    look, late = turn(Shell("ls")), Observation("The command did not end", ok=False, fork_lost=True)
    history.add(0, turn((Edit("calc.py", "q", "x"), NO)), same=True)
    history.add(1, turn((Shell("sleep 9"), late), (Shell("git push"), replace(NO, refused=True))), look, look, c=F)
    history.add(2, report=broken)
    history.add(3, d=T, c=F)
    history.add(4, c=F, d=T)
    capped = cap(history.run.tree[1].evaluation, history.run.tree[0].evaluation, (Flag("conftest.py", 0, "added"),))
    history.add(5, evaluation=capped, c=F, d=T)
    history.run.record(Failed(6, "the model gave no call that can be read"))
    found = the_last(history)
    assert set(faults_of(found)) == set(get_args(Fault)) - {"refuted by verification"}
    assert "refused edit: of calc.py on the way to state 1" in found.failure_modes
    assert "failed expansion: of state 6: the model gave no call that can be read" in found.failure_modes
    assert "tampering flagged: conftest.py: added" in found.failure_modes


def test_what_no_test_looks_at_is_a_risk(history):
    spectrum = Spectrum({}, {"t.py::a": {"other.py": (1,)}, "t.py::c": {"calc.py": (2,)}})
    history.run.record(Noted(0, "spectrum", spectrum.to_json()))
    history.add(0, turn(Edit("calc.py", "1", "2")), patch=PATCH)
    assert the_last(history).risks == ("before the change no failing test executed calc.py",)
    unseen = PATCH.replace(b"calc.py", b"far.py")
    history.add(0, turn(Edit("far.py", "1", "2")), patch=unseen)
    assert "before the change no test executed the changed lines of far.py" in the_last(history).risks
    history.add(0, turn(Edit("other.py", "1", "2")), patch=unseen.replace(b"far", b"other").replace(b"-2", b"-1"))
    assert the_last(history).risks == ()


def test_what_is_uncertain_about_the_tests_is_a_risk(history):
    history.add(0, turn(Edit("test_x.py", "1", "2")), patch=PATCH.replace(b"calc", b"test_x"))
    assert the_last(history).risks == ("it changes tests or what lies among them: test_x.py",)
    history.add(0, report=SuiteReport({"t.py::a": P, "t.py::b": P}, complete=False, flaky=("t.py::c",)))
    assert the_last(history).risks == ("failed once and passed when run again: t.py::c", "not all tests were run on it")


# ---- laws

outcomes = st.dictionaries(st.sampled_from("abcd"), st.sampled_from([P, F, T]))
actions = st.sampled_from(
    [Edit("calc.py", "1", "2"), View("a.py"), Shell("ls " + "x" * 400), (Edit("b.py", "q", ""), NO), Write("n.py", "")]
)
nodes = st.tuples(st.integers(0, 9), st.lists(actions, max_size=4), outcomes, st.booleans())


@given(st.lists(nodes, min_size=1, max_size=6))
@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
def test_the_same_journal_gives_the_same_summary_and_nothing_in_it_is_made_up(tmp_path_factory, made):
    directory = tmp_path_factory.mktemp("history")
    history = History(directory)
    for parent, done, ends, patched in made:
        patch = PATCH if patched else b""
        history.add(parent % len(history.run.tree), turn(*done), patch=patch, label=f"n{len(done)}", **ends)
    first = [summarise(history.run, None, rollout) for rollout in history.run.rollouts()]
    history.run.close()
    with Run.read(directory) as again:
        assert [summarise(again, None, rollout) for rollout in again.rollouts()] == first
    journal = (directory / "journal.jsonl").read_text()
    for summary in first:
        told = (*summary.tests_passed, *summary.tests_failed, *summary.files_read)
        told += tuple(command.removesuffix(" [...]") for command in summary.commands)
        assert all(each in journal for each in told)
        assert all(path in journal or path.encode() in PATCH for path in summary.files_changed)
        assert all(mode.partition(": ")[0] in get_args(Fault) for mode in summary.failure_modes)
        assert len(set(summary.insights)) == len(summary.insights)


# ---- in a model's words

TRUTH = {
    "hypothesis": "x is one too small in calc.py",
    "outcome": "improved",
    "progress": "t.py::a passes now, b does not.",
    "files_read": ["a.py"],
    "files_changed": ["calc.py"],
    "commands": ["grep -n x a.py"],
    "tests_passed": ["t.py::a"],
    "tests_failed": ["b"],
    "failure_modes": [],
    "risks": ["negative numbers"],
    "insights": ["x is read in a.py"],
}


@pytest.fixture
def half(history):
    """A rollout that mends one test of two."""
    done = turn(View("a.py"), Shell("cd /w && grep -n x a.py"), Edit("calc.py", "x = 1", "x = 2"))
    history.add(0, replace(done, message="I look at x first."), label="changed calc.py", patch=PATCH, a=P)
    return history


def told(history, *answers: object, ask=directly) -> tuple[Summary, ScriptedModel]:
    says = [answer(each if isinstance(each, str) else f"So:\n{json.dumps(each)}") for each in answers]
    model = ScriptedModel(says, name="tiny")
    (rollout,) = history.run.rollouts()
    return summarise_by_model(model, TASK, history.run, None, rollout, ask), model


def test_a_truthful_model_adds_its_words_and_nothing_else(half):
    summary, model = told(half, TRUTH)
    journal = the_last(half)
    assert summary == replace(
        journal,
        author="tiny",
        hypothesis=TRUTH["hypothesis"],
        progress=TRUTH["progress"],
        risks=("negative numbers",),
        insights=("`changed calc.py` makes t.py::a pass", "x is read in a.py"),
    )
    asked = str(model.heard[0][1]["content"])
    for shown in ("It is wrong.", "+x = 2", "I look at x first.", '"command": "cd /w && grep -n x a.py"', "t.py::b"):
        assert shown in asked


@pytest.mark.parametrize(
    ("lie", "said"),
    [
        ({"outcome": "solved"}, "it says solved; by the tests it is improved"),
        ({"files_changed": ["calc.py", "a.py"]}, "it says that a.py was changed; it was not"),
        ({"files_changed": []}, "it passes over calc.py, which was changed"),
        ({"files_read": ["secret.py"]}, "it says that secret.py was read; nothing in the record shows it"),
        ({"tests_passed": ["t.py::a", "t.py::b"]}, "it says that t.py::b passes; it was not seen to pass"),
        ({"tests_passed": ["t.py"]}, "it says that t.py passes; it was not seen to pass"),
        ({"tests_failed": ["t.py::c"]}, "it says that t.py::c fails; it passes"),
        ({"tests_failed": ["t.py::z"]}, "it names the test t.py::z; there is none"),
        ({"commands": ["pytest -q"]}, "it says that `pytest -q` was run; it was not"),
        ({"progress": "u.py::a passes, too."}, "it names the test u.py::a; there is none"),
        ({"insights": ["See far/away.py."]}, "it names far/away.py; nothing in the record shows such a file"),
    ],
)
def test_a_model_that_says_other_than_the_record_is_flagged_and_the_record_stands(half, lie, said):
    summary, _ = told(half, TRUTH | lie)
    assert summary.contradictions == (said,)
    journal = the_last(half)
    facts = ("outcome", "files_changed", "commands", "tests_passed", "tests_failed", "patch_blob", "progress")
    assert all(getattr(summary, fact) == getattr(journal, fact) for fact in facts)
    assert "secret.py" not in summary.files_read


@pytest.mark.parametrize("outcome", ["solved", "submitted", "improved"])
def test_what_was_submitted_may_be_called_improved_or_solved(half, outcome):
    facts = record(half.run, None, half.run.rollouts()[0])
    account = read_account(json.dumps({"hypothesis": "x", "outcome": outcome, "progress": ""}))
    assert contradictions(account, Summary(1, "journal", "submitted"), RecordedNames(facts)) == ()


@pytest.mark.parametrize(
    "unreadable",
    ["I forgot.", {"hypothesis": "x"}, TRUTH | {"outcome": "great"}, TRUTH | {"risks": "none"}, TRUTH | {"mark": 10}],
)
def test_an_account_that_cannot_be_read_is_mended_and_else_the_journals_summary_stands(half, unreadable):
    assert told(half, unreadable, TRUTH)[0].author == "tiny"
    assert told(half, *[unreadable] * 3)[0] == the_last(half)


def test_where_a_limit_is_reached_nothing_stands_for_the_models_words(half):
    """Whoever goes on with the run can ask it then."""

    def refuse(*_, **__):
        raise BudgetSpent(Stop.CALLS)

    with pytest.raises(BudgetSpent):
        told(half, ask=refuse)


def test_a_model_with_little_room_is_shown_less(half):
    lengths: list[int] = []

    def short_sighted(messages):
        lengths.append(len(str(messages)))
        if len(lengths) < 3:
            raise TooLong("too long")
        return answer(json.dumps(TRUTH))

    half.add(1, *(turn((Shell(f"cat {n}"), Observation("y" * 3000))) for n in range(40)), label="more", a=P)
    (rollout,) = half.run.rollouts()
    summary = summarise_by_model(ScriptedModel(short_sighted), TASK, half.run, None, rollout, directly)
    assert summary.author == "scripted"
    assert lengths[0] > 2 * lengths[1] > 3 * lengths[2]
    assert lengths[0] < 80_000


def test_what_strangers_wrote_stands_between_fences(half):
    _, model = told(half, TRUTH)
    for name in ("issue", "attempt", "change", "tests"):
        assert len(re.findall(rf"^</?{name}-[0-9a-f]{{16}}>$", str(model.heard[0][1]["content"]), re.M)) == 2


# ---- what is shown


def test_a_block_has_a_line_for_each_fact_and_none_for_what_is_not_there(history):
    history.add(0, turn(Edit("calc.py", "1", "2"), Shell("ls\n-l")), label="try", a=P, c=F)
    (rollout,) = history.run.rollouts()
    assert block(rollout, the_last(history)).splitlines() == [
        "rollout 0 > 1, best state 1: improved",
        "  hypothesis try",
        "  changed    calc.py",
        "  ran        ls -l",
        "  fixed      t.py::a",
        "  failing    t.py::b",
        "  failing    t.py::c",
        "  progress   state 1 (try) fixes t.py::a and breaks t.py::c.",
        "  failure    regression: state 1 (try) broke t.py::c",
        "  insight    `try` makes t.py::a pass",
        "  insight    `try` breaks t.py::c",
    ]


def test_a_recorded_summary_is_shown_in_its_authors_words_and_hidden_characters_are_seen(history):
    history.add(0)
    history.run.record(Summarised(Summary(1, "tiny", "solved", "it\u200bis\x1b[31m", contradictions=("no",))))
    (said,) = draw(history.run)
    assert said.startswith("rollout 0 > 1, best state 1, in the words of tiny: solved\n")
    assert "\\u200b" in said
    assert "\x1b" not in said
    assert "  wrong      no" in said


def test_a_run_without_a_rollout_says_so(history):
    assert list(draw(history.run)) == ["no rollout yet: no state below the base state was measured"]


# ---- a real search


@pytest.fixture(scope="module")
def searched(namespaces, tmp_path_factory):
    """A real search by `mutate`, with the provider that holds its states."""
    place = tmp_path_factory.mktemp("searched")
    with Run.open(place / "run") as run, namespace_provider(place / "run" / "store") as provider:
        policy = MutatePolicy(lambda: Spectrum.from_json(run.note(0, "spectrum")))
        parts = Components(
            provider, policy, BestFirst(), PassingTests(), Budget(max_nodes=12), localise=True, baseline_runs=1
        )
        result = solve(task(means(place / "repo")), parts, run)
        yield run, provider, result


@pytest.mark.slow
@pytest.mark.namespace
def test_a_real_repair_is_told_as_it_was(searched):
    run, provider, result = searched
    (rollout,) = (rollout for rollout in run.rollouts() if rollout.leaf == result.best_node)
    summary = summarise(run, provider, rollout)
    assert (summary.outcome, summary.files_changed) == ("solved", ("means.py",))
    assert (summary.tests_passed, summary.tests_failed) == ((GOAL,), ())
    assert summary.hypothesis.endswith("means.py:9")
    assert summary.insights == (f"`mutate: {summary.hypothesis}` makes {GOAL} pass",)
    assert run.journal.get_blob(summary.patch_blob) == result.patch
    assert (summary.risks, summary.failure_modes, summary.contradictions) == ((), (), ())
    assert asdict(summary) == json.loads(json.dumps(asdict(summary)), object_hook=_tuples)


def _tuples(data):
    return {key: tuple(value) if isinstance(value, list) else value for key, value in data.items()}


@pytest.mark.namespace
def test_the_patch_of_a_rollout_that_was_not_verified_is_asked_of_the_sandbox(searched):
    run, provider, result = searched
    rollout = next(rollout for rollout in run.rollouts() if rollout.leaf != result.best_node)
    summary = summarise(run, provider, rollout)
    leaf = run.tree[rollout.leaf]
    assert run.journal.get_blob(summary.patch_blob) == provider.diff(run.tree.root.snapshot, leaf.snapshot)
    assert summary.outcome in ("unchanged", "worse", "invalid", "improved")
    assert replace(summarise(run, None, rollout), patch_blob=summary.patch_blob).outcome == summary.outcome
