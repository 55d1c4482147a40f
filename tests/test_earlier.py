"""What earlier versions wrote is read, and means what it meant."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agent.cli.app import app
from agent.config import load, restore
from agent.run.run import Run
from agent.settings import Settings
from benchmarks.batch.batch import read_attempts, read_identity
from benchmarks.cli.app import app as bench

EARLIER = Path(__file__).parent / "earlier"
FACTS = json.loads((EARLIER / "facts.json").read_text())


def counted(run: Run) -> dict[str, object]:
    """The same of a run as in `facts.json`."""
    tree, ended = run.tree, run.ended
    assert ended is not None
    return {
        "nodes": len(tree),
        "visits": [tree.visits(node.id) for node in tree],
        "value_sums": [tree.value_sum(node.id) for node in tree],
        "expandable": [node.id for node in tree if tree.expandable(node.id)],
        "edges": sorted(map(list, tree.structure.edges())),
        "attempts": [len(tree.attempts(node.id)) for node in tree],
        "best": tree.best().id,
        "solved": [node.id for node in tree if run.solved(node.id)],
        "measurements": run.usage.measurements,
        "ended": [ended.status, ended.stop, ended.best],
        "rollouts": [[list(each.path), each.best, each.round] for each in run.rollouts()],
        "ballots": len(run.ballots),
        "summaries": len(run.summaries),
    }


@pytest.mark.parametrize("name", FACTS)
def test_a_journal_gives_the_same_tree(name):
    with Run.read(EARLIER / "runs" / name) as run:
        assert counted(run) == FACTS[name]
        assert isinstance(restore(run.started.settings), Settings)
        assert all(run.journal.get_blob(path.name) for path in (run.journal.directory / "blobs").iterdir())


@pytest.mark.parametrize("name", FACTS)
def test_a_run_is_shown(name):
    done = CliRunner().invoke(app, ["show", str(EARLIER / "runs" / name)])
    assert done.exit_code == 0, done.exception
    assert done.stdout.count("\n") >= FACTS[name]["nodes"]


def test_an_export_gives_the_same_rows_with_what_is_said_of_them_since(tmp_path):
    run = str(EARLIER / "runs" / "rounds")
    done = CliRunner().invoke(app, ["export", run, "--format", "trajectories", "--out", str(tmp_path / "rows")])
    assert done.exit_code == 0, done.exception
    rows, before = (
        [json.loads(line) for line in (folder / "rows" / "train.jsonl").read_text().splitlines()]
        for folder in (tmp_path, EARLIER)
    )
    assert all("outcome" in row["provenance"] and not row["provenance"].pop("outcome") for row in rows)
    assert rows == before


def test_a_batch_is_reported():
    attempts = read_attempts(EARLIER / "night")
    assert read_identity(EARLIER / "night").mode == "revealed"
    assert {name: each.facts["status"] for name, each in attempts.items()} == {
        "QuixBugs-median": "no_patch",
        "QuixBugs-shipping": "solved",
    }
    done = CliRunner().invoke(bench, ["report", str(EARLIER / "night")])
    assert done.exit_code == 0, done.exception
    assert "QuixBugs-shipping" in done.stdout


def test_a_file_of_settings_is_read_and_says_the_defaults():
    assert load([EARLIER / "settings.toml"]) == Settings()
