"""A process reward model as value: what it is asked, what its answer is worth, and the rows that teach it."""

from __future__ import annotations

import json
import math
import os

import pytest

from agent.actions import Shell
from agent.budget import Budget
from agent.engine.components import Components, RoundComponents
from agent.evaluate.value.prm import Prm
from agent.learning.export.verifier import NO_PATCH, Verifier
from agent.models.openai import OpenAIModel
from agent.policy.chat.policy import ChatPolicy
from agent.run.run import Run
from agent.search.best_first import BestFirst
from agent.search.best_of_n import BestOfN
from agent.solver.solve import solve
from tests.commands import ramify
from tests.exporting import Recorder
from tests.policies import edits
from tests.projects import BUG, GOAL, SOURCE, TESTS, commit, task
from tests.scripted import ScriptedModel, answer
from tests.scripted_server import ScriptedServer, fails, says

pytestmark = pytest.mark.namespace

GREEN = TESTS.replace("def test_mean_of_nothing():\n    assert mean([]) == 0.0\n", "")
PROMISING, POOR = "    if not numbers:\n", "    if len(numbers) < -1:\n"
"""Two edits that tests do not tell apart where none asks for the mean of nothing."""
SUBMIT = ("submit", {})


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")


def judges(asked):
    """The verifier says yes to the promising edit with odds of 9 to 1, and to others with 1 to 9."""
    assert (asked["max_tokens"], asked["logprobs"], asked["temperature"]) == (1, True, 0)
    yes = 0.9 if "not numbers" in question(asked) else 0.1
    likeliest = [("yes", yes * 0.8), ("no", (1 - yes) * 0.8), ("maybe", 0.2)]
    top = [{"token": token, "logprob": math.log(p), "bytes": None} for token, p in likeliest]
    return says("yes" if yes > 0.5 else "no", first=top)


def question(asked):
    (message,) = asked["messages"]
    return message["content"]


def verifier(server):
    return Prm(OpenAIModel("openai/verifier", base_url=server.url))


def test_a_search_goes_on_from_the_state_that_the_model_likes_where_tests_say_nothing(provider, tmp_path):
    repo = commit(tmp_path / "repo", {"means.py": SOURCE, "test_means.py": GREEN, ".gitignore": "__pycache__/\n"})
    with ScriptedServer(judges) as server, Run.open(tmp_path / "run") as run:
        policy, limits = edits(POOR, PROMISING), Budget(max_nodes=5)
        parts = Components(provider, policy, BestFirst(), verifier(server), limits, baseline_runs=1)
        solve(task(repo), parts, run)
        poor, promising = run.tree[1], run.tree[2]
        asked = [event for event in run.asked if event.purpose == "value"]
    assert promising.evaluation.parts["prm"] == pytest.approx(0.9)
    assert poor.evaluation.parts["prm"] == pytest.approx(0.1)
    assert run.tree.root.value < poor.value < promising.value < 1.0
    assert "prm" not in promising.evaluation.notes
    assert len(asked) == len(server.requests) == len({node.state_hash for node in run.tree}) - 1
    assert all(question(body).endswith("yes or no.") for body in server.requests)
    assert run.spent["judge"].model_calls == len(asked)


def test_a_server_that_fails_for_good_ends_the_search_with_what_there_is(provider, tmp_path):
    repo = commit(tmp_path / "repo", {"means.py": SOURCE, "test_means.py": GREEN, ".gitignore": "__pycache__/\n"})
    with ScriptedServer(lambda asked: fails(401, "no key")) as server, Run.open(tmp_path / "run") as run:
        parts = Components(provider, edits(POOR), BestFirst(), verifier(server), Budget(max_nodes=5), baseline_runs=1)
        result = solve(task(repo), parts, run)
    assert "no key" in str(result.error)


@pytest.mark.slow
def test_the_rows_of_a_run_ask_what_the_value_asks_and_answer_by_the_leaves_below(provider, tmp_path):
    """One line repairs the bug and one does not; both begin alike."""
    files = {"means.py": SOURCE, "test_means.py": TESTS, ".gitignore": "__pycache__/\n"}
    repo = commit(tmp_path / "repo", files)

    def line(change):
        edit = ("edit", {"path": "means.py", "old": BUG, "new": change})
        return [answer("I try it.", edit, ("run_tests", {})), answer("Done.", SUBMIT), answer("Yes, done.", SUBMIT)]

    with ScriptedServer(judges) as server, Run.open(tmp_path / "run") as run:
        policy = ChatPolicy(ScriptedModel([*line(POOR), *line(PROMISING)]))
        waves = RoundComponents(2)
        parts = Components(
            provider, policy, BestOfN(2), verifier(server), Budget(max_nodes=9), baseline_runs=1, lines=2, rounds=waves
        )
        solve(task(repo, goal_tests=(GOAL,)), parts, run)
        rows = [row for row in Verifier()(run) if "skipped" not in row]
    told = [(row["prompt"][0]["content"], row["completion"][0]["content"]) for row in rows]
    assert {said for text, said in told if "< -1:" in text} == {"no"}
    assert {said for text, said in told if "not numbers" in text} == {"yes"}
    assert set(map(question, server.requests)) <= {text for text, _ in told}


def test_a_state_whose_patch_is_not_kept_gives_no_row(tmp_path):
    made = Recorder(tmp_path / "run")
    turn = made.asks(0, [{"role": "user", "content": "?"}], answer("words"), Shell("ls"))
    made.add(0, 1.0, [turn])
    made.add(0, 1.0, [turn], patch="")
    made.run.close()
    with Run.read(tmp_path / "run") as run:
        first, second = Verifier()(run)
    assert first["completion"] == [{"role": "assistant", "content": "yes"}]
    assert second == {"skipped": NO_PATCH}


@pytest.mark.slow
def test_the_command_asks_a_server_of_its_own(tmp_path):
    repo = commit(tmp_path / "repo", {"means.py": SOURCE, "test_means.py": TESTS, ".gitignore": "__pycache__/\n"})
    with ScriptedServer(judges) as server:
        options = ("--value", "prm", "-c", "value.model=openai/verifier", "-c", f"value.base_url={server.url}")
        issue = ("--issue", "mean([]) divides by zero", "--sandbox", "namespace", "--max-nodes", "4", "--json")
        env = os.environ | {"OPENAI_API_KEY": "none", "XDG_STATE_HOME": str(tmp_path / "state")}
        said = ramify(("solve", *issue, "--repo", repo, "--out", tmp_path / "run", *options), cwd=tmp_path, env=env)
        assert json.loads(said.stdout)["spent"]["judge"]["model_calls"] == len(server.requests) > 0, said.stderr


def test_a_server_without_probabilities_leaves_the_value_to_the_tests(provider, tmp_path):
    repo = commit(tmp_path / "repo", {"means.py": SOURCE, "test_means.py": GREEN, ".gitignore": "__pycache__/\n"})
    with ScriptedServer(lambda asked: says("yes")) as server, Run.open(tmp_path / "run") as run:
        parts = Components(provider, edits(POOR), BestFirst(), verifier(server), Budget(max_nodes=3), baseline_runs=1)
        solve(task(repo), parts, run)
    assert run.tree[1].evaluation.parts["abstained"] == 1.0
    assert "prm" not in run.tree[1].evaluation.parts
