"""A batch as a dataset: two tables and a card that says what they are."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from agent.budget import Usage
from agent.errors import UsageError
from benchmarks.batch.batch import Attempt, Batch, Identity
from benchmarks.cli.app import app
from benchmarks.reports.publishing import publish
from tests.exporting import chat_tree, small_tree

FACTS = {"status": "solved", "nodes": 5, "measurements": 4, "seconds": 1.5, "stop": "solved", "cost_usd": 0.25}


@pytest.fixture
def batch(tmp_path: Path) -> Path:
    """Three instances: two came to their end, one of them graded; the world failed the third."""
    folder = tmp_path / "batch"
    made = Batch(folder, Identity("/sets/dev", "revealed", "ramify/mutate/auto", "abc", 7))
    chat_tree(folder / "a").close()
    small_tree(folder / "b").close()
    small_tree(folder / "c").close()
    for name, state in (("a", "done"), ("b", "limit"), ("c", "infra")):
        patch = b"" if state == "infra" else b"diff\xff"
        made.record(Attempt(name, state, "revealed", patch, facts=FACTS, usage=Usage(model_calls=2)))
    made.close()
    return folder


def table(out: Path, name: str) -> list[dict[str, Any]]:
    parquet = pytest.importorskip("pyarrow.parquet")
    return parquet.read_table(out / "data" / f"{name}.parquet").to_pylist()


@pytest.fixture
def out(batch: Path, tmp_path: Path) -> Path:
    pytest.importorskip("pyarrow")
    done = CliRunner().invoke(app, ["export", str(batch), "--out", str(tmp_path / "out")], catch_exceptions=False)
    assert done.stdout.splitlines() == [
        f"       3  {tmp_path}/out/data/instances.parquet",
        f"       5  {tmp_path}/out/data/rollouts.parquet",
    ]
    return tmp_path / "out"


def test_every_instance_is_a_row(out: Path) -> None:
    rows = {row["instance_id"]: row for row in table(out, "instances")}
    assert {name: row["state"] for name, row in rows.items()} == {"a": "done", "b": "limit", "c": "infra"}
    assert (rows["a"]["mode"], rows["a"]["model_name_or_path"]) == ("revealed", "ramify/mutate/auto")
    assert (rows["a"]["resolved"], rows["a"]["verdict"], rows["a"]["cost_usd"]) == (None, None, 0.25)
    assert rows["a"]["model_patch"] == "diff\N{REPLACEMENT CHARACTER}"
    assert json.loads(rows["b"]["usage"])["model_calls"] == 2


def test_every_rollout_of_those_that_ended_is_one_too(out: Path) -> None:
    rows = table(out, "rollouts")
    assert [row["trajectory_id"] for row in rows] == ["a/1", "a/2", "b/2", "b/3", "b/4"]
    assert [row["resolved"] for row in rows] == [True, False, False, True, False]
    assert json.loads(rows[0]["messages"][0])["content"] == "Repair it."


def test_the_card_names_the_tables_and_how_tests_were_shown(out: Path) -> None:
    _, front, body = (out / "README.md").read_text().split("---\n", 2)
    found = {each["config_name"]: each["data_files"] for each in yaml.safe_load(front)["configs"]}
    assert found.keys() == {"instances", "rollouts"}
    assert all((out / file["path"]).is_file() for files in found.values() for file in files)
    assert "3 instances, revealed tests" in body
    assert "saw the failing tests" in body
    assert "0 of 0 graded instances resolved; 3 are not graded" in body
    assert sorted(path.name for path in out.iterdir()) == ["README.md", "data"]


def test_secrets_are_taken_out_and_the_same_batch_gives_the_same_bytes(
    batch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    monkeypatch.setenv("SOME_API_KEY", "Repair it.")
    for name in ("one", "two"):
        publish(batch, tmp_path / name)
    files = [path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file()]
    assert all((tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes() for file in files)
    assert json.loads(table(tmp_path / "one", "rollouts")[0]["messages"][0])["content"] == "[SOME_API_KEY]"


def test_without_pyarrow_nothing_is_written(batch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(UsageError, match="pyarrow"):
        publish(batch, tmp_path / "out")
    assert not (tmp_path / "out").exists()
