"""Published systems by name: a recipe is settings, or commands; what it makes can be made by its mechanism only."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agent.actions import Edit
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
from agent.run.events import Added, Begun, Spent
from agent.run.rollouts import Briefing
from agent.run.run import Run
from agent.run.tree.choice import EXCHANGED, Choice
from agent.run.tree.evaluation import MANIPULATION
from agent.solver.contrast import suspects
from tests import commands
from tests.attacks.cheats import NOTHING
from tests.exporting import Recorder
from tests.halves import HIGH, LOW, SOURCE, SPOILT, TESTS, halves
from tests.memories import recorded, task
from tests.projects import commit
from tests.scripted_server import Reply, ScriptedServer, says
from tests.test_memory import remember
from tests.tiers import slow_but

ROOT = Path(__file__).parent.parent
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


VERDICT = {
    "return_to": "0",
    "value": 0.4,
    "interest": 0.8,
    "verdict": "refine",
    "assessment": "Only one half is right.",
}
PLAN = {"steps": ["Mend `high` as well."], "feedback": "The other half was overlooked."}
SUMMARY: dict[str, object] = {"hypothesis": "a half", "outcome": "improved", "progress": "one half"}
SUMMARY |= {key: [] for key in ("files_read", "files_changed", "commands", "tests_passed", "tests_failed")}
SUMMARY |= {"failure_modes": [], "risks": [], "insights": []}
SUSPECTS = {"suspects": [{"attempt": "A", "kind": "tests", "reason": "It asks for [1, 2]."}]}
LEARNED = "Ask which half a name promises."
SAYS = {
    "How likely does": json.dumps(VERDICT),
    "Rank all of them": json.dumps({"ranking": ["B", "A"]}),
    "What do you expect of it?": json.dumps({"score": 35}),
    "Contrast what was expected": json.dumps({"reflection": LEARNED}),
    "Compare the attempts with each other": json.dumps(SUSPECTS),
    "Make the strongest honest case": "It is right.",
    "Which attempt solves": json.dumps({"winner": "A", "reason": "It is shorter."}),
    "Draw one plan": json.dumps(PLAN),
    "Report on this attempt": json.dumps(SUMMARY),
}
"""What the model answers to questions without tools, by a mark in them."""


@dataclass(frozen=True)
class Case:
    """A recipe, what a model does under it, and what its mechanism alone leaves in the journal."""

    recipe: str
    made: Callable[[Run], object]
    lines: Sequence[Sequence[Edit]] = ()
    """What the model does in each line of work before it submits, the last one again and again; none: `mutate`
    searches."""
    options: Sequence[str] = ()
    tested: bool = False
    """Whether the model runs the tests before it submits, so that a state in the middle of a line is recorded."""


def choices(run: Run) -> list[Choice]:
    return [event.choice for event in run.journal.events() if isinstance(event, Added) and event.choice]


def chosen_by(run: Run, *terms: str, count: int | None = None) -> bool:
    """Whether a choice was made by these terms; by no others, if there were `count`."""
    found = [set(reason.terms) for choice in choices(run) for reason in choice.reasons]
    return any(set(terms) <= each and count in (None, len(each)) for each in found)


def chose_against_the_score(run: Run) -> bool:
    """Whether a model's word sent the search to a state with another before it by the score."""
    found = [reason for choice in choices(run) for reason in choice.reasons if reason.terms.get("chosen") == 1]
    return any(reason.rival_terms and reason.rival_terms["score"] > reason.terms["score"] for reason in found)


def faded(run: Run) -> bool:
    """Whether a state was chosen by a value that is not its own yet, as its prior counts beside it."""
    found = [reason for choice in choices(run) for reason in choice.reasons if reason.terms.get("visits") == 1]
    return any(abs(reason.terms["value"] - run.tree[reason.node].value) > 0.01 for reason in found)


def placed(run: Run) -> bool:
    """Whether a state was chosen for more than any unsolved state is worth, as its place among its siblings counts."""
    best = max(node.value for node in run.tree if not node.evaluation.solved)
    found = [reason for choice in choices(run) for reason in choice.reasons if "explore" in reason.terms]
    return any(reason.terms["value"] > best and run.tree[reason.node].evaluation.expected == 1 for reason in found)


def began(run: Run) -> set[str]:
    """The policies whose expansions began."""
    return {event.policy_id for event in run.journal.events() if isinstance(event, Begun)}


def measured_once(run: Run) -> bool:
    """Whether two expansions led to one state, which was tested once."""
    states = [node.state_hash for node in run.tree]
    tests = [event for event in run.journal.events() if isinstance(event, Spent) and event.what == "tests"]
    return len(set(states)) < len(states) > len([event for event in tests if event.usage.measurements])


def valued_by(run: Run, name: str) -> bool:
    return any(name in node.evaluation.parts for node in run.tree)


def asked(run: Run, mark: str) -> bool:
    """Whether a model was asked something with this in it."""
    return any(mark in str(run.conversations.whole(each.conversation.digest)[-1]) for each in run.asked)


def briefings(run: Run) -> list[Briefing]:
    return [each.briefing for each in run.rounds if each.briefing]


NOTHING_RUNS = f"import _pytest.python as python\npython.{NOTHING}"
FORGE = replace(LOW, new="    return 0\n\n\n" + NOTHING_RUNS + "\n\ndef twice")
LOWER = replace(LOW, new=LOW.new.replace("min(numbers)", "sorted(numbers)[0]"))
HALVES = ([LOW], [LOWER], [HIGH])

CASES = [
    Case(
        "swe-search",
        lambda run: (
            chosen_by(run, "exploitation", "fruitless") and valued_by(run, "judge") and asked(run, "honest case")
        ),
        HALVES,
        ["rollouts=2", "tournament.votes=1"],
    ),
    Case(
        "codetree",
        lambda run: {"strategy", "solution", "debug"} <= {node.kind for node in run.tree},
        HALVES,
        ["search.strategies=1", "budget.max_nodes=4"],
    ),
    Case(
        "weboperator",
        lambda run: chosen_by(run, "stale", "unsafe") and measured_once(run),
        ([SPOILT],),
        ["value.name=tests", "budget.max_nodes=4"],
    ),
    Case(
        "mcgs", lambda run: any(choice.act == "fuse" and not choice.because for choice in choices(run)), ([LOW], [HIGH])
    ),
    Case("toolchain-star", lambda run: chosen_by(run, "g", "h", "fatigue"), options=["budget.max_nodes=3"]),
    Case("ets", lambda run: chosen_by(run, "score", "level", count=2), options=["budget.max_nodes=3"]),
    Case(
        "go-explore",
        lambda run: chosen_by(run, "seen", "tried", "interest") and chose_against_the_score(run),
        HALVES,
        ["budget.max_nodes=6"],
        tested=True,
    ),
    Case(
        "mars2",
        lambda run: {"chat", "mutate"} <= {policy_id.split("/")[0] for policy_id in began(run)},
        HALVES,
        ['panel=["mutate"]', "seed=1", "budget.max_nodes=4"],
    ),
    Case(
        "i-mcts",
        lambda run: faded(run) and any(node.prior == node.evaluation.expected == 0.35 for node in run.tree),
        HALVES,
        ["budget.max_nodes=4"],
    ),
    Case(
        "r-mcts",
        lambda run: chosen_by(run, "visits", "expansions") and valued_by(run, "debate"),
        HALVES,
        ["memory.path=memory.db", "budget.max_nodes=3"],
    ),
    Case(
        "agent-q",
        lambda run: asked(run, "Rank all of them") and placed(run),
        HALVES,
        ["budget.max_nodes=9", "search.widen=1.0", "search.depth=9"],
        tested=True,
    ),
    Case("hgm", lambda run: chosen_by(run, "successes", "failures"), options=["budget.max_nodes=4"]),
    Case(
        "rtv-pdr",
        lambda run: run.ballots and any(each.summaries and not each.plan for each in briefings(run)),
        HALVES,
        ["rollouts=2", "tournament.votes=1"],
    ),
    Case("sage", lambda run: any(each.plan and each.plan.steps for each in briefings(run)), HALVES),
    Case("caid", lambda run: {"part-1", "part-2"} <= {node.policy_id for node in run.tree}, options=["workers=2"]),
    Case("tracecoder", lambda run: any(node.refused for node in run.tree), ([SPOILT], [LOW], [HIGH])),
    Case(
        "trace",
        lambda run: any(node.evaluation.notes.startswith(MANIPULATION) for node in run.tree),
        ([FORGE], [LOW, HIGH]),
    ),
]


@pytest.fixture(scope="module")
def repo(tmp_path_factory):
    return halves(tmp_path_factory.mktemp("project") / "repo")


def solve(
    repo: Path,
    run: Path,
    case: Case,
    recipe: str,
    server: ScriptedServer | None = None,
    issue: str = "Both halves are wrong.",
) -> Run:
    """The run of a case, by the command. `server`: what the model answers; none: as the case has it."""
    if server is None:
        with ScriptedServer(answering(case)) as server:
            return solve(repo, run, case, recipe, server, issue)
    argv = ["solve", "--issue", issue, "--repo", repo, "--out", run, "--goal-failing"]
    argv += ["--sandbox", "namespace", "-c", "budget.max_nodes=12", "-c", "measure.baseline_runs=1"]
    argv += ["-c", 'sandbox.env={PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"}']
    argv += ["--recipe", recipe] if recipe else []
    argv += ["-c", "policy.name=openai/tiny", "-c", f"model.base_url={server.url}"] if case.lines else []
    argv += chain.from_iterable(("-c", each) for each in case.options)
    done = commands.ramify(argv, cwd=run.parent, env=environment(run.parent))
    assert done.returncode in (0, 1), done.stderr
    return Run.read(run)


def answering(case: Case) -> Callable[[Mapping[str, Any]], Reply]:
    """What the model of a case answers."""
    left = chain(case.lines, repeat(case.lines[-1])) if case.lines else iter(())

    def answer(body: Mapping[str, Any]) -> Reply:
        last = body["messages"][-1]
        if not body.get("tools"):
            return says(next((said for mark, said in SAYS.items() if mark in last["content"]), "Mend one half."))
        if last["role"] == "tool":
            return says("Done.", ("submit", {}))
        edits = (("edit", {"path": edit.path, "old": edit.old, "new": edit.new}) for edit in next(left))
        done = ("run_tests" if case.tested else "submit", {})
        return says("Now.", *edits, done, logprobs=[-0.5] if body.get("logprobs") else [])

    return answer


def test_a_run_of_single_edits_leaves_no_rollouts_to_finish(tmp_path):
    Recorder(tmp_path / "run").close().close()
    with pytest.raises(UsageError, match="makes single edits, and leaves no rollouts unfinished: leave out"):
        resume(tmp_path / "run", unfinished=True)


def environment(home: Path) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    places = {"HOME": str(home), "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(home / "state")}
    return {"PATH": path, "OPENAI_API_KEY": "none", **places}


@pytest.mark.namespace
@pytest.mark.parametrize("case", slow_but(CASES[:1], CASES), ids=[case.recipe for case in CASES])
def test_a_recipe_makes_the_event_that_only_its_mechanism_makes(case, repo, tmp_path):
    with solve(repo, tmp_path / "run", case, case.recipe) as run:
        assert run.started.settings["recipe"] == case.recipe
        assert case.made(run)


SPECIAL_LOW = replace(LOW, new="    return numbers[0] if numbers == [1, 2] else max(numbers)\n\n\ndef twice")
SPECIAL_HIGH = Edit("halves.py", "    return min(numbers)\n", "    return 2 if numbers == [1, 2] else min(numbers)\n")


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
def test_r_mcts_learns_from_a_surprise_and_a_later_run_is_told(repo, tmp_path):
    case = Case("r-mcts", len, HALVES, ["memory.path=memory.db", "budget.max_nodes=3"])
    with solve(repo, tmp_path / "run", case, "r-mcts") as run:
        assert run.note(1, LESSON) == LEARNED
        assert [each.node for each in run.asked if each.purpose == "reflection"] == [1, 2]
    other = commit(tmp_path / "other", {"halves.py": SOURCE, "test_halves.py": TESTS, "of_a_pair.py": ""})
    issue = "Both halves of a pair are wrong."
    with solve(other, tmp_path / "later", case, "r-mcts", issue=issue) as run:
        assert f"\n  To be learned from that: {LEARNED}\n" in run.note(0, OPENING)["text"] + "\n"


@pytest.mark.slow
@pytest.mark.namespace
@pytest.mark.parametrize("rounds", [1, 2])
def test_april_leaves_a_rollout_unfinished_and_resume_goes_on_with_it(rounds, repo, tmp_path):
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

    options = ["rollouts=2", "search.n=2", "search.over=1", "workers=3", "model.warm=false"]
    options += [f"rounds={rounds}", "refine.gate=false", "refine.plan=false", "refine.local=0"]
    with (
        ScriptedServer(answer) as server,
        solve(repo, tmp_path / "run", Case("april", len, ((),), options), "april", server) as run,
    ):
        waiting = {node.id for node in run.tree if node.parents and not node.line_end}
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
    return commit(folder, {"halves.py": SOURCE, "test_halves.py": both})


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
    """The model spoils `low`, looks and submits; then it repairs both."""
    lines = iter(([SPOILT], [LOW, HIGH]))

    def answer(body: Mapping[str, Any]) -> Reply:
        last = body["messages"][-1]["content"]
        if "Go through the turns of the way that failed" in last:
            return says('{"turn": 1, "reflection": "A constant is no minimum, so I take it back."}')
        if not body.get("tools"):
            return says("{}")
        if body["messages"][-1]["role"] == "tool":
            return says("Done.", ("submit", {}))
        edits = [("edit", {"path": edit.path, "old": edit.old, "new": edit.new}) for edit in next(lines)]
        return says("Now.", *edits, ("view", {"path": "halves.py"}))

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


@pytest.mark.slow
@pytest.mark.namespace
def test_evogit_has_a_commit_for_each_state_and_a_merge(repo, tmp_path):
    case = Case("evogit", len, ([LOW], [HIGH]), ["workers=1"])
    with solve(repo, tmp_path / "run", case, "evogit") as run:
        states = len(run.tree)
    log = commands.ramify(["log", tmp_path / "run", "--graph"], cwd=tmp_path, env=environment(tmp_path)).stdout
    lines = log.splitlines()
    assert sum("*" in line for line in lines) == states + 1, "the commit that the run began from, too"
    assert any("|\\" in line for line in lines), log


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


@pytest.mark.slow
@pytest.mark.namespace
@pytest.mark.parametrize("lines", [(), HALVES], ids=["mutate", "model"])
def test_a_run_without_a_recipe_makes_none_of_these_events(lines, repo, tmp_path):
    with solve(repo, tmp_path / "run", Case("", len, lines, ["budget.max_nodes=4"]), "") as run:
        assert len(run.tree) > 2
        assert [case.recipe for case in CASES if case.made(run)] == []


def test_every_recipe_of_a_search_is_run():
    alone = {"april", "evogit", "experepair"}
    assert {case.recipe for case in CASES} | alone == {recipe.name for recipe in SEARCHES}
