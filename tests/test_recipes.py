"""Published systems by name: a recipe is settings, or commands; what it makes can be made by its mechanism only."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain, count, repeat
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agent.actions import Edit, Shell, Write
from agent.actions.tools import as_call
from agent.analysis.report.tree import facts
from agent.build.composition import check, resume
from agent.cli.app import app
from agent.config import load, origins, restore
from agent.errors import ConfigError, UsageError
from agent.learning.export.hygiene import SUSPECTED
from agent.learning.memory import Memory
from agent.learning.memory.recall import OPENING
from agent.learning.memory.remembering import LESSON
from agent.recipes import GROUPS, everything, named, names
from agent.run.events import Begun
from agent.run.run import Run
from agent.run.tree.choice import EXCHANGED
from agent.solver.contrast import suspects
from tests import commands
from tests.exporting import Recorder
from tests.halves import HIGH, LOW, SOURCE, SPOILT, halves
from tests.memories import recorded, task
from tests.recipe_cases import (
    HALVES,
    LEARNED,
    LOWER,
    SPECIAL_HIGH,
    SPECIAL_LOW,
    SUMMARY,
    Case,
    answering,
    asked,
    choices,
    environment,
    solve,
)
from tests.scripted_server import Reply, ScriptedServer, says
from tests.test_memory import remember

SEARCHES = [recipe for recipe in everything() if recipe.kind == "search"]
COMMANDS = [recipe for recipe in everything() if recipe.kind == "command"]
CORE = """swe-search codetree weboperator i-mcts mcgs toolchain-star r-mcts ets go-explore mars2 hgm rtv-pdr sage evogit
caid tracecoder experepair codetracer trace2skill rest-mcts agent-q agent-r mcts-dpo tp-llama iterative-rft treecua
portool treeps-rag gigpo proact kat-coder april trace refactorbench claw-eval-live"""


class TestAName:
    def test_there_is_a_recipe_for_every_core_system(self):
        assert set(CORE.split()) <= set(names())

    def test_that_is_unknown_is_an_error_that_names_the_near_ones(self):
        with pytest.raises(ConfigError, match=r"unknown recipe 'swe_search'; did you mean swe-search\?"):
            load(overrides=["recipe=swe_search"])
        with pytest.raises(ConfigError, match=r"unknown recipe 'qqq': `ramify recipes` lists them all"):
            load(overrides=["recipe=qqq"])

    @pytest.mark.parametrize("recipe", COMMANDS, ids=[recipe.name for recipe in COMMANDS])
    def test_of_no_search_says_which_command_to_run(self, recipe):
        with pytest.raises(ConfigError) as caught:
            load(flags={"recipe": recipe.name})
        assert all(f"`{line}`" in str(caught.value) for line in recipe.command)


class TestSettings:
    def test_are_those_of_the_recipe_in_place_of_the_defaults(self):
        settings = load(flags={"recipe": "swe-search"})
        assert (settings.recipe, settings.search.name, settings.value.name) == ("swe-search", "swe_search", "judge")
        assert settings.tournament.judge == "debate"

    def test_that_are_given_win_wherever_the_recipe_is_named(self, tmp_path):
        file = tmp_path / "mine.toml"
        file.write_text('rollouts = 7\n[value]\nname = "debate"\n')
        for given in ({"flags": {"recipe": "swe-search"}}, {"overrides": ["recipe=swe-search"]}):
            settings = load([file], **given)
            assert (settings.rollouts, settings.value.name, settings.search.name) == (7, "debate", "swe_search")
        settings = load(overrides=["tournament.votes=1", "recipe=swe-search"], flags={"search.name": "mcts"})
        assert (settings.tournament.votes, settings.search.name) == (1, "mcts")

    def test_of_a_file_may_name_a_recipe_and_the_command_line_another(self, tmp_path):
        file = tmp_path / "mine.toml"
        file.write_text('recipe = "mcgs"\n')
        assert load([file]).search.name == "graph"
        assert load([file], flags={"recipe": "hgm"}).search.name == "clade"

    def test_come_with_the_recipe_as_their_origin(self):
        found = {each.key: each.origin for each in origins(overrides=["recipe=mcgs", "search.c=0.3"])}
        assert found["search.name"] == "the recipe mcgs"
        assert found["search.options.c"] == "-c search.c=0.3"

    def test_of_a_run_are_those_of_its_journal_whatever_became_of_the_recipe(self):
        dumped = load(overrides=["recipe=mcgs"]).model_dump(mode="json")
        kept = restore({**dumped, "recipe": "gone", "search": {"name": "graph", "options": {}}})
        assert (kept.recipe, kept.search.options) == ("gone", {})

    @pytest.mark.parametrize("recipe", SEARCHES, ids=[recipe.name for recipe in SEARCHES])
    def test_of_every_recipe_are_ones_that_exist(self, recipe, monkeypatch):
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        options = {"policy": ["openai/tiny", "mutate"], "memory.path": "/nowhere", "memory.enabled": False}
        check(load(flags={"recipe": recipe.name, "model.base_url": "http://127.0.0.1:1/v1", **options}))


@pytest.mark.parametrize("recipe", everything(), ids=[recipe.name for recipe in everything()])
def test_every_recipe_is_told_in_full(recipe):
    assert recipe.group in GROUPS
    assert recipe.summary.endswith(".")
    assert all(sentence.endswith(".") for sentence in recipe.differs)
    assert (recipe.kind == "search") == bool(recipe.settings)


@pytest.fixture(scope="module")
def repo(tmp_path_factory):
    return halves(tmp_path_factory.mktemp("project") / "repo")


def test_a_run_of_single_edits_leaves_no_rollouts_to_finish(tmp_path):
    Recorder(tmp_path / "run").close().close()
    with pytest.raises(UsageError, match="makes single edits, and leaves no rollouts unfinished: leave out"):
        resume(tmp_path / "run", unfinished=True)


@pytest.mark.slow
@pytest.mark.namespace
@pytest.mark.parametrize("contrast", [True, False])
def test_trace_passes_over_an_answer_that_only_satisfies_the_tests_and_exports_no_row_of_it(contrast, repo, tmp_path):
    case = Case("trace", len, ([SPECIAL_LOW, SPECIAL_HIGH], [LOW, HIGH]), ["tournament.votes=1"])
    case = case if contrast else replace(case, options=[*case.options, "tournament.contrast=false"])
    with solve(repo, tmp_path / "run", case, "trace") as run:
        assert [run.verdict(node.id)["solved"] for node in run.tree if node.parents] == [True] * 3
        (remark,) = run.verdict(1)["remarks"]
        assert remark == "halves.py:10: the input [1, 2] of a test is answered with 2, which it expects"
        assert suspects(run) == ({1: "It asks for [1, 2]."} if contrast else {})
        assert (run.ended.best == 1) != contrast
        assert asked(run, f"- A: {remark}") == contrast
    argv = ["export", tmp_path / "run", "--format", "sft", "--out", tmp_path / "rows"]
    said = commands.ramify(argv, cwd=tmp_path, env=environment(tmp_path))
    assert (SUSPECTED in said.stdout + said.stderr) == contrast


@pytest.mark.slow
@pytest.mark.namespace
@pytest.mark.parametrize("paranoid", ["true", "false"])
def test_weboperator_ends_rather_than_return_to_a_state_that_is_no_longer_what_it_was(paranoid, repo, tmp_path):
    """What the store has of the base state is altered after the first line of work, its time of change excepted."""
    case = Case("weboperator", len, ([SPOILT], [LOW]), ["budget.max_nodes=3", f"sandbox.paranoid={paranoid}"])
    answer, turns = answering(case), count()

    def damaging(body: Mapping[str, Any]) -> Reply:
        if body.get("tools") and next(turns) == 1:
            (file,) = (tmp_path / "run" / "store" / "imports").rglob("halves.py")
            facts = file.stat()
            file.write_text(SOURCE.replace("2 * number", "3 * number"))
            os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns))
        return answer(body)

    with ScriptedServer(damaging) as server:
        solve(repo, tmp_path / "run", case, "weboperator", server, failing=True).close()
    with Run.read(tmp_path / "run") as run:
        assert (len(run.tree) == 2 and "differs" in run.ended.reason) == (paranoid == "true")


@pytest.mark.slow
@pytest.mark.namespace
def test_r_mcts_learns_from_a_surprise_and_a_later_run_is_told(repo, tmp_path):
    case = Case("r-mcts", len, HALVES, ["memory.path=memory.db", "budget.max_nodes=3"])
    with solve(repo, tmp_path / "run", case, "r-mcts") as run:
        assert run.note(1, LESSON) == LEARNED
        assert [each.node for each in run.asked if each.purpose == "reflection"] == [1, 2]
    other = halves(tmp_path / "other", {"of_a_pair.py": ""})
    issue = "Both halves of a pair are wrong."
    with solve(other, tmp_path / "later", case, "r-mcts", issue=issue) as run:
        assert f"\n  To be learned from that: {LEARNED}\n" in run.note(0, OPENING)["text"] + "\n"


@pytest.mark.slow
@pytest.mark.namespace
@pytest.mark.parametrize(("rounds", "over"), [(1, 1), (2, 1), (1, 0)])
def test_april_leaves_a_rollout_unfinished_and_resume_goes_on_with_it(rounds, over, repo, tmp_path):
    begun, all_begun, resumed = list[None](), threading.Event(), threading.Event()

    def answer(body: Mapping[str, Any]) -> Reply:
        if not body.get("tools"):
            return says(json.dumps(SUMMARY))
        words, turns = str(body["messages"]), len(body["messages"])
        if "A long look" in words and not resumed.is_set():
            return says("Another.", ("view", {"path": "halves.py", "start": 1, "end": turns})).drips(0.0005)
        if body["messages"][-1]["role"] == "tool" and "Now." in words:
            return says("Done.", ("submit", {})).waits(all_begun, after=1)
        if "A long look" not in words:
            begun.append(None)
            if len(begun) == 3:
                all_begun.set()
            if len(begun) == 1:
                return says("A long look.", ("view", {"path": "halves.py"}))
        edits = (("edit", {"path": edit.path, "old": edit.old, "new": edit.new}) for edit in (LOW, HIGH))
        return says("Now.", *edits, ("submit", {}) if resumed.is_set() else ("view", {"path": "halves.py"}))

    if not over:
        all_begun.set()
        resumed.set()
    options = ["rollouts=2", "search.n=2", f"search.over={over}", "workers=3", "model.warm=false"]
    options += [f"rounds={rounds}", "refine.gate=false", "refine.plan=false", "refine.local=0"]
    with (
        ScriptedServer(answer) as server,
        solve(repo, tmp_path / "run", Case("april", len, ((),), options), "april", server) as run,
    ):
        waiting = {node.id for node in run.tree if node.parents and not node.line_end}
        assert len(waiting) >= over
        if not over:
            assert not waiting
            return
        assert any(run.starts[0] <= node_id < (*run.starts, len(run.tree))[1] for node_id in waiting)
        assert (run.finished, run.round) == (True, rounds)
        begun_before = run.begun_count
        resumed.set()
        for _ in range(2):
            argv = ["resume", run.journal.directory, "--unfinished"]
            assert commands.ramify(argv, cwd=tmp_path, env=environment(tmp_path)).returncode == 0
    with Run.read(tmp_path / "run") as run:
        later = [event for event in run.journal.events() if isinstance(event, Begun)][begun_before:]
        assert all(event.choice.continues for event in later)
        assert {event.choice.node for event in later} == waiting
        assert sum(node.submitted for node in run.tree) == len(run.tree.children(0)) > 2 * rounds


def with_one_goal(folder: Path) -> Path:
    """The two halves with one test for both."""
    both = "from halves import high, low\n\n\ndef test_both():\n    assert (low([1, 2]), high([1, 2])) == (1, 2)\n"
    return halves(folder, {"test_halves.py": both})


@pytest.mark.slow
@pytest.mark.namespace
@pytest.mark.parametrize("partial", ["true", "false"])
def test_mcgs_fuses_two_branches_that_a_judge_finds_half_right_with_one_goal_test(partial, tmp_path):
    options = ["value.name=judge", "budget.max_nodes=5", f"search.partial={partial}"]
    case = Case("mcgs", len, ([LOW], [SPOILT], [HIGH]), options)
    with solve(with_one_goal(tmp_path / "repo"), tmp_path / "run", case, "mcgs") as run:
        assert ([node.parents for node in run.tree if node.kind == "fuse"] == [(1, 3)]) == (partial == "true")
        assert run.tree.best().evaluation.solved == (partial == "true")


@pytest.mark.slow
@pytest.mark.namespace
@pytest.mark.parametrize("references", [3, 0])
def test_mcgs_shows_a_model_the_best_of_other_branches_where_its_own_stagnates(references, tmp_path):
    options = ["value.name=judge", "budget.max_nodes=8", "search.alpha=0", "search.partial=false"]
    options += [f"search.references={references}"]
    case = Case("mcgs", len, ([LOW], [SPOILT], [HIGH]), options, tested=True)
    with solve(with_one_goal(tmp_path / "repo"), tmp_path / "run", case, "mcgs") as run:
        elsewhere = [choice for choice in choices(run) if choice.node and choice.references]
        assert bool(elsewhere) == asked(run, "Other attempts have come so far") == (references > 0)


@pytest.mark.slow
@pytest.mark.namespace
@pytest.mark.parametrize("asked_first", [True, False])
def test_agent_r_has_the_model_that_worked_in_a_run_mark_its_first_wrong_turn_and_say_how_it_goes_back(
    asked_first, repo, tmp_path
):
    """The model spoils `low`, reads it in a shell, makes a file and submits; then it repairs both."""
    lines = iter(([SPOILT, Shell("cat halves.py"), Write("notes.txt", "A constant.\n")], [LOW, HIGH]))

    def answer(body: Mapping[str, Any]) -> Reply:
        last = body["messages"][-1]["content"]
        if "Go through the turns of the way that failed" in last:
            return says('{"turn": 1, "reflection": "A constant is no minimum, so I take it back."}')
        if not body.get("tools"):
            return says("{}")
        if body["messages"][-1]["role"] == "tool":
            return says("Done.", ("submit", {}))
        return says("Now.", *map(as_call, next(lines)), ("view", {"path": "halves.py"}))

    case = Case("", len, ((),), ["search.name=mcts", "budget.max_nodes=3"])
    with ScriptedServer(answer) as server:
        solve(repo, tmp_path / "run", case, "", server).close()
        if asked_first:
            for _ in range(2):
                said = commands.ramify(["reflect", tmp_path / "run"], cwd=tmp_path, env=environment(tmp_path)).stdout
                assert said.endswith(
                    ": state 1: turn 1 of 2 is the first wrong one: A constant is no minimum, so I take it back.\n"
                )
    with Run.read(tmp_path / "run") as run:
        assert [each.node for each in run.asked if each.purpose == "reflection"] == [1] * asked_first
    argv = ["export", tmp_path / "run", "--format", "revision", "--out", tmp_path / "rows"]
    done = commands.ramify(argv, cwd=tmp_path, env=environment(tmp_path))
    assert done.returncode == 0, done.stderr
    (line,) = (tmp_path / "rows" / "train.jsonl").read_text().splitlines()
    said = [message for message in json.loads(line)["messages"] if message["role"] == "assistant"]
    (back,) = (n for n, message in enumerate(said) if "I take it back" in message["content"])
    assert said[back]["content"].startswith("A constant is no minimum" if asked_first else "That was no step forward")
    assert [message.get("train", True) for message in said[:back]] == [False] * back
    assert "cat halves.py" in json.dumps(said[:back])
    assert "notes.txt" in json.dumps(said[back:]), "what was made is taken back"


@pytest.mark.slow
@pytest.mark.namespace
@pytest.mark.parametrize("search", ["graph", "mcts"])
def test_evogit_has_a_commit_for_each_state_and_a_merge(search, repo, tmp_path):
    case = Case("evogit", len, ([LOW], [HIGH]), ["workers=1", f"search.name={search}", "budget.max_nodes=5"])
    with solve(repo, tmp_path / "run", case, "evogit") as run:
        states = len(run.tree)
    log = commands.ramify(["log", tmp_path / "run", "--graph"], cwd=tmp_path, env=environment(tmp_path)).stdout
    lines = log.splitlines()
    assert sum("*" in line for line in lines) == states + 1, "the commit that the run began from, too"
    assert any("|\\" in line for line in lines) == (search == "graph"), log


@pytest.mark.slow
@pytest.mark.namespace
@pytest.mark.parametrize("shared", ["exchange=shared.git", ""], ids=["shared", "alone"])
def test_evogit_merges_what_two_processes_found_that_share_only_a_git_repository(shared, repo, tmp_path):
    """The model of each finds one half; before its second line of work it waits until the other has found its own."""
    found = {"one": threading.Event(), "other": threading.Event()}

    def search(name: str, half: Edit) -> tuple[bool, bool, bool]:
        case = Case("evogit", len, ([half],), ["workers=1", "budget.max_nodes=5", *filter(None, [shared])])
        answer, lines = answering(case), chain([False], repeat(True))

        def waiting(body: Mapping[str, Any]) -> Reply:
            if body["messages"][-1]["role"] != "tool" and next(lines):
                found[name].set()
                found["other" if name == "one" else "one"].wait(60)
            return answer(body)

        with ScriptedServer(waiting) as server, solve(repo, tmp_path / name, case, "evogit", server) as run:
            found[name].set()
            brought = {node.id for node in run.tree if node.kind == EXCHANGED}
            merged = any(node.kind == "fuse" and brought & {*node.parents} for node in run.tree)
            return bool(brought), merged, bool(run.tree.solved)

    with ThreadPoolExecutor(2) as both:
        brought, merged, solved = zip(*both.map(search, ("one", "other"), (LOW, HIGH)), strict=True)
    assert all(brought) == all(solved) == any(merged) == bool(shared), "the second may get what the first merged"
    assert any(brought) == any(solved) == bool(shared)


@pytest.mark.slow
@pytest.mark.namespace
def test_experepair_tells_a_run_of_a_repair_like_it(repo, tmp_path):
    about = task("Both halves of a pair are wrong.", tags={"repo": "x/pairs"})
    remember(Memory(tmp_path / "memory.db"), recorded(tmp_path / "earlier", about))
    case = Case("experepair", len, ([LOW, HIGH],), ["memory.path=memory.db"])
    with solve(repo, tmp_path / "run", case, "experepair") as run:
        assert run.note(0, OPENING)["ids"]
    with solve(
        repo, tmp_path / "off", replace(case, options=["memory.enabled=false", *case.options]), "experepair"
    ) as run:
        assert run.note(0, OPENING) is None


@pytest.mark.slow
@pytest.mark.namespace
@pytest.mark.parametrize("track", ["true", "false"])
def test_refactorbench_tells_a_model_which_references_are_still_to_be_updated(track, repo, tmp_path):
    """A function is renamed, and a test still imports it by its old name."""
    rename = Edit("halves.py", "def twice", "def doubled")
    case = Case("", len, ([rename],), [f"track={track}", "budget.max_nodes=2"], tested=True)
    with solve(repo, tmp_path / "run", case, "", issue="Rename `twice`.") as run:
        seen = [seen.text for node in run.tree for step in node.steps for seen in step.observations]
        told = (
            "Files that you have changed: halves.py.\nYour change took names away that these places still use. Update"
        )
        assert any(told in text and "- test_halves.py:9: twice" in text for text in seen) == (track == "true")


@pytest.mark.slow
@pytest.mark.namespace
@pytest.mark.parametrize("judge", ["criteria", "vote"])
def test_the_weights_of_criteria_choose_between_rollouts_that_tests_leave_equal(judge, repo, tmp_path):
    def answer(body: Mapping[str, Any]) -> Reply:
        if "weight" in body["messages"][-1]["content"]:
            judged = [("reach", 2, "A"), ("clearness", 3, "B")]
            rows = [{"criterion": name, "weight": weight, "winner": best} for name, weight, best in judged]
            return says(json.dumps({"criteria": rows}))
        return lines(body)

    options = ["rollouts=2", f"tournament.judge={judge}", "tournament.votes=1"]
    lines = answering(case := Case("", len, ([LOW, HIGH], [LOWER, HIGH]), options))
    with ScriptedServer(answer) as server, solve(repo, tmp_path / "run", case, "", server) as run:
        (ballot,) = run.ballots
        assert ballot.judge == ("openai/tiny (criteria)" if judge == "criteria" else "openai/tiny")
        assert ballot.winner == ballot.group[judge == "criteria"]


def test_a_run_says_which_recipe_it_was_begun_with(tmp_path):
    recorder = Recorder(tmp_path / "run", recipe="mcgs")
    assert "\nrecipe mcgs\n" in "\n" + facts(recorder.run)
    recorder.close().close()


class TestTheCommand:
    def test_lists_all_by_a_line_each_and_shows_one(self):
        listed = CliRunner().invoke(app, ["recipes"]).stdout.splitlines()
        assert [line.split()[0] for line in listed] == [recipe.name for recipe in everything()]
        shown = CliRunner().invoke(app, ["recipes", "mcgs"]).stdout
        assert all(text in shown for text in (named("mcgs").title, 'search.name = "graph"', named("mcgs").differs[0]))
        assert "ramify solve ISSUE --repo . --model MODEL --recipe mcgs --value judge" in shown

    def test_says_the_same_as_json(self):
        listed = json.loads(CliRunner().invoke(app, ["recipes", "--json"]).stdout)
        (one,) = (each for each in listed if each["name"] == "mcgs")
        assert one == json.loads(CliRunner().invoke(app, ["recipes", "mcgs", "--json"]).stdout)
        assert (one["kind"], one["settings"]["search"]["name"]) == ("search", "graph")

    @pytest.mark.parametrize(
        ("recipe", "needs"),
        [("swe-search", "--model MODEL"), ("mars2", "--model more than once"), ("experepair", "--memory FILE")],
    )
    def test_says_what_has_to_be_named_beside_a_recipe(self, recipe, needs):
        with pytest.raises(ConfigError, match=needs):
            check(load(flags={"recipe": recipe}))
