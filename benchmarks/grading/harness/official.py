"""Runs SWE-bench's own harness as a subprocess, with its own interpreter and the options of its version.

It is never imported: it is installed in its own environment and needs Docker. It stores results under the id of a run,
regardless of the patches, so the id of a run is a digest of the rows and predictions.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agent.errors import RamifyError, UsageError
from agent.files import write_atomically
from benchmarks.data.instances import Instance
from benchmarks.data.predictions import Prediction, write_predictions
from benchmarks.grading.harness.reports import read_reports
from benchmarks.grading.verdicts import Verdict

TIMEOUT_S = 1800
FIND_S = 120
VERSION = "from importlib.metadata import version; print(version('swebench'))"
REMEDY = (
    "make it an environment of its own (python3 -m venv swebench; swebench/bin/pip install swebench) "
    "and name that with --harness-python swebench/bin/python"
)
NEEDED: Mapping[int, tuple[str, ...]] = {
    4: ("repo", "version", "base_commit", "test_patch"),
    5: ("image", "repo", "version", "log_parser", "eval_type", "eval_script"),
}
"""The fields of a row that each major version needs, besides the id and the lists of tests."""
PUBLISHED = re.compile(r"(?:docker\.io/)?(?P<namespace>[\w.-]+)/sweb\.eval\.x86_64\.[\w.-]+?(?::(?P<tag>[\w.-]+))?")
"""The name of an instance's image in version 4, in which only two parts can be chosen."""


class HarnessFailed(RamifyError):
    """The official harness wrote no report; the message has the end of its output."""


@dataclass(frozen=True, slots=True)
class Harness:
    """An installed harness."""

    python: str
    version: str

    @property
    def name(self) -> str:
        """The name with the version, for files and messages."""
        return f"swebench-{self.version}"

    @property
    def major(self) -> int:
        """The major version, which determines the command line."""
        return int(self.version.split(".", 1)[0])


def find(python: str) -> Harness:
    """Find the harness that an interpreter has. A relative path is made absolute, as the harness runs in other folders.

    Raises:
        UsageError: there is no such interpreter, it has no swebench, or the major version is not 4 or 5.
    """
    if os.sep in python:
        python = str(Path(python).absolute())
    try:
        done = subprocess.run(
            [python, "-c", VERSION], capture_output=True, text=True, timeout=FIND_S, env=_environment(), check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"cannot ask {python} for its swebench ({error}); {REMEDY}") from error
    if done.returncode != 0:
        raise UsageError(f"{python} has no swebench; {REMEDY}")
    harness = Harness(python, done.stdout.strip())
    if harness.major not in NEEDED:
        raise UsageError(f"{python} has swebench {harness.version}; only versions 4 and 5 are supported")
    return harness


def run(
    harness: Harness, instances: Sequence[Instance], predictions: Sequence[Prediction], folder: Path, *, workers: int
) -> list[Verdict]:
    """Grade with the harness. Returns its verdicts in the order of the predictions; results that it left in this folder
    before are reused.

    Raises:
        UsageError: the rows of the instances lack a field that this version needs.
        HarnessFailed: it ended without a report.
    """
    if not predictions:
        return []
    named = [replace(p, model_name_or_path=p.model_name_or_path or "unnamed") for p in predictions]
    rows = [_row(harness, instance) for instance in instances]
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / "dataset.json", json.dumps(rows, indent=1, sort_keys=True, default=str).encode())
    write_predictions(folder / "preds.json", named)
    run_id = _run_id(folder)
    images = [instance.task.workspace.image or "" for instance in instances]
    log = folder / "harness.log"
    with log.open("ab") as output:
        code = subprocess.run(
            command(harness, run_id, images, workers=workers),
            cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=_environment(), check=False,
        ).returncode  # fmt: skip
    summary = next(folder.glob(f"*.{run_id}.json"), None)  # named after one of the models
    if code != 0 or summary is None:
        tail = log.read_text(errors="replace").strip()[-1000:]
        raise HarnessFailed(f"{harness.name} ended with exit code {code} and no report; the end of {log}:\n{tail}")
    return read_reports(summary, folder / "logs" / "run_evaluation" / run_id, named)


def command(harness: Harness, run_id: str, images: Sequence[str], *, workers: int) -> list[str]:
    """The command line of the harness, for a folder with dataset.json and preds.json.

    Raises:
        UsageError: this version cannot use images with these names.
    """
    line = [harness.python, "-m", "swebench.harness.run_evaluation", "--dataset_name", "dataset.json"]
    line += ["--predictions_path", "preds.json", "--run_id", run_id]
    line += ["--max_workers", str(workers), "--timeout", str(TIMEOUT_S)]
    return [*line, *_images_of_4(images)] if harness.major == 4 else line


def _images_of_4(images: Sequence[str]) -> list[str]:
    """The options for images in version 4, which forms their names itself, with one namespace and one tag for all."""
    parts = set()
    for image in images:
        name = PUBLISHED.fullmatch(image) if image else None
        if image and name is None:
            raise UsageError(
                f"swebench 4 can use only images named NAMESPACE/sweb.eval.x86_64.ID, not {image}; use swebench 5"
            )
        parts.add((name["namespace"], name["tag"] or "latest") if name else ("swebench", "latest"))
    if len(parts) > 1:
        raise UsageError(f"swebench 4 takes images of one namespace and tag, not of {sorted(parts)}; use swebench 5")
    ((namespace, tag),) = parts
    return ["--namespace", namespace, "--instance_image_tag", tag]


def _row(harness: Harness, instance: Instance) -> Mapping[str, object]:
    """The row of an instance, after a check that it has all fields that the harness reads."""
    row = instance.hidden.row
    needed = ("instance_id", "FAIL_TO_PASS", "PASS_TO_PASS", *NEEDED[harness.major])
    if missing := [name for name in needed if name not in row]:
        other = "swebench 5 grades newer rows, swebench 4 those of before August 2026"
        raise UsageError(f"{harness.name} needs {', '.join(missing)}, which the row of {instance.id} lacks; {other}")
    return row


def _run_id(folder: Path) -> str:
    """The id of the run: a digest of the rows and patches, so that the results of an earlier run with the same ones are
    found."""
    content = b"".join((folder / name).read_bytes() for name in ("dataset.json", "preds.json"))
    return f"ramify-{hashlib.sha256(content).hexdigest()[:16]}"


def _environment() -> dict[str, str]:
    """The environment without the variables that point to Ramify's own packages."""
    ours = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYTHONSAFEPATH"}
    return {key: value for key, value in os.environ.items() if key not in ours}
