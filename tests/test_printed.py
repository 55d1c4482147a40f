"""The comparison of trees with and without what tests printed, from functions to the table, without a model."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks.flywheel import printed
from benchmarks.flywheel.ranked_edits import read
from benchmarks.self_training.scores import Played


@pytest.fixture(scope="module")
def out(namespaces: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("printed") / "out"
    sizes = {"functions": 6, "mutants": 8, "held-out-functions": 4, "held-out-mutants": 4, "plain-functions": 8}
    options = [part for name, size in sizes.items() for part in (f"--{name}", str(size))]
    box = ["-c", "sandbox.kind=namespace", "-c", 'sandbox.env={PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"}']
    assert printed.main(["--out", str(folder), "--workers", "1", "--width", "30", *options, *box]) == 0
    return folder


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "train.jsonl").open()]


@pytest.mark.slow
def test_the_rows_differ_in_what_the_tests_printed_alone(out: Path) -> None:
    told, bare = rows(out / "rows"), rows(out / "rows-blind")
    assert len(told) == len(bare) > 3
    for one, other in zip(told, bare, strict=True):
        prompt = one["prompt"][0]["content"]
        assert re.search(r"<printed>test_part_\d: AssertionError: assert \(.*\) == \(.*\)\n", prompt)
        assert re.sub(r"(?m)^<printed>.*\n", "", prompt) == other["prompt"][0]["content"]
        assert one["completion"] == other["completion"]
    policies = [row["provenance"]["policies"] for row in (told[0], bare[0])]
    assert policies == [["edit/1/mutate/printed"], ["edit/1/mutate"]]


@pytest.mark.slow
def test_what_the_tests_print_of_held_out_bugs_is_kept_for_the_model_that_is_to_see_it(out: Path) -> None:
    bugs = [bug for path in out.glob("tried/apart/*/repositories.jsonl") for bug in read(path)]
    assert bugs
    assert all(bug.printed and not bug.blind.printed and bug.edits == bug.blind.edits for bug in bugs)
    scores = json.loads((out / "scores.json").read_text())
    assert {name: len(seeds) for name, seeds in scores.items()} == dict.fromkeys(
        ["uniform", "mutate", "counts", "counts+mutate"], 1
    )
    assert all(set(played) == {bug.row["instance_id"] for bug in bugs} for [played] in scores.values())


def test_a_bug_counts_with_the_mean_of_its_trainings() -> None:
    assert printed.mean_of([{"a": Played(True, 1)}, {"a": Played(True, 4)}]) == {"a": Played(True, 2.5)}
