"""A round of self-training with a chat policy: real searches in real sandboxes, against a served model.

Where vLLM and TRL would be started, other programs are: one serves what its model folder says, the other writes one.
"""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from agent.budget import Usage
from agent.cli.app import app
from agent.errors import UsageError
from agent.learning.training import TrainingSettings
from agent.run.events import Spent
from agent.run.run import Run
from benchmarks.self_training.cost import planned
from benchmarks.self_training.difficulty import rollout_rates
from benchmarks.self_training.playing import Conditions
from benchmarks.self_training.policies import Policy, Registry
from benchmarks.self_training.scores import FEWEST, Played, compare_solved
from benchmarks.self_training.turning import Learning, Round, turn
from tests.environments import free_port
from tests.exporting import Recorder, edit
from tests.instances import make_benchmark

ROOT = Path(__file__).parent.parent
SERVES = f"""
import json, pathlib, sys, threading
if sys.argv[1] == "-c":
    raise SystemExit
sys.path.insert(0, {str(ROOT)!r})
from tests.scripted_server import ScriptedServer, says
told = dict(zip(sys.argv[3::2], sys.argv[4::2]))
right = json.loads((pathlib.Path(told["--model"]) / "config.json").read_text())["right"]
begun, lines = 0, iter(())

def script(body):
    global begun, lines
    assert body["model"] == told["--served-model-name"]
    if not body.get("tools"):
        return says("A summary.")
    if not any(message["role"] == "assistant" for message in body["messages"]):
        new, begun = right[begun % len(right)], begun + 1
        edit = {{"path": "calc.py", "old_str": "a - b", "new_str": new}}
        lines = iter([says("So.", ("edit", edit), ("run_tests", {{}}), logprobs=[-0.5])])
    return next(lines, says("Done.", ("submit", {{}}), logprobs=[-0.5]))

with ScriptedServer(script, int(told["--port"])):
    threading.Event().wait()
"""
"""Each line of work makes the next of the changes that the model folder names, in turns."""
TRAINS = """
import json, pathlib, sys
if sys.argv[1] == "-c":
    raise SystemExit
order = json.loads(pathlib.Path(sys.argv[2]).read_text())
out = pathlib.Path(sys.argv[2]).parent
(out / "model").mkdir(exist_ok=True)
(out / "model" / "config.json").write_text('{"right": ["a + b"]}')
(out / "metrics.json").write_text('{"steps": 1}')
"""


def program(path: Path, text: str) -> Path:
    """Something that stands where an interpreter is expected."""
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def checkpoint(folder: Path, *changes: str) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"right": changes}))
    return folder


def request(folder: Path, model: Path, method: Any, rollouts: int = 4) -> Round:
    tasks, held = (
        make_benchmark(folder / name, ids=(name,), test_cmd="python3 -m pytest -q -p no:cacheprovider", requirements=[])
        for name in ("task", "held")
    )
    box = ("sandbox.kind=namespace", "sandbox.env={PYTEST_DISABLE_PLUGIN_AUTOLOAD='1'}")
    settings = (*box, "measure.baseline_runs=1")
    learning = Learning(
        "chat",
        TrainingSettings(max_steps=1, in_order=True),
        program(folder / "trains", TRAINS),
        str(program(folder / "serves", SERVES)),
        free_port(),
        method=method,
    )
    return Round(tasks, held, learning, Conditions(20, settings=settings, rollouts=rollouts), policy=model)


class TestThePlanOfCost:
    def test_estimates_by_earlier_rounds_what_a_round_takes(self, tmp_path: Path) -> None:
        """Each earlier search has two states and 300 tokens; five tasks, and two held-out bugs, each twice."""
        assert "What that takes is not known" in planned(tmp_path, "v2", 5, 2, Conditions(9), 40)
        for part in ("tasks", "before", "after"):
            made = Recorder(tmp_path / "v1" / part / "bug")
            for value in (0.2, 0.3):
                made.add(0, value, [edit(str(value))])
            made.run.record(Spent(Usage(tokens_in=250, tokens_out=50), "policy", 0))
            made.run.close()
        (tmp_path / "v1" / "training").mkdir()
        (tmp_path / "v1" / "training" / "metrics.json").write_text('{"steps": 30, "seconds": 600.0}')
        assert planned(tmp_path, "v2", 5, 2, Conditions(9), 40) == (
            "v2 will search 5 tasks once and 2 held-out bugs twice: at most 81 states; at most 40 steps of training. "
            "By earlier rounds: about 18 states, 2700 tokens and 0 s of searching one after another; "
            "the last training took 30 steps and 10 min"
        )

    def test_knows_of_a_training_only_where_there_is_one(self, tmp_path: Path) -> None:
        assert "; no training." in planned(tmp_path, "v1", 5, 2, Conditions(9), None)
        assert "; one epoch of training." in planned(tmp_path, "v1", 5, 2, Conditions(9), -1)


@pytest.mark.namespace
class TestARound:
    @pytest.mark.slow
    def test_collects_trains_serves_plays_and_compares_and_goes_on_after_a_kill(
        self, namespaces: Path, tmp_path: Path
    ) -> None:
        """The model is wrong every second time, and the one that is trained on its pairs never."""
        model, told = checkpoint(tmp_path / "model", "a * b", "a + b"), list[str]()
        asked, registry = request(tmp_path, model, "dpo"), tmp_path / "registry"
        policy = turn(asked, registry, told.append)
        assert (policy.name, policy.kind, policy.parent, policy.path) == ("v1", "chat", "v0", "v1/training/model")
        order = json.loads((registry / "v1" / "training" / "order.json").read_text())
        assert (order["method"], order["formats"], order["model"]) == ("dpo", ["preference"], str(model))
        assert order["in_order"]
        assert json.loads((registry / "v1" / "rows" / "manifest.json").read_text())["easy_first"]
        pairs = [json.loads(line) for line in (registry / "v1" / "rows" / "train.jsonl").read_text().splitlines()]
        assert len(pairs) == policy.data["rows"] >= 1
        assert all(pair["provenance"]["logprobs"] == [[-0.5]] * 2 for pair in pairs)
        assert (policy.scores["won"], policy.scores["lost"], policy.scores["difference"]) == (1, 0, 1.0)
        assert told[0].startswith(
            "v1 will search 1 task once and 1 held-out bug twice: at most 60 states; at most 1 step "
        )
        assert told[2] == f"v1: rolled back to v0: 1 bugs are too few to tell, give {FEWEST}"
        assert not policy.kept
        for place, rollouts in (("tasks/task", 4), ("before/held", 1), ("after/held", 1)):
            with Run.read(registry / "v1" / place) as run:
                assert len(run.rollouts()) == rollouts
        assert rollout_rates([registry / "v1" / "tasks" / "task"]) == {"task": 0.5}
        log = registry / "policies.jsonl"
        log.write_text(log.read_text().splitlines()[0] + "\n")  # as if it was killed before its end
        assert turn(asked, registry) == policy
        with pytest.raises(UsageError, match=r"began with the policy chat .*/model, not with mutate"):
            Registry(registry)

    @pytest.mark.slow
    def test_learns_nothing_from_tasks_that_are_always_solved(self, namespaces: Path, tmp_path: Path) -> None:
        asked = request(tmp_path, checkpoint(tmp_path / "model", "a + b"), "sft", rollouts=2)
        with pytest.raises(UsageError, match=r"from the 1 tasks of .*: 0 were never solved, and 1 nearly always"):
            turn(asked, tmp_path / "registry")


def played(solved: int, of: int = FEWEST) -> dict[str, Played]:
    return {f"bug-{n}": Played(n < solved, 5) for n in range(of)}


class TestWhatIsKept:
    def test_is_a_policy_that_solves_more_beyond_chance(self) -> None:
        better = compare_solved(played(5), played(15))
        assert (better.difference, better.won, better.lost, better.convincing) == (0.5, 10, 0, True)
        assert 0 < better.interval[0] < 0.5 < better.interval[1]

    @pytest.mark.parametrize(("before", "after", "of"), [(10, 11, FEWEST), (10, 10, FEWEST), (0, 10, FEWEST - 1)])
    def test_is_none_that_may_be_so_by_chance(self, before: int, after: int, of: int) -> None:
        assert not compare_solved(played(before, of), played(after, of)).convincing

    def test_may_be_recorded(self, tmp_path: Path) -> None:
        registry = Registry(tmp_path, Policy("v0", "chat", "/models/base"))
        registry.add(Policy("v1", "chat", scores=compare_solved(played(5), played(15)).to_json()))
        registry.close()
        assert Registry(tmp_path, Policy("v0", "chat", "/models/base")).present.name == "v1"


def test_the_settings_may_not_name_the_policy(tmp_path: Path) -> None:
    conditions = Conditions(settings=("policy.name=openai/other",), rollouts=2)
    with pytest.raises(UsageError, match=r"policy\.name is chosen by the round itself"):
        turn(Round(tmp_path, tmp_path, Learning("chat"), conditions, policy=tmp_path), tmp_path / "r")


def command(folder: Path, *more: str) -> Result:
    """`ramify round` with the request's own programs."""
    asked = request(folder, model := checkpoint(folder / "model", "a * b", "a + b"), "sft")
    words = ["round", folder / "registry", "--tasks", folder / "task", "--held-out", folder / "held"]
    words += ["--policy", model, "--learn", "sft", "--rollouts", 2, "--max-steps", 1, "--max-tried", 20, *more]
    words += ["--train-python", folder / "trains", "--serve-python", folder / "serves"]
    words += ["--port", asked.learning.port, *(word for each in asked.conditions.settings for word in ("-c", each))]
    return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)


@pytest.mark.slow
@pytest.mark.namespace
def test_a_round_by_the_command_trains_in_any_order(namespaces: Path, tmp_path: Path) -> None:
    done = command(tmp_path)
    assert done.exit_code == 0, done.output
    made = tmp_path / "registry" / "v1"
    assert not json.loads((made / "rows" / "manifest.json").read_text())["easy_first"]
    assert not json.loads((made / "training" / "order.json").read_text())["in_order"]


@pytest.mark.parametrize("more", [["--easy-first"], []], ids=["easy first", "any order"])
def test_the_command_asks_for_an_order_where_that_is_wanted(
    more: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[Round]()

    def turned(each: Round, *_: object) -> Policy:
        asked.append(each)
        return Policy("v1", "chat")

    monkeypatch.setattr("benchmarks.self_training.turning.turn", turned)
    assert command(tmp_path, *more).exit_code == 0
    assert [each.learning.settings.in_order for each in asked] == [bool(more)]
