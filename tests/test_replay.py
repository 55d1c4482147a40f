"""A recorded run is searched again from its journal: without a model, a key or a server, and to the same end."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from dataclasses import replace as replaced
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agent.actions import View
from agent.analysis.compare_runs import ends_expansion, first_difference
from agent.analysis.recorded_model import Archive, Recorded
from agent.budget import Budget, Stop, Usage
from agent.build.composition import resume, start
from agent.build.replay import Replayed, replay
from agent.cli.app import app
from agent.cli.replay import as_text
from agent.config import load
from agent.engine.model_calls import ModelGateway, Request
from agent.engine.recorder import Recorder
from agent.errors import PolicyError, TooLong, ToolsRefused, UsageError
from agent.models.parameters import Parameters
from agent.policy.chat.dialects import TEXT
from agent.run.command_queue import put
from agent.run.commands import Order
from agent.run.events import Added, Asked, Ended, Failed, Spent, Started
from agent.run.journal import decode, encode, read_events
from agent.run.run import Run
from agent.run.tree.node import Step
from agent.solver.result import Result
from agent.task import dump_task
from sandboxes import Snapshot
from tests.projects import BUG, FIX, means, quick_means, quick_task, task
from tests.scripted import ScriptedModel, answer
from tests.scripted_server import ScriptedServer, says
from tests.tiers import slow_but
from tests.trees import node

NOISY = ("shell", {"command": "date +%N; echo $$"})
QUIET = ("shell", {"command": "ls"})
WRONG = ("edit", {"path": "means.py", "old": BUG, "new": BUG.replace("< 0", "< -1")})
RIGHT = ("edit", {"path": "means.py", "old": BUG.replace("< 0", "< -1"), "new": FIX})
TEST = ("run_tests", {})
STORY = [says("I look.", NOISY), says("No tool."), says("a", WRONG, TEST), says("b", NOISY), says("c", RIGHT, TEST)]


def settings(**changes):
    changed = {"policy.name": "openai/tiny", "search.name": "linear", "sandbox.kind": "namespace", **changes}
    return load(flags={"measure.baseline_runs": 1, **changed})


def record(folder, script, **changes):
    """A run with a model that says these things; its server is gone afterwards, and so is the key."""
    with pytest.MonkeyPatch.context() as patch, ScriptedServer(script) as server:
        patch.setenv("OPENAI_API_KEY", "sk-of-the-tests")
        found = settings(**{"model.base_url": server.url, **changes})
        start(quick_task(quick_means(folder / "repo")), found, folder / "run")
        return folder / "run", server


def ramify(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)), env={"OPENAI_API_KEY": None})


@pytest.fixture(scope="module")
def recorded(namespaces, tmp_path_factory):
    """A search that finds the fix in two edits, with a command that prints something else every time."""
    return record(tmp_path_factory.mktemp("recorded"), STORY)[0]


@pytest.mark.namespace
class TestAReplay:
    @pytest.mark.slow
    def test_with_nothing_changed_is_the_same_run_without_a_model(self, recorded, tmp_path):
        done = ramify("replay", recorded, "--out", tmp_path / "new", "--json")
        said = json.loads(done.stdout)
        assert (done.exit_code, said["identical"], said["difference"]) == (0, True, "")
        assert (said["calls"], said["reused"], said["missing"], said["status"]) == (5, 5, 0, "solved")
        with Run.read(recorded) as old, Run.read(tmp_path / "new") as new:
            assert [n.state_hash for n in new.tree] == [n.state_hash for n in old.tree]
            assert new.ended.patch_blob == old.ended.patch_blob
            assert [a.answer for a in new.asked] == [a.answer for a in old.asked]
            assert [n.report for n in new.tree] == [n.report for n in old.tree]

    @pytest.mark.slow
    def test_with_more_rollouts_uses_what_applies_and_says_what_is_missing(self, recorded, tmp_path):
        change = ("--search", "best_of_n", "-c", "search.n=2", "-c", "rollouts=2")
        done = ramify("replay", recorded, *change, "--out", tmp_path / "new", "--json")
        said = json.loads(done.stdout)
        assert said["identical"] is None
        assert said["reused"] == 5
        failed = [e.reason for e in read_events(tmp_path / "new" / "journal.jsonl") if isinstance(e, Failed)]
        assert len(failed) == 3
        assert said["missing"] == len(failed)
        assert "no answer of openai/tiny to this request; --live asks" in failed[0]

    @pytest.mark.slow
    def test_of_a_run_that_ended_within_an_expansion_and_went_on_with_other_limits_is_the_same(
        self, recorded, tmp_path
    ):
        shutil.copytree(recorded, tmp_path / "run", symlinks=True)
        journal = tmp_path / "run" / "journal.jsonl"
        lines = journal.read_bytes().splitlines(keepends=True)
        asked = [n for n, line in enumerate(lines) if isinstance(decode(line), Asked)]
        journal.write_bytes(b"".join(lines[: asked[1] + 1]) + encode(Ended("no_patch", "CALLS")))
        with pytest.MonkeyPatch.context() as patch, ScriptedServer(STORY[2:]) as server:
            patch.setenv("OPENAI_API_KEY", "sk-of-the-tests")
            begun_with(journal, model={"base_url": server.url}, budget={"max_calls": 2})
            assert resume(tmp_path / "run", budget={"max_calls": None}).usage.model_calls == 5
        assert len(server.requests) == 3
        done = replay(tmp_path / "run", tmp_path / "new")
        assert (done.difference, done.reused, done.missing) == ("", 4, 0)


def begun_with(journal, **changes):
    """The run began with other settings."""
    first, *rest = journal.read_bytes().splitlines(keepends=True)
    event = json.loads(first)
    for section, values in changes.items():
        event["settings"][section] |= values
    journal.write_bytes(json.dumps(event).encode() + b"\n" + b"".join(rest))


@pytest.mark.slow
@pytest.mark.namespace
def test_a_run_without_a_model_that_a_person_steered_and_ended_replays_the_same(namespaces, tmp_path):
    (tmp_path / "run").mkdir()
    put(tmp_path / "run", Order("fork", 0, "here"))
    found = settings(**{"policy.name": "mutate", "search.name": "best_first", "budget.max_nodes": 2, "seed": 3})
    start(task(means(tmp_path / "repo")), found, tmp_path / "run")
    begun_with(tmp_path / "run" / "journal.jsonl", budget={"max_nodes": 1000})
    done = replay(tmp_path / "run", tmp_path / "new")
    assert (done.difference, done.calls, done.result.nodes) == ("", 0, 2)
    with Run.read(tmp_path / "new") as new:
        assert [e.choice.hint for e in new.journal.events() if isinstance(e, Added) and e.choice] == ["here"]


@pytest.mark.slow
@pytest.mark.namespace
def test_a_run_of_several_workers_replays_the_same_in_the_order_in_which_they_worked(namespaces, tmp_path):
    edits = [("edit", {"path": "means.py", "old": BUG, "new": BUG.replace("0", str(n))}) for n in range(1, 6)]
    turns = [(says(f"try {n}", edit, TEST), says("look", QUIET)) for n, edit in enumerate(edits)]
    script = [turn for pair in turns for turn in pair] + [says("done", ("submit", {}))] * 60
    rollouts = {"workers": 3, "search.name": "mcts", "rollouts": 3, "tournament.judge": "none"}
    run, _ = record(tmp_path, script, **rollouts, **{"budget.max_nodes": 6})
    done = replay(run, tmp_path / "new")
    assert (done.difference, done.missing) == ("", 0)
    with Run.read(run) as old:
        flights = [event.flight for event in old.journal.events() if ends_expansion(event)]
    assert any(flight.begun > flight.number + 1 for flight in flights), "none worked beside another"


def test_a_run_of_a_version_that_kept_no_answers_is_refused(tmp_path):
    with Run.open(tmp_path / "run") as run:
        run.record(Started({}, {}, Snapshot("s0", "d0")))
        run.record(Added(node(0)))
        run.record(Spent(Usage(model_calls=1), "model", 0))
    with pytest.raises(UsageError, match="did not record the answers"):
        replay(tmp_path / "run", tmp_path / "new")


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"delegate": True}, "divided its issue into several searches"),
        ({"exchange": "shared.git"}, "took states from other runs"),
    ],
    ids=["delegated", "exchanged"],
)
def test_a_run_that_rests_on_more_than_its_journal_is_refused(settings, why, tmp_path):
    with Run.open(tmp_path / "run") as run:
        run.record(Started(dump_task(quick_task(tmp_path)), settings, Snapshot("s0", "d0")))
        run.record(Added(node(0)))
    with pytest.raises(UsageError, match=why):
        replay(tmp_path / "run", tmp_path / "new")


def test_a_run_whose_checkout_is_gone_says_which_and_makes_nothing(tmp_path):
    with Run.open(tmp_path / "run") as run:
        run.record(Started(dump_task(quick_task(tmp_path / "moved")), {}, Snapshot("s0", "d0")))
        run.record(Added(node(0)))
    with pytest.raises(UsageError, match=f"the checkout {tmp_path / 'moved'} that it searched is missing; restore it"):
        replay(tmp_path / "run", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def found(folder, *, label="right", value=0.5, turns=(), ended=()):
    """A run of two states."""
    with Run.open(folder) as run:
        run.record(Added(node(0)))
        run.record(Added(replaced(node(1, 0, value), label=label, steps=turns)))
        for event in ended:
            run.record(event)
    return run


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, ""),
        ({"label": "wrong"}, "state 1: label is 'wrong', and was 'right'"),
        ({"turns": (Step((), (), "hm", Usage(tokens_in=1)),)}, "state 1: the turns is"),
        ({"value": 0.25}, "state 1: the value is"),
        ({"ended": (Added(node(2, 0)),)}, "the number of states is 3, and was 2"),
        ({"ended": (Failed(0, "no"),)}, "state 0: the result of its expansions is"),
        ({"ended": (Ended("improved", "NODES", 1, True, "other blob"),)}, ""),
    ],
)
def test_the_first_difference_of_two_runs_is_named(tmp_path, change, said):
    old, new = found(tmp_path / "old"), found(tmp_path / "new", **change)
    assert first_difference(old, new)[: len(said) or 1] == said
    assert first_difference(old, old) == ""


def test_a_replay_on_a_machine_that_has_changed_says_so(tmp_path):
    for name in ("old", "new"):
        with Run.open(tmp_path / name) as run:
            run.record(Added(replaced(node(0), snapshot=Snapshot("s0", name))))
    said = first_difference(Run.read(tmp_path / "old"), Run.read(tmp_path / "new"))
    assert said.startswith("state 0: the content is 'new', and was 'old': the checkout, or what is installed on this")


def test_runs_that_ended_with_other_patches_differ(tmp_path):
    ends = [found(tmp_path / blob, ended=(Ended("improved", "NODES", 1, True, blob),)) for blob in ("one", "two")]
    assert first_difference(*ends) == "the patch is 'two', and was 'one'"


@pytest.mark.parametrize(
    ("difference", "said"),
    [
        (None, "solved: 3 states; "),
        ("", "identical: 3 states\n"),
        ("the patch is 1, and was 2", "differs: the patch is 1"),
    ],
)
def test_people_are_told_what_a_replay_came_to_and_what_was_missing(difference, said):
    result = Result("solved", b"", True, Stop.SOLVED, Usage(), 2, Path("new"), 3, 1.0, {}, {})
    told = as_text(Replayed(result, calls=5, reused=4, missing=1, difference=difference))
    assert told.startswith(said)
    assert told.endswith("\nanswers  4 of 5 recorded ones used, 1 missing\nrun      new\n")


def heard(content, seed=1, tool="printed"):
    """What a model is asked: something said, and what a command printed."""
    return [{"role": "user", "content": content}, {"role": "tool", "tool_call_id": "1", "content": tool}], {
        "seed": seed
    }


@pytest.fixture
def archive(tmp_path):
    """Of a run in which a model was asked `a` twice, with the seeds 1 and 2."""
    with Run.open(tmp_path / "run") as run:
        ask = ModelGateway(Recorder(run, Budget())).at(0, "")
        for seed in (1, 2):
            messages, sampling = heard("a", seed)
            ask(ScriptedModel([answer(f"seed {seed}")], "m"), messages, **sampling)
        return Archive(run)


@dataclass
class Refusing:
    """A model whose server takes nothing."""

    error: Exception
    name: str = "m"
    price: None = None

    def sampling(self, given):
        return dict(given)

    def complete(self, messages, tools=(), **sampling):
        raise self.error

    def close(self):
        pass


class TestARecordedAnswer:
    def test_is_given_once_and_to_its_own_request_first(self, archive):
        model = Recorded("m", archive)
        for seed in (2, 1):
            messages, sampling = heard("a", seed)
            assert model.complete(messages, **sampling).text == f"seed {seed}"
        with pytest.raises(PolicyError, match="no answer of m"):
            model.complete(messages, **sampling)
        assert (archive.given, archive.missing) == (2, ["m"])

    def test_applies_where_only_what_a_command_printed_or_the_seed_differs(self, archive):
        model = Recorded("m", archive)
        messages, sampling = heard("a", 2, tool="printed later")
        assert model.complete(messages, **sampling).text == "seed 2"
        messages, sampling = heard("a", 3)
        assert model.complete(messages, **sampling).text == "seed 1"

    def test_applies_where_what_a_command_printed_is_told_in_words(self, tmp_path):
        def told(text):
            results = TEXT.results({}, (View("a.py"),), [text])
            return TEXT.to_wire([{"role": "user", "content": "issue"}, {"role": "assistant", "content": "x"}, *results])

        with Run.open(tmp_path / "run") as run:
            ModelGateway(Recorder(run, Budget())).at(0, "")(ScriptedModel([answer("yes")], "m"), told("0.01 s"), seed=1)
            archive = Archive(run)
        assert Recorded("m", archive).complete(told("0.02 s"), seed=1).text == "yes"

    @pytest.mark.parametrize("refusal", [TooLong, ToolsRefused])
    def test_may_be_a_refusal_which_is_given_as_often_as_it_is_asked_for(self, tmp_path, refusal):
        with Run.open(tmp_path / "run") as run:
            with pytest.raises(refusal):
                ModelGateway(Recorder(run, Budget())).at(0, "")(Refusing(refusal("no, not this")), [], seed=1)
            archive = Archive(run)
            assert run.usage == Usage()
        for _ in range(2):
            with pytest.raises(refusal, match="no, not this"):
                Recorded("m", archive).complete([], seed=2)
        assert archive.missing == []

    @pytest.mark.parametrize("change", [{"temperature": 0.5}, {"name": "other"}, {"content": "b"}, {"tools": [{}]}])
    def test_applies_to_no_other_request(self, archive, change):
        messages, sampling = heard(change.pop("content", "a"))
        name, tools = change.pop("name", "m"), change.pop("tools", ())
        assert archive.find(Request(name, tuple(messages), tuple(tools), sampling | change)) is None

    @pytest.mark.parametrize("changed", [{"temperature": 0.5}, {"thinking_tokens": 2048}, {"body": {"max_tokens": 9}}])
    def test_applies_no_more_where_the_settings_ask_for_it_otherwise(self, archive, changed):
        messages, sampling = heard("a", 1)
        with pytest.raises(PolicyError, match="no answer of m"):
            Recorded("m", archive, parameters=Parameters(**changed)).complete(messages, **sampling)

    def test_that_is_missing_is_asked_for_where_that_is_wanted(self, archive):
        made = []
        model = Recorded("m", archive, lambda: made.append(1) or ScriptedModel([answer("now"), answer("then")]))
        assert [model.complete([]).text, model.complete([]).text] == ["now", "then"]
        assert made == [1]
        model.close()


@pytest.mark.namespace
@pytest.mark.parametrize("verified", slow_but([True], [True, False]))
def test_a_run_that_a_limit_ended_replays_to_the_same_patch_verified_as_it_was(namespaces, tmp_path, verified):
    run, _ = record(tmp_path, STORY, **{"budget.max_nodes": 2})
    journal = run / "journal.jsonl"
    *before, last = journal.read_bytes().splitlines(keepends=True)
    assert decode(last).status == "improved"
    journal.write_bytes(b"".join([*before, encode(replaced(decode(last), verified=verified))]))
    done = ramify("replay", run, "--out", tmp_path / "new", "--json")
    assert (json.loads(done.stdout)["difference"], done.exit_code) == ("", 0)
