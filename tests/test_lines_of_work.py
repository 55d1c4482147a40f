"""Lines of work: a conversation goes on through measured states until its model submits, and what counts as an answer.

Real searches in a real sandbox, against a scripted server over real HTTP; no goal is known unless a test says so.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from agent.analysis.report.summary import as_text
from agent.budget import Budget, Stop
from agent.engine.components import Components, RoundComponents
from agent.evaluate.value.tests import PassingTests
from agent.measure.timing import Timing
from agent.models.openai import OpenAIModel
from agent.policy.chat.policy import TURNS_USED_UP, ChatPolicy
from agent.run.grade import Grade
from agent.run.run import Run
from agent.search.auto import Auto
from agent.search.best_of_n import BestOfN
from agent.search.registry import SEARCHES
from agent.solver.result import Result
from agent.solver.solve import solve
from sandboxes import Provider
from tests.clients import KEY, Client, clients, servers
from tests.commands import ramify
from tests.projects import BUG, FIX, GOAL, QUICK, QUICK_TESTS, RUNNER, SOURCE, commit, task
from tests.scripted_server import Reply, Script, ScriptedServer, says
from tests.tiers import slow_but

pytestmark = pytest.mark.namespace

Tool = tuple[str, dict[str, Any]]

PATIENCE = 3
WITH_GOALS = ("adaptive", "auto", "graph", "strategies")
"""The searches that are also tried with a goal test that no line makes pass."""
GREEN = {"means.py": SOURCE, "test_means.py": QUICK_TESTS.replace("mean([]) == 0.0", "mean([4]) == 4")}
RED = {**GREEN, "test_clock.py": "def test_clock():\n    assert 1 == 2\n"}
"""A test fails that has nothing to do with the issue."""
GOAL_FAILS = {"means.py": SOURCE, "test_means.py": QUICK_TESTS}
OLD = "test_old.py::test_mean_of_nothing_is_an_error"
OLD_BEHAVIOUR = {
    **GREEN,
    "test_old.py": "import pytest\n\nfrom means import mean\n\n\ndef test_mean_of_nothing_is_an_error():\n"
    "    with pytest.raises(ZeroDivisionError):\n        mean([])\n",
}
"""A test asserts what the issue calls wrong."""


def edit(new: str, old: str = BUG) -> Tool:
    return "edit", {"path": "means.py", "old_str": old, "new_str": new}


def bash(command: str) -> Tool:
    return "bash", {"command": command}


BREAKING = "    if len(numbers) < 4:\n"
RIGHT = edit(FIX)
UNSEEN = bash("sed -i 's/(numbers) < 0:/(numbers) <= 0:/' means.py")
"""The same, without a word of what it changed."""
TEST: Tool = ("run_tests", {})
SUBMIT: Tool = ("submit", {})
DECLARED: Tool = ("submit", {"contradicted_tests": [f"{OLD}: the issue wants 0.0 there"]})
REVIEW, ACCEPTED = "The next `submit` ends the work.", "Submitted."


def looks(number: int) -> Tool:
    """A look that is like no other."""
    return "view", {"path": "means.py", "view_range": [1, number + 1]}


@dataclass(frozen=True)
class Attempt:
    """What a run came to, and all that was said in it."""

    result: Result
    run: Run
    heard: list[list[dict[str, Any]]]

    def told(self, request: int) -> list[str]:
        """What the last answer before a request led to, or else was told before it."""
        answers = [n for n, message in enumerate(self.heard[request]) if message["role"] == "assistant"]
        return [str(message["content"]) for message in self.heard[request][answers[-1] + 1 :]]

    @property
    def seen(self) -> list[list[str]]:
        """What the model would be told of its calls, turn by turn."""
        return [[seen.text for seen in step.observations] for node in self.run.tree for step in node.steps]

    @property
    def ends(self) -> list[str]:
        return [node.line_end for node in self.run.tree if node.line_end]


Solve = Callable[..., Attempt]


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with pytest.MonkeyPatch.context() as patch, clients() as make:
        patch.setenv("OPENAI_API_KEY", KEY)
        yield make


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """A repository with these files, for all tests that only read it: they share its base state and what runs in it."""

    @cache
    def project(files: tuple[tuple[str, str], ...]) -> Path:
        return commit(tmp_path_factory.mktemp("project") / "repo", dict(files))

    return project


@pytest.fixture
def attempt(provider: Provider, project: Callable[..., Path], tmp_path: Path, client: Client) -> Solve:
    def attempt(
        script: Script,
        files: Mapping[str, str] = GREEN,
        *,
        goals: bool = False,
        search: Any = None,
        policy: Mapping[str, Any] | None = None,
        limits: Mapping[str, Any] | None = None,
        test_goals: tuple[str, ...] = (),
        command: str = QUICK,
        framework: str = "log:tap",
        **parts: Any,
    ) -> Attempt:
        repo = project(tuple({**files, "run.py": RUNNER, ".gitignore": "__pycache__/\n"}.items()))
        with ScriptedServer(script) as server, Run.open(tmp_path / "run") as run:
            model: OpenAIModel = client(server)
            made = Components(
                provider,
                ChatPolicy(model, **(policy or {})),
                search or Auto(),
                PassingTests(),
                Budget(**(limits or {})),
                baseline_runs=None if goals else 1,
                **parts,
            )
            asked = {"goal_tests": test_goals, "test_command": command, "framework": framework}
            result = solve(task(repo, goal_failing=goals, **asked), made, run)
        return Attempt(result, run, [request["messages"] for request in server.requests])

    return attempt


class TestRunningTheTests:
    @pytest.mark.slow
    @pytest.mark.parametrize(("change", "passes"), [(FIX, True), (BREAKING, False)], ids=["success", "failure"])
    def test_is_followed_by_the_same_conversation_with_no_message_in_between(
        self, attempt: Solve, change: str, passes: bool
    ) -> None:
        last = [says("c", edit(FIX, change))] if change != FIX else []
        done = attempt([says("a", looks(1)), says("b", edit(change), TEST), *last, says("d", SUBMIT)])
        first, tested, after = done.heard[:3]
        assert tested[:2] == first
        assert after[: len(tested)] == tested
        assert [message["role"] for message in after[len(tested) :]] == ["assistant", "tool", "tool"]
        measured = done.run.tree[1]
        assert measured.report.complete
        assert measured.steps[-1].observations[-1].ok is passes
        assert [node.parents for node in done.run.tree] == [(), (0,), (1,)]
        assert (done.result.status, done.result.stop) == ("submitted", Stop.SUBMITTED)

    def test_before_a_submit_in_one_answer_shows_the_change_so_that_the_submit_counts(self, attempt: Solve) -> None:
        done = attempt([says("a", UNSEEN, TEST, SUBMIT)])
        assert "no test that passed fails now" in done.seen[-1][1]
        assert f"+{FIX}" in done.seen[-1][1]
        assert done.seen[-1][2] == ACCEPTED
        assert (done.result.status, len(done.heard)) == ("submitted", 1)

    @pytest.mark.slow
    def test_behind_a_submit_in_one_answer_is_answered_beside_the_review(self, attempt: Solve) -> None:
        done = attempt([says("a", UNSEEN, SUBMIT, TEST), says("b", SUBMIT)])
        _, review, tested = done.told(1)
        assert REVIEW in review
        assert "no test that passed fails now" in tested
        assert (review + tested).count(f"+{FIX}") == 1
        assert done.run.tree[1].report.complete
        assert (done.result.status, len(done.heard)) == ("submitted", 2)

    @pytest.mark.slow
    def test_that_shows_what_the_change_broke_keeps_a_submit_in_the_same_answer_from_counting(
        self, attempt: Solve
    ) -> None:
        done = attempt(
            [says("a", edit("    if len(numbers) < 9:\n"), TEST, SUBMIT), says("b", SUBMIT), says("c", SUBMIT)]
        )
        assert (
            "Not submitted: `run_tests`, which was called before it in this answer, did not succeed."
            in done.told(1)[-1]
        )
        assert done.result.grade is Grade.BROKEN

    def test_in_which_only_tests_fail_that_the_submit_declares_lets_it_count(self, attempt: Solve) -> None:
        done = attempt([says("a", RIGHT, TEST, DECLARED)], OLD_BEHAVIOUR)
        assert done.seen[-1][-1] == ACCEPTED
        assert (done.result.grade, len(done.heard)) == (Grade.DECLARED, 1)

    @pytest.mark.slow
    def test_and_a_submit_that_is_accepted_in_one_answer_end_the_work(self, attempt: Solve) -> None:
        done = attempt([says("a", RIGHT), says("b", TEST, SUBMIT, looks(1))])
        assert done.seen[-1][1] == ACCEPTED
        assert "Not done" in done.seen[-1][2]
        assert (done.result.status, len(done.heard), len(done.run.tree)) == ("submitted", 2, 2)


SLEEPING = {**GREEN, "test_a_sleep.py": "import time\n\n\ndef test_sleep():\n    time.sleep(900)\n"}
SHORT: Mapping[str, Any] = {
    "timing": Timing(every_s=0.0, whole_s=3.0, scope_s=20.0, final_s=5.0),
    "command": "python -m pytest -q",  # whose runs can be cut
    "framework": "",
}


class TestATestThatSleeps:
    """For a quarter of an hour, in a suite that is given seconds."""

    @pytest.mark.slow
    def test_costs_a_model_none_of_its_turns_and_the_answer_says_what_was_not_run(self, attempt: Solve) -> None:
        done = attempt([says("a", RIGHT, TEST), says("b", SUBMIT)], SLEEPING, **SHORT)
        assert "4 of about 5 tests: those that reach `means.py`" in done.seen[0][1]
        assert "no test that passed fails now" in done.seen[0][1]
        assert (done.result.status, done.result.verified, len(done.heard)) == ("submitted", True, 2)
        assert done.result.scope == "all tests but 1, for which the time was too short"
        assert f"rests on {done.result.scope}" in as_text(done.result, None)
        assert any("all tests take longer than" in note for note in done.result.notes)

    @pytest.mark.slow
    def test_keeps_no_goal_test_from_being_known(self, attempt: Solve) -> None:
        files = {**SLEEPING, "test_means.py": QUICK_TESTS}
        done = attempt([says("a", RIGHT, TEST)], files, goals=False, test_goals=(GOAL,), **SHORT)
        assert "Goal tests: 1 of 1 pass." in done.seen[0][1]
        assert done.result.status == "solved"

    @pytest.mark.slow
    def test_and_a_regression_in_the_scope_are_told_apart(self, attempt: Solve) -> None:
        done = attempt([says("a", edit(BREAKING), TEST), says("b", SUBMIT), says("c", SUBMIT)], SLEEPING, **SHORT)
        assert "tests that passed fail now" in done.seen[0][1]
        assert done.result.grade is Grade.BROKEN


@pytest.mark.slow
def test_a_suite_that_cannot_be_run_leaves_a_model_its_shell_and_its_own_tests(attempt: Solve) -> None:
    timing = Timing(whole_s=1.0, final_s=2.0)
    done = attempt([says("a", RIGHT), says("b", SUBMIT)], command="sleep 1000", framework="exit-code", timing=timing)
    assert "It has no tests that can be run (`sleep 1000`): 'sleep 1000' was ended after" in str(done.heard[0])
    assert done.result.status == "submitted"
    assert any(note.startswith("no test could be run: 'sleep 1000' was ended after") for note in done.result.notes)


class TestASubmit:
    def test_of_a_change_that_was_not_shown_is_answered_once_with_it_and_a_review(self, attempt: Solve) -> None:
        done = attempt([says("a", UNSEEN), says("b", SUBMIT), says("c", SUBMIT)])
        (review,) = done.told(2)
        assert REVIEW in review
        assert f"-{BUG}+{FIX}" in review
        assert "4 passed" in review
        assert done.seen[-1] == [ACCEPTED]
        assert (done.result.status, done.result.verified, len(done.heard)) == ("submitted", True, 3)
        assert FIX.encode() in done.result.patch

    def test_of_a_change_that_was_shown_in_part_is_answered_with_the_rest(self, attempt: Solve) -> None:
        done = attempt([says("a", RIGHT, bash("sed -i '1i # Means.' test_means.py")), says("b", SUBMIT)])
        (review,) = done.told(2)
        assert "+# Means." in review
        assert FIX not in review

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "shown",
        [[RIGHT], [UNSEEN, TEST], [UNSEEN, bash("git diff")]],
        ids=["by the edit", "by run_tests", "by git diff"],
    )
    def test_of_a_change_that_was_shown_counts(self, attempt: Solve, shown: list[Tool]) -> None:
        done = attempt([says("a", *shown), says("b", SUBMIT)])
        assert done.seen[-1] == [ACCEPTED]
        assert (done.result.status, len(done.heard)) == ("submitted", 2)

    @pytest.mark.slow
    def test_of_lines_that_were_only_removed_is_reviewed_like_any_other(self, attempt: Solve) -> None:
        done = attempt(
            [says("a", bash("sed -i '/len(numbers) < 0/,+1d' means.py")), says("b", SUBMIT), says("c", SUBMIT)]
        )
        assert f"-{BUG}-        return 0.0\n" in done.told(2)[0]
        assert (done.result.status, len(done.heard)) == ("submitted", 3)

    @pytest.mark.slow
    @pytest.mark.parametrize("before", [[], [bash("echo x > /tmp/scratch")]], ids=["nothing", "elsewhere"])
    def test_without_a_change_is_told_so_once_and_then_ends_the_run(self, attempt: Solve, before: list[Tool]) -> None:
        done = attempt([says("a", *before, SUBMIT), says("b", SUBMIT)])
        assert "nothing is changed in the repository" in done.told(1)[-1]
        assert (done.result.status, done.result.stop, done.result.patch) == ("no_patch", Stop.SUBMITTED, b"")
        assert len(done.heard) == 2

    @pytest.mark.parametrize(
        ("name", "known"),
        slow_but([("mcts", False)], [*product(sorted(SEARCHES), [False]), *product(WITH_GOALS, [True])]),
        ids=lambda value: {True: "goals known", False: "goals unknown"}.get(value),
    )
    def test_ends_its_line_whatever_the_search(self, attempt: Solve, name: str, known: bool) -> None:
        """Where a goal still fails, other lines begin elsewhere."""
        answered: list[Tool] = []

        def answer(body: Mapping[str, Any]) -> Reply:
            if "tools" not in body:
                return says("Mend the comparison.")
            wrong = "<= 0" if not known else f"< -{len(answered) + 1}"
            changed = body["messages"][-1]["role"] == "tool"
            mend = bash(f"sed -i 's/(numbers) < .*:/(numbers) {wrong}:/' means.py; git diff")
            answered.append(SUBMIT if changed else mend)
            return says("I go on.", answered[-1])

        done = attempt(
            answer, GOAL_FAILS if known else GREEN, goals=known, search=SEARCHES[name](), limits={"max_nodes": 8}
        )
        tree = done.run.tree
        submitted = [node.id for node in tree if node.submitted]
        assert submitted
        if known and name == "strategies":  # what CodeTree has debugged is what was submitted in vain
            assert all(child.kind == "debug" for n in submitted for child in tree.children(n))
        else:
            assert not [n for n in submitted if tree.expandable(n) or tree.attempts(n) or tree.children(n)]
        assert done.result.patch
        if not known:
            assert (len(submitted), answered[-1], done.result.stop) == (1, SUBMIT, Stop.SUBMITTED)
            assert done.result.status == "submitted"


class TestAnAnswer:
    @pytest.mark.slow
    def test_may_break_tests_that_assert_the_old_behaviour_where_that_is_declared(self, attempt: Solve) -> None:
        done = attempt([says("a", RIGHT), says("b", DECLARED)], OLD_BEHAVIOUR)
        assert (done.result.status, done.result.grade) == ("submitted", Grade.DECLARED)
        assert (done.result.broken, done.result.declared) == ((OLD,), {OLD: "the issue wants 0.0 there"})
        assert FIX.encode() in done.result.patch
        assert len(done.heard) == 2

    @pytest.mark.slow
    def test_that_breaks_tests_without_a_word_of_it_is_told_so_and_is_an_improvement_at_most(
        self, attempt: Solve
    ) -> None:
        done = attempt([says("a", RIGHT), says("b", SUBMIT), says("c", SUBMIT)], OLD_BEHAVIOUR)
        (review,) = done.told(2)
        assert OLD in review
        assert "contradicted_tests" in review
        assert (done.result.status, done.result.grade) == ("improved", Grade.BROKEN)
        assert (done.result.broken, done.result.declared) == ((OLD,), {})
        assert FIX.encode() in done.result.patch

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("before", "requests"),
        [([bash("python3 -m pytest -v"), RIGHT], 3), ([RIGHT, TEST], 2), ([RIGHT, bash("python3 -m pytest")], 2)],
        ids=["it passed", "run_tests", "a run of its own"],
    )
    def test_that_breaks_tests_counts_at_once_where_that_was_told(
        self, attempt: Solve, before: list[Tool], requests: int
    ) -> None:
        done = attempt([says("a", *before), says("b", SUBMIT), says("c", SUBMIT)], OLD_BEHAVIOUR)
        assert (done.result.grade, len(done.heard)) == (Grade.BROKEN, requests)

    def test_that_breaks_a_test_and_leaves_a_goal_failing_is_unfinished(self, attempt: Solve) -> None:
        worse = edit(f"    total += 1\n{BUG}")
        done = attempt([says("a", worse, TEST), says("b", SUBMIT)], GOAL_FAILS, goals=True, search=BestOfN(1))
        assert (done.result.grade, bool(done.result.broken)) == (Grade.UNFINISHED, True)

    def test_is_the_diff_that_nobody_submitted_where_a_limit_is_reached(self, attempt: Solve) -> None:
        done = attempt([says("a", RIGHT), says("b", looks(1))], limits={"max_calls": 2})
        assert (done.result.status, done.result.grade, done.result.stop) == ("improved", Grade.UNFINISHED, Stop.CALLS)
        assert FIX.encode() in done.result.patch

    def test_of_two_rollouts_is_of_two_lines_of_which_the_second_knows_nothing_of_the_first(
        self, attempt: Solve
    ) -> None:
        """The model says the same in both, as one without a temperature would."""
        line = [says("a", RIGHT, TEST), says("b", SUBMIT)]
        done = attempt([*line, *line], search=BestOfN(2), lines=2, rounds=RoundComponents(rollouts=2))
        tree = done.run.tree
        assert [node.parents for node in tree] == [(), (0,), (1,), (0,), (3,)]
        assert [node.id for node in tree if node.submitted] == [2, 4]
        assert done.heard[2] == done.heard[0]
        assert len(done.heard) == 4
        assert (done.result.status, done.result.rollouts) == ("submitted", 2)


class TestALineThatEndsWithoutSuccess:
    @pytest.mark.slow
    def test_is_followed_by_others_that_are_told_of_it_by_its_diff_until_none_is_better(self, attempt: Solve) -> None:
        lines = [[says("a", edit(BUG.replace("0", f"-{n}"))), says(f"try {n}", SUBMIT)] for n in range(1, PATIENCE + 2)]
        done = attempt([reply for line in lines for reply in line], GOAL_FAILS, goals=True)
        second = done.heard[2]
        assert [message["role"] for message in second] == ["system", "user", "user"]
        assert second[:2] == done.heard[0]
        assert "- changed means.py: try 1\n" in second[-1]["content"]
        assert f"    -{BUG}    +    if len(numbers) < -1:\n" in second[-1]["content"]
        assert done.ends == ["submitted"] * PATIENCE
        assert (done.result.status, done.result.stop) == ("improved", Stop.NO_PROGRESS)
        assert len(done.heard) == 2 * PATIENCE
        assert done.result.patch

    def test_because_its_model_repeats_itself_was_told_before_and_gives_what_it_has(self, attempt: Solve) -> None:
        def answer(body: Mapping[str, Any]) -> Reply:
            return says("a", looks(1) if body["messages"][-1]["role"] != "user" or "row" in str(body) else RIGHT)

        done = attempt(answer, policy={"max_repeats": 3}, search=BestOfN(1))
        assert len(done.heard) == 4
        assert "same 2 times in a row" in done.heard[3][-1]["content"]
        assert done.ends == ["it did the same again and again"]
        assert (done.result.status, done.result.grade) == ("improved", Grade.UNFINISHED)
        assert FIX.encode() in done.result.patch

    @pytest.mark.parametrize(
        "per_node", [25, pytest.param(4, marks=pytest.mark.slow)], ids=["one state", "several states"]
    )
    def test_because_its_turns_are_used_up_was_told_at_15_and_at_5_and_gives_what_it_has(
        self, attempt: Solve, per_node: int
    ) -> None:
        script = [says("a", RIGHT), *(says("b", looks(n)) for n in range(15))]
        settings = {"max_turns": 16, "max_turns_per_node": per_node}
        done = attempt(script, policy=settings, search=BestOfN(1))
        assert len(done.heard) == 16
        told = [(n, m["content"]) for n, m in enumerate(done.heard[-1]) if m["role"] == "user"][1:]
        assert [content.split(" turns")[0] for _, content in told] == ["15", "5"]
        assert [done.heard[request][-1]["content"] for request in (1, 11)] == [content for _, content in told]
        assert done.ends == [TURNS_USED_UP]
        assert (done.result.status, done.result.stop) == ("improved", Stop.EXHAUSTED)
        assert FIX.encode() in done.result.patch


@pytest.mark.slow
def test_a_state_is_labelled_by_what_differs_and_not_by_the_tool_that_changed_it(attempt: Solve) -> None:
    caches = "mkdir -p .pytest_cache/v && touch .pytest_cache/v/nodeids"
    heredoc = bash(f"cat > means.py <<'EOF'\n{SOURCE.replace(BUG, FIX)}EOF\ngit add means.py; {caches}")
    done = attempt([says("Mended.", heredoc, TEST), says("Done.", SUBMIT)])
    assert [node.label for node in done.run.tree][1:] == ["changed means.py: Mended.", "changed nothing: Done."]


@dataclass(frozen=True)
class Command:
    """What `ramify solve` came to."""

    done: subprocess.CompletedProcess[str]
    source: str
    """Of the checkout, after it."""

    @property
    def facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = json.loads(self.done.stdout)
        return facts


@pytest.fixture
def command(tmp_path: Path, namespaces: Path) -> Iterator[Callable[..., Command]]:
    with servers() as serve:

        def command(files: Mapping[str, str], submit: Tool, *options: str) -> Command:
            repo = commit(tmp_path / "repo", {**files, ".gitignore": "__pycache__/\n"})
            server = serve([says("a", RIGHT), says("b", submit)])
            settings = [f"model.base_url={server.url}", "model.price=[2, 10]", "measure.baseline_runs=1"]
            settings += ["sandbox.kind=namespace", 'sandbox.env={PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"}']
            argv: list[object] = ["solve", "--issue", "mean([]) divides by zero", "--repo", repo, "--json"]
            argv += ["--test", "python3 -m pytest -q", "--policy", "openai/tiny", "--out", tmp_path / "run", *options]
            argv += [word for setting in settings for word in ("-c", setting)]
            env = {**os.environ, "OPENAI_API_KEY": KEY, "NO_COLOR": "1"}
            done = ramify(argv, cwd=tmp_path, env=env)
            assert len(server.requests) == 2, done.stderr
            return Command(done, (repo / "means.py").read_text())

        yield command


class TestTheCommand:
    @pytest.mark.slow
    def test_applies_what_was_submitted_although_a_test_failed_before_that_has_nothing_to_do_with_it(
        self, command: Callable[..., Command]
    ) -> None:
        said = command(RED, SUBMIT, "--apply")
        assert said.done.returncode == 0, said.done.stderr
        assert (said.facts["status"], said.facts["verified"]) == ("submitted", True)
        assert FIX in Path(said.facts["patch_path"]).read_text()
        assert FIX in said.source

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("options", "code", "applied"),
        [(["--apply"], 0, False), (["--apply", "--accept", "declared"], 0, True), (["--strict"], 1, False)],
        ids=["apply", "accept", "strict"],
    )
    def test_applies_what_breaks_declared_tests_only_where_that_is_accepted(
        self, command: Callable[..., Command], options: list[str], code: int, applied: bool
    ) -> None:
        said = command(OLD_BEHAVIOUR, DECLARED, *options)
        assert said.done.returncode == code, said.done.stderr
        assert (said.facts["status"], said.facts["declared"]) == ("submitted", {OLD: "the issue wants 0.0 there"})
        assert (FIX in said.source) is applied
        assert ("--accept declared" in said.done.stderr) is (not applied)
