"""Recipes of systems that are about data, training and evaluation: their commands run and make what only they make."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agent.actions import Edit
from agent.cli.app import app
from agent.errors import UsageError
from agent.learning.export import Row
from tests.scripted import answer
from agent.recipes import everything, named
from agent.run.run import Run
from agent.run.tree.evaluation import Evaluation
from benchmarks.cli.app import app as bench
from tests.exporting import TASK, Recorder, chat_tree, edit, failing_call, small_tree
from tests.halves import HIGH, LOW, SPOILT, halves
from tests.instances import make_benchmark, write
from tests.memories import REPAIR, ZERO, recorded, report, state, task
from tests.projects import commit
from tests.recipe_cases import Case, solve
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
    """Two searches of a judged model for one task. In the first, a wrong edit is followed by half a repair, and that by
    the other half; in the second, the first line of work solves the task."""
    folder = tmp_path_factory.mktemp("searched")
    repo = halves(folder / "repo")
    options = ["search.name=mcts", "value.name=judge", "search.widen=1", "budget.max_nodes=9"]
    runs = {"long": ([SPOILT], [LOW], [HIGH]), "short": ([LOW, HIGH],)}
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
    for memory in ("TRIAL", "FILE"):
        assert "took 1 skill of" in carry_out("trace2skill", f"memory skills load skills --memory {memory}")


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
