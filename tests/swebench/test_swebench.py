"""Predictions and verdicts against SWE-bench's own harness, 4.1.0 and 5.0.2, on a set of images made here."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import docker
import pytest

from benchmarks.data.instances import Instance
from benchmarks.data.predictions import Prediction, write_predictions
from benchmarks.data.sources import open_source
from benchmarks.grading.grading import grade
from benchmarks.grading.harness import official
from benchmarks.grading.harness.agreement import agreement
from benchmarks.grading.harness.official import Harness
from benchmarks.grading.harness.script import LOG_BYTES
from benchmarks.grading.verdicts import Verdict
from sandboxes import Limits
from sandboxes.docker.provider import docker_provider
from tests.swebench import fabricated

pytestmark = [pytest.mark.swebench, pytest.mark.docker, pytest.mark.timeout(900)]

LOAD = """
import json, sys
from swebench.harness.utils import get_predictions_from_file, load_swebench_dataset
preds = get_predictions_from_file(sys.argv[1], sys.argv[2], "test")
rows = load_swebench_dataset(sys.argv[2], "test")
print(json.dumps([{p["instance_id"]: p["model_patch"] for p in preds}, [row["instance_id"] for row in rows]]))
"""
RESOLVED = {"gold", "forging", "lying-well"}
"""Of the patches that grading leaves in place. Whoever forges what tests say from inside the process is believed by the
official harness in both versions, and so by ours; what a patch may touch is for the guard of a search to say."""
FOOLED = {"4.1.0": {"lying"}, "5.0.2": set[str]()}
"""Patches that a version of the official harness takes for solutions, and neither its next one nor ours does."""


@dataclass(frozen=True)
class Graded:
    """The set and what our grader says of a patch of each kind."""

    instances: Mapping[str, Instance]
    predictions: list[Prediction]
    verdicts: Mapping[str, Verdict]


@pytest.fixture(scope="module")
def graded(engine: docker.DockerClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graded]:
    patches = fabricated.patches(tmp_path_factory.mktemp("repository"))
    test_patch, gold = patches.pop("hidden").decode(), patches["gold"].decode()
    folder = tmp_path_factory.mktemp("set")
    with fabricated.image(engine, patches) as base:
        rows = [json.dumps(fabricated.row(kind, base, test_patch, gold)) + "\n" for kind in patches]
        (folder / "rows.jsonl").write_text("".join(rows))
        source = open_source(str(folder / "rows.jsonl"), folder / "clones")
        instances = dict(zip(patches, source.instances(), strict=True))
        with docker_provider(tmp_path_factory.mktemp("store") / "store", Limits(output_bytes=LOG_BYTES)) as provider:
            verdicts = {kind: grade(instances[kind], patch, source, provider) for kind, patch in patches.items()}
        yield Graded(
            instances, [Prediction(instances[kind].id, "ramify/m", patch) for kind, patch in patches.items()], verdicts
        )


def test_predictions_and_rows_are_read_by_its_own_loaders(harness: Harness, tmp_path: Path) -> None:
    patches = {"a": "diff --git a/caf\xe9 b/caf\xe9\n+x\r\n".encode(), "b": b"", "c": b"+caf\xe9\n"}
    write_predictions(tmp_path / "preds.json", [Prediction(name, "ramify/m", patch) for name, patch in patches.items()])
    (tmp_path / "rows.json").write_text(json.dumps([{"instance_id": "a"}]))
    argv = [harness.python, "-c", LOAD, "preds.json", "rows.json"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=True)
    loaded, rows = json.loads(done.stdout)
    assert {name: patch.encode("utf-8", "surrogateescape") for name, patch in loaded.items()} == patches
    assert rows == ["a"]


def test_our_grader_says_of_each_kind_of_patch_what_it_is(graded: Graded) -> None:
    statuses = {kind: verdict.status for kind, verdict in graded.verdicts.items()}
    assert {kind for kind, status in statuses.items() if status == "resolved"} == RESOLVED
    assert statuses["empty"] == "empty_patch"
    assert (statuses["not-applying"], statuses["cut"]) == ("apply_failed", "apply_failed")
    assert "exit code 1, but the log reports no failed test" in graded.verdicts["lying"].reason


def test_the_official_harness_says_the_same_but_where_it_is_known_to_be_fooled(
    harness: Harness, graded: Graded, tmp_path: Path
) -> None:
    instances, ours = list(graded.instances.values()), list(graded.verdicts.values())
    theirs = official.run(harness, instances, graded.predictions, tmp_path, workers=8)
    found = agreement(ours, theirs, harness.name)
    fooled = {graded.instances[kind].id for kind in FOOLED[harness.version]}
    assert {mine.instance_id for mine, _ in found.differing} == fooled
    assert found.unknown == ()
    unlike = [(a.instance_id, a.status, b.status) for a, b in found.pairs if a.status != b.status]
    assert {name for name, *_ in unlike} == fooled, unlike
