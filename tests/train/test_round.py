"""A whole round in real sandboxes: too slow for the default tests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent.learning.training import TrainingSettings
from agent.run.run import Run
from agent.settings import SandboxSettings
from benchmarks.data.synthetic.making import Recipe
from benchmarks.data.synthetic.splitting import Splitting
from benchmarks.data.synthetic.writing import synthesize
from benchmarks.self_training.playing import Conditions
from benchmarks.self_training.policies import Policy
from benchmarks.self_training.scores import read
from benchmarks.self_training.turning import Learning, Round, turn
from tests.environments import free_port
from tests.projects import commit

pytestmark = [pytest.mark.train, pytest.mark.namespace, pytest.mark.timeout(1800)]

SIGNS = """def grow(x, step):
    if x < step:
        return x
    return x + step


def shrink(x, step):
    if x > step:
        return x - step
    return x
"""
TESTS = """from signs import grow, shrink


def test_grow():
    assert grow(5, 2) == 7 and grow(1, 2) == 1


def test_grow_at_the_edge():
    assert grow(2, 2) == 4


def test_shrink():
    assert shrink(5, 2) == 3 and shrink(2, 2) == 2
"""


@pytest.fixture(scope="module")
def bugs(namespaces: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sources of one bug each, `tasks.jsonl` and `held.jsonl`."""
    folder = tmp_path_factory.mktemp("bugs")
    box = SandboxSettings(kind="namespace", env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})
    repo = commit(folder / "signs", {"signs.py": SIGNS, "test_signs.py": TESTS})
    synthesize([repo], Recipe(count=2, a_function=1, sandbox=box), Splitting(lines=0), folder / "bugs")
    lines = (folder / "bugs" / "train.jsonl").read_text().splitlines()
    for name, line in zip(("tasks", "held"), lines, strict=True):
        (folder / "bugs" / f"{name}.jsonl").write_text(line + "\n")
    return folder / "bugs"


def once_around(bugs: Path, learning: Learning, registry: Path) -> tuple[Policy, list[str]]:
    settings = ("sandbox.kind=namespace", "sandbox.env={PYTEST_DISABLE_PLUGIN_AUTOLOAD='1'}")
    conditions = Conditions(max_tried=6, width=20, settings=settings)
    told: list[str] = []
    return turn(Round(bugs / "tasks.jsonl", bugs / "held.jsonl", learning, conditions), registry, told.append), told


def test_a_round_collects_learns_compares_and_records(bugs: Path, tmp_path: Path) -> None:
    """One turn with counts, in real sandboxes. Of a single bug nothing is concluded."""
    policy, told = once_around(bugs, Learning("counts"), tmp_path)
    assert (policy.name, policy.kind, policy.parent) == ("v1", "counts", "v0")
    assert policy.data["runs"] == 1
    assert (tmp_path / policy.path).is_file()
    assert read(tmp_path / "v1" / "after").keys() == read(tmp_path / "v1" / "before").keys()
    recorded = [json.loads(line) for line in (tmp_path / "policies.jsonl").read_text().splitlines()]
    assert [(each["name"], each["kept"]) for each in recorded] == [("v0", True), ("v1", False)]
    assert told[1] == "v1: searched 1 task with v0"
    assert told[2] == "v1: rolled back to v0: 1 bugs are too few to tell, give 20"
    assert told[3] == "v1: --held-out and --tasks have bugs of the same repositories: signs"
    assert recorded[1]["data"]["tasks"] == str(bugs / "tasks.jsonl")
    assert recorded[1]["scores"]["held_out"] == str(bugs / "held.jsonl")


def test_a_round_trains_a_model_and_serves_it_to_the_searches_it_is_compared_by(
    bugs: Path, python: Path, vllm_python: Path, tmp_path: Path
) -> None:
    """A tiny model from nothing, of the one edit that was right: each step hands on to the next."""
    tiny = {"width": 64, "layers": 2, "vocabulary": 400, "positions": 1024}
    wanted = TrainingSettings(max_steps=2, batch=1, max_length=512, prompt_loss=True, log_steps=1, cpu=True, tiny=tiny)
    learning = Learning("model", wanted, python, str(vllm_python), free_port(), cpu=True)
    policy, _ = once_around(bugs, learning, tmp_path)
    assert (policy.kind, policy.path, policy.data["rows"], policy.data["steps"]) == ("model", "v1/training/model", 1, 2)
    (bug,) = read(tmp_path / "v1" / "after")
    with Run.read(tmp_path / "v1" / "after" / bug) as run:
        assert run.usage.model_calls > 0
        assert {node.policy_id for node in run.tree if node.parents} == {"edit/1/openai/edit-v1+mutate"}
