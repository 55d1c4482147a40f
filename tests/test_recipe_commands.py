"""Recipes of systems that are about data, training and evaluation: their commands run and make what only they make."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count, cycle
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agent.actions import Edit
from agent.actions.tools import as_call
from agent.cli.app import app
from agent.errors import UsageError
from agent.learning.export import Row
from agent.learning.memory import Memory
from agent.recipes import everything, named
from agent.run.run import Run
from agent.run.tree.evaluation import Evaluation
from benchmarks.cli.app import app as bench
from tests.exporting import TASK, Recorder, chat_tree, edit, failing_call, small_tree
from tests.halves import HIGH, LOW, SPOILT, halves
from tests.instances import make_benchmark, write
from tests.memories import REPAIR, ZERO, recorded, report, state, task
from tests.projects import commit
from tests.recipe_cases import Case, answering, solve
from tests.scripted import answer
from tests.scripted_server import Reply, ScriptedServer, says
from tests.test_docs import command_of
from tests.test_sources_folders import REFACTORBENCH

LINES = sorted({(recipe.name, line) for recipe in everything() for line in recipe.command})
TEST_CALC = "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n"
QUICK = ("--sandbox", "namespace", "-c", 'sandbox.env={PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"}')


@pytest.mark.parametrize(("name", "line"), LINES, ids=[f"{name}: {line[:60]}" for name, line in LINES])
def test_every_command_of_a_recipe_is_one_that_parses(name, line):
    stand_ins = {"STATE": "1", "RUN...": "RUN"}
    command, words = command_of([stand_ins.get(word, word) for word in shlex.split(line)[1:]])
    command.make_context(command.name, words)


def carry_out(recipe: str, begins: str, *, more: Sequence[object] = (), code: int = 0, **given: object) -> str:
    """What a command of a recipe prints, the one that begins so, with these in place of its words."""
    (line,) = (line for line in named(recipe).command if line.startswith(f"ramify {begins}"))
    words = [str(given.get(word.removesuffix("..."), word)) for word in shlex.split(line)[1:]]
    inside = words[0] == "bench"
    quick = QUICK if words[:2] in (["bench", "run"], ["bench", "grade"]) else ()
    done = CliRunner().invoke(
        bench if inside else app, [*words[inside:], *map(str, more), *quick], catch_exceptions=False
    )
    assert done.exit_code == code, done.output
    return done.stdout


def judged_siblings(folder: Path) -> Run:
    """Two children of the root, asked the same: one that the tests and one that a judge holds for better."""
    made = Recorder(folder)
    prompt = [{"role": "user", "content": "Repair it."}]
    for value, judge, new in ((0.9, 0.3, "measured"), (0.1, 0.5, "judged")):
        step = made.asks(0, prompt, answer(new, ("edit", {"path": "a", "old": "0", "new": new})), Edit("a", "0", new))
        made.add(0, value, [step], evaluation=Evaluation(value, parts={"judge": judge}), policy_id="chat/tiny@1")
    return made.close()


def siblings_of_solved(folder: Path) -> Run:
    """Two answers to one prompt, of which one solved the task, and neither is much better by its value."""
    made = Recorder(folder)
    prompt = [{"role": "user", "content": "Repair it."}]
    for value, new in ((1.0, "right"), (0.9, "nearly")):
        step = made.asks(0, prompt, answer(new, ("edit", {"path": "a", "old": "0", "new": new})), Edit("a", "0", new))
        made.add(0, value, [step], policy_id="chat/tiny@1")
    return made.close()


def advantages(row: Row, *names: str) -> list[float]:
    return [row[f"{name}_advantage"] for name in names]


def is_blend(row: Row) -> bool:
    fork, whole = advantages(row, "fork", "trajectory")
    return row["advantage"] == pytest.approx((fork + whole) / 2) and fork != pytest.approx(whole)


def is_gain(row: Row) -> bool:
    (gain,) = advantages(row, "tree")
    return row["advantage"] == gain not in advantages(row, "fork", "trajectory")


def is_sum(row: Row) -> bool:
    whole, state = advantages(row, "trajectory", "anchor")
    return row["advantage"] == pytest.approx(whole + state) and state != 0


def mixes(row: Row) -> bool:
    return row["scores"] == pytest.approx([0.5 * 0.9 + 0.5 * 0.3, 0.5 * 0.1 + 0.5 * 0.5])


def trained(row: Row) -> list[bool]:
    return [message.get("train", True) for message in row["messages"] if message["role"] == "assistant"]


EXPORTS: dict[str, tuple[Callable[[Path], Run], Callable[[Row], object]]] = {
    "rest-mcts": (small_tree, lambda row: (row["value"], row["leaves"]) == (0.5, 2)),
    "agent-q": (judged_siblings, mixes),
    "r-mcts": (small_tree, lambda row: row["stitched"] and row["visits"] == [1, 2, 3]),
    "agent-r": (small_tree, lambda row: row["stitched"] and row["error"] == 2),
    "mcts-dpo": (chat_tree, lambda row: row["provenance"]["policies"] == ["chat/tiny@1"] and row["margin"] > 0.2),
    "tp-llama": (siblings_of_solved, lambda row: "right" in json.dumps(row["chosen"]) and row["margin"] < 0.2),
    "treecua": (chat_tree, lambda row: row["provenance"]["nodes"] == [0, 1, 2]),
    "portool": (small_tree, is_blend),
    "treeps-rag": (small_tree, is_gain),
    "gigpo": (small_tree, is_sum),
    "proact": (small_tree, lambda row: [branch["value"] for branch in row["branches"]] == [1.0, 0.0]),
    "kat-coder": (failing_call, lambda row: trained(row) == [False, True]),
}
"""A recorded run, and the row that only the format and the options of the recipe make of it."""


def exported(
    name: str, begins: str, run: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, *more: object
) -> list[Row]:
    """The rows that a command of a recipe makes of a run; none where it says that there are none."""
    folder.mkdir()
    monkeypatch.chdir(folder)
    try:
        carry_out(name, begins, RUN=run, more=more)
    except UsageError as why:
        if "nothing was written" not in str(why):
            raise
        return []
    (out,) = folder.iterdir()
    return [json.loads(line) for file in out.glob("*.jsonl") for line in file.read_text().splitlines()]


@pytest.mark.parametrize("name", EXPORTS)
def test_the_commands_of_a_recipe_make_the_rows_that_only_they_make(name, tmp_path, monkeypatch):
    make, only = EXPORTS[name]
    make(tmp_path / "run").close()
    formats = {"rest-mcts": "prm", "kat-coder": "sft-masked", "proact": "lookahead"}
    begins = f"export RUN... --format {formats[name]}" if name in formats else "export"
    rows = exported(name, begins, tmp_path / "run", tmp_path / "rows", monkeypatch)
    assert any(only(row) for row in rows), rows


@pytest.mark.parametrize("more", [(), ("--set", "calls=0")])
def test_portool_counts_a_failed_call_against_a_step_where_the_outcomes_are_equal(more, tmp_path, monkeypatch):
    made = Recorder(tmp_path / "run")
    for line in ("well", "ill"):
        made.add(0, 0.1, [edit(line, ok=line == "well")])
    made.close().close()
    rows = exported("portool", "export", tmp_path / "run", tmp_path / "rows", monkeypatch, *more)
    well, ill = (row["advantage"] for row in rows)
    assert (well > ill) == (not more)


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two searches of a judged model for one task. In the first, a wrong edit is followed by half a repair, for which
    the model first calls for an edit that cannot be made, and that by the other half; in the second, the first line of
    work solves the task."""
    folder = tmp_path_factory.mktemp("searched")
    repo = halves(folder / "repo")
    options = ["search.name=mcts", "value.name=judge", "search.widen=1", "budget.max_nodes=9"]
    impossible = Edit("halves.py", "nothing like this", "x")
    runs = {"long": ([SPOILT], [impossible, LOW], [HIGH]), "short": ([LOW, HIGH],)}
    for name, lines in runs.items():
        solve(repo, folder / name, Case("", len, lines, options, tested=True), "").close()
    return [folder / name for name in runs]


def mixes_judgement(row: Row) -> bool:
    """Whether the score of the wrong edit lies half way between its value and what the judge says of it."""
    return row["scores"][1] == pytest.approx((0.208 + 0.4) / 2)


SEARCHED: list[tuple[str, Callable[[Row], object], str]] = [
    ("mcts-dpo", lambda row: not row["provenance"]["exact"], "prompts=same"),
    ("tp-llama", lambda row: not row["provenance"]["exact"], "prompts=same"),
    ("treecua", lambda row: row.get("other"), "runs=one"),
    ("agent-q", mixes_judgement, "mix=1.0"),
    ("portool", is_blend, "w=1.0"),
    ("treeps-rag", is_gain, "credit=fork"),
    ("gigpo", is_sum, "w=0"),
]
"""What is so of a row of the two searches, and the option without which it is so of none."""


@pytest.mark.slow
@pytest.mark.namespace
@pytest.mark.parametrize(("name", "only", "off"), SEARCHED, ids=[f"{name} {off}" for name, _, off in SEARCHED])
def test_rows_of_a_search_are_as_the_options_of_a_recipe_make_them(name, only, off, searched, tmp_path, monkeypatch):
    long, short = searched
    on = exported(name, "export", long, tmp_path / "on", monkeypatch, short)
    without = exported(name, "export", long, tmp_path / "off", monkeypatch, short, "--set", off)
    assert (any(map(only, on)), any(map(only, without))) == (True, False), on


@pytest.mark.slow
@pytest.mark.namespace
@pytest.mark.parametrize(
    ("name", "form", "only"),
    [
        ("rest-mcts", "prm", lambda row: (row["provenance"]["nodes"], row["value"], row["leaves"]) == ([0, 3], 0.5, 2)),
        ("r-mcts", "traversal", lambda row: row["visits"] == [1, 2, 3, 4, 5]),
        ("proact", "lookahead", lambda row: row["branches"] == [{"node": 1, "value": 0.0}, {"node": 3, "value": 0.5}]),
        ("kat-coder", "sft-masked", lambda row: trained(row) == [False, True]),
    ],
)
def test_the_commands_of_a_recipe_make_their_rows_of_a_search(name, form, only, searched, tmp_path, monkeypatch):
    rows = exported(name, f"export RUN... --format {form}", searched[0], tmp_path / "rows", monkeypatch)
    assert any(map(only, rows)), rows


def repairing(half: Edit) -> Callable[[Mapping[str, Any]], Reply]:
    """A model that repairs one half, runs the tests, and submits, whatever was done before."""
    turns = cycle([says("Now.", as_call(half), ("run_tests", {})), says("Done.", ("submit", {}))])
    asked = answering(Case("", len, ([half],)))
    return lambda body: next(turns) if body.get("tools") else asked(body)


@pytest.mark.slow
@pytest.mark.namespace
def test_treecua_goes_on_in_a_second_run_from_the_best_state_of_the_first(tmp_path, monkeypatch):
    """Every line of work of the first run repairs one half, and every one of the second the other half. A model does
    not read how many seconds a test run took, so that both runs ask the same."""
    monkeypatch.setattr("agent.engine.feedback._counts", lambda report: f"{len(report.outcomes)} tests ran.")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    (tmp_path / "issue.md").write_text("Both halves are wrong.")
    given = {"ISSUE": "issue.md", ".": halves(tmp_path / "repo"), "MODEL": "openai/tiny"}
    for name, half in (("one", LOW), ("two", HIGH)):
        with ScriptedServer(repairing(half)) as server:
            more = ("--goal-failing", "--max-nodes", 6, "-c", f"model.base_url={server.url}", *QUICK)
            places = {"RUNS/N": f"runs/{name}", "begin_from=RUNS": "begin_from=runs"}
            carry_out("treecua", "solve", more=more, code=int(name == "one"), **given, **places)
    with Run.read(tmp_path / "runs" / "one") as one, Run.read(tmp_path / "runs" / "two") as two:
        assert two.note(0, "begins from") == {"run": "one", "node": 1}
        assert two.tree[1].state_hash == one.tree[1].state_hash
        assert two.tree.children(1)[0].evaluation.solved
        assert all("judge" in node.evaluation.parts for node in one.tree if node.parents)
        assert {author for _, author in one.summaries} == {"openai/tiny"}
    rows = exported(
        "treecua", "export", tmp_path / "runs" / "one", tmp_path / "rows", monkeypatch, tmp_path / "runs" / "two"
    )
    (pair,) = (row for row in rows if row.get("other") == "one")
    assert "return max" in json.dumps(pair["chosen"])
    assert "submit" in json.dumps(pair["rejected"])
    assert pair["provenance"]["exact"], "both were asked the same, one in each run"


def changed(line: str) -> str:
    return f"diff --git a/means.py b/means.py\n--- a/means.py\n+++ b/means.py\n@@ -1 +1 @@\n-0\n+{line}\n"


def test_kat_coder_rewards_a_line_by_the_nearest_of_several_accepted_patches(tmp_path, monkeypatch):
    made = Recorder(tmp_path / "run")
    for line in ("return total / max(len(xs), 1)", "x"):
        made.add(0, 0.1, [edit(line)], patch=made.run.journal.put_blob(changed(line).encode()))
    made.close().close()
    accepted = tmp_path / "accepted.jsonl"
    lines = ("return total / (len(xs) or 1)", "return total / max(len(xs), 1)")
    accepted.write_text("".join(json.dumps({"instance_id": TASK.id, "patch": changed(line)}) + "\n" for line in lines))
    monkeypatch.chdir(tmp_path)
    carry_out(
        "kat-coder",
        "export RUN... --format grpo-tree",
        RUN=tmp_path / "run",
        **{"references=ACCEPTED": f"references={accepted}"},
    )
    near, far = (
        json.loads(line)["reward"] for line in (tmp_path / "rewarded" / "train.jsonl").read_text().splitlines()
    )
    assert near == 1.0
    assert 0 < far < 0.8


def test_the_solved_paths_of_a_run_go_with_the_values_of_its_steps(tmp_path, monkeypatch):
    small_tree(tmp_path / "run").close()
    (path,) = exported("rest-mcts", "export RUN... --format sft", tmp_path / "run", tmp_path / "paths", monkeypatch)
    assert "three" in json.dumps(path["messages"])
    assert "four" not in json.dumps(path["messages"])


@pytest.mark.parametrize("more", [["--easy-first"], []])
def test_rows_of_tasks_that_are_solved_more_often_come_first(more, tmp_path):
    """`hard` is solved by one of two rollouts in each of two runs, `easy` by both."""
    runs = []
    for number, (name, *values) in enumerate((("hard", 1.0, 0.1), ("easy", 1.0, 1.0), ("hard", 0.1, 1.0))):
        made = Recorder(tmp_path / f"run{number}", replace(TASK, id=name))
        for place, value in enumerate(values):
            made.add(0, value, [edit(f"{name} {number} {place}")], line_end="submitted", terminal=True)
        made.close().close()
        runs.append(str(tmp_path / f"run{number}"))
    argv = ["export", *runs, "--format", "sft", "--out", str(tmp_path / "rows"), *more]
    assert CliRunner().invoke(app, argv, catch_exceptions=False).exit_code == 0
    rows = [json.loads(line) for line in (tmp_path / "rows" / "train.jsonl").read_text().splitlines()]
    order = ["easy", "easy", "hard", "hard"] if more else ["hard", "easy", "easy", "hard"]
    assert [row["provenance"]["task"] for row in rows] == order


def test_codetracer_names_the_step_at_which_a_run_went_wrong(tmp_path):
    broken = state(1, 0, 0.0, report({"t.py::zero": ZERO, "t.py::some": "E   assert 0"}), changes=("< 0", "< 9"))
    run = recorded(tmp_path / "run", task("x"), states=(REPAIR[0], broken), status="no_patch", verified=False)
    told = carry_out("codetracer", "diagnose", RUN=run)
    assert "onset    state 1: a regression that was never fixed\n" in told
    assert "why      state 1 broke t.py::some, which had passed" in told
    assert f"ramify fork {run} 0 --hint" in told


def test_trace2skill_makes_a_directory_of_what_a_model_learned_of_each_run_and_merged(tmp_path, monkeypatch):
    runs = [recorded(tmp_path / name, task(f"{name}([]) divides")) for name in ("mean", "median")]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    merged = "Ask what a reduction does with nothing."

    def said(body: Mapping[str, Any]) -> Reply:
        asked = body["messages"][-1]["content"]
        if "say the same, or are cases of one thing" in asked:
            return says(json.dumps({"skills": [{"lessons": [1, 2], "text": merged}], "contradictions": []}))
        lesson = f"A {'median' if 'median' in asked else 'mean'} of nothing is asked for."
        return says(json.dumps({"operations": [{"op": "add", "text": lesson}]}))

    with ScriptedServer(said) as server:
        more = (runs[1], "-c", f"model.base_url={server.url}")
        carry_out("trace2skill", "memory skills build", RUN=runs[0], MODEL="openai/tiny", more=more)
    (skill,) = (line for line in Path("skills/SKILL.md").read_text().splitlines() if line.startswith("- "))
    assert re.fullmatch(rf"- {re.escape(merged)} \[mean-\S+, median-\S+\]", skill), skill
    assert "imported 1 skill of" in carry_out("trace2skill", "memory skills load")


@pytest.mark.slow
@pytest.mark.namespace
def test_trace2skill_keeps_a_skill_that_helps_with_a_task_that_was_held_back(tmp_path, monkeypatch):
    """The model repairs the held-back task only if it is told to look at the sign. What it learns from its own run on
    that task can then not be tried on it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    lesson = "Look at the sign first."
    make_benchmark(tmp_path / "HELD-OUT", test_cmd="python3 -m pytest -q -p no:cacheprovider", requirements=[])
    run = recorded(tmp_path / "earlier", task("mean([]) divides"), insights=[lesson])
    repair = ("edit", {"path": "calc.py", "old": "a - b", "new": "a + b"})
    guess = ("edit", {"path": "calc.py", "old": "a - b", "new": "b - a"})

    def said(body: Mapping[str, Any]) -> Reply:
        if not body.get("tools"):
            return says(json.dumps({"operations": [{"op": "add", "text": lesson}]}))
        if body["messages"][-1]["role"] == "tool":
            return says("Done.", ("submit", {}))
        return says("Now.", repair if lesson in json.dumps(body["messages"]) else guess, ("submit", {}))

    with ScriptedServer(said) as server:
        url = ("-c", f"model.base_url={server.url}")
        given = {"RUN": run, "MODEL": "openai/tiny"}
        carry_out("trace2skill", "memory skills build", more=url, **given)
        carry_out("trace2skill", "memory skills load")
        for name in ("without", "with"):
            carry_out("trace2skill", f"bench run HELD-OUT --out {name} --model", more=(*url, "--max-nodes", 6), **given)
            carry_out("trace2skill", f"bench grade {name} ")
        told = carry_out("trace2skill", "bench keep")
        carry_out("trace2skill", "memory skills build", more=url, **given | {"RUN": "with/calc-1"})
    assert "A resolves 0 of 1, B 1" in told
    assert "kept: 1 skill taken into FILE" in told
    assert [each.issue.task_id for each in Memory(Path("TRIAL")).store.sources().values()] == [
        "task of mean([]) divides"
    ]
    with pytest.raises(UsageError, match="calc-1 is not held back"):
        carry_out("trace2skill", "bench keep")


@pytest.mark.slow
@pytest.mark.namespace
def test_light_rollouts_from_a_state_are_what_the_critic_of_proact_learns_of_it(tmp_path, monkeypatch):
    """The third of the rollouts from state 1 solves the task."""
    repo = commit(tmp_path / "repo", {"calc.py": "def add(a, b):\n    return a - b\n", "test_calc.py": TEST_CALC})
    tries = count()

    def reply(asked):
        line = "return a + b" if (number := next(tries)) == 3 else f"return {number}"
        write = {"path": "calc.py", "content": f"def add(a, b):\n    {line}\n"}
        return says("Try.", ("write", write), ("run_tests", {}))

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    (tmp_path / "issue.md").write_text("add subtracts")
    with ScriptedServer(reply) as server:
        more = (
            "--goal-test",
            "test_calc.py::test_add",
            "-c",
            f"model.base_url={server.url}",
            "--out",
            tmp_path / "run",
            *QUICK,
        )
        given = {"ISSUE": "issue.md", ".": repo, "MODEL": "openai/tiny", "20": 2}
        carry_out("proact", "solve", more=more, code=1, **given)
        carry_out("proact", "fork", RUN=tmp_path / "run", STATE=1, **{"4": 3})
        carry_out("proact", "resume", RUN=tmp_path / "run", **{"24": 5})
    carry_out("proact", "export RUN... --format verifier", RUN=tmp_path / "run")
    first, *_ = (json.loads(line) for line in (tmp_path / "critic" / "train.jsonl").read_text().splitlines())
    assert (first["leaves"], first["value"]) == (3, pytest.approx(1 / 3))


@pytest.mark.slow
@pytest.mark.namespace
def test_a_batch_of_claw_eval_live_is_graded_and_its_verdicts_follow_from_their_evidence(tmp_path):
    folder = make_benchmark(tmp_path / "set", test_cmd="python3 -m pytest -q -p no:cacheprovider", requirements=[])
    given = {"SOURCE": folder, "DIR": tmp_path / "out", "MODEL": "mutate"}
    carry_out("claw-eval-live", "bench run", **given, more=("--reveal-tests", "--recipe", "mcgs", "--max-nodes", 20))
    identity = json.loads((tmp_path / "out" / "batch.json").read_text())
    assert (identity["recipe"], len(identity["suite"]) > 0) == ("mcgs", True)
    carry_out("claw-eval-live", "bench grade", **given)
    assert "ok  calc-1/1: resolved" in carry_out("claw-eval-live", "bench regrade", **given)
    assert identity["suite"] in carry_out("claw-eval-live", "bench report", **given)


@pytest.mark.slow
@pytest.mark.namespace
def test_a_refactoring_is_graded_by_its_program_at_the_level_of_the_recipe(tmp_path):
    write(tmp_path / "bench", REFACTORBENCH)
    given = {"FOLDER:lazy": f"{tmp_path / 'bench'}:lazy", "DIR": tmp_path / "out", "MODEL": "mutate"}
    carry_out("refactorbench", "bench run", **given)
    assert json.loads((tmp_path / "out" / "batch.json").read_text())["source"].endswith(":lazy")
    assert carry_out("refactorbench", "bench grade", **given).startswith("revealed tests: 1 ")
