"""SWE-bench's own harness as a sub-process: found by its interpreter, asked in the words of its version.

It is never imported: it lives in an environment of its own, with Docker. Its results are kept by the name of a run,
whatever the patches; so the name that we give a run is the digest of what it is about.
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

__all__ = ["Harness", "HarnessFailed", "command", "find", "run"]

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
"""Fields of a row, by major version, besides the id and the lists of tests."""
PUBLISHED = re.compile(r"(?:docker\.io/)?(?P<namespace>[\w.-]+)/sweb\.eval\.x86_64\.[\w.-]+?(?::(?P<tag>[\w.-]+))?")
"""The name that version 4 gives the image of an instance, of which only two parts can be chosen."""


class HarnessFailed(RamifyError):
    """The official harness came to no report; the message has the end of what it said."""


@dataclass(frozen=True, slots=True)
class Harness:
    """An installed one."""

    python: str
    version: str

    @property
    def name(self) -> str:
        """With its version, as files and people know it."""
        return f"swebench-{self.version}"

    @property
    def major(self) -> int:
        """What its command line depends on."""
        return int(self.version.split(".", 1)[0])


def find(python: str) -> Harness:
    """The harness of an interpreter, which is run in other folders than this one later on.

    Raises:
        UsageError: there is no such interpreter, no swebench in it, or one of another major version than 4 and 5.
    """
    if os.sep in python:
        python = str(Path(python).absolute())
    try:
        done = subprocess.run(
            [python, "-c", VERSION], capture_output=True, text=True, timeout=FIND_S, env=_environment(), check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"{python} cannot be asked for its swebench ({error}); {REMEDY}") from error
    if done.returncode != 0:
        raise UsageError(f"{python} has no swebench; {REMEDY}")
    found = Harness(python, done.stdout.strip())
    if found.major not in NEEDED:
        raise UsageError(f"{python} has swebench {found.version}; its command line is known of versions 4 and 5")
    return found


def run(
    harness: Harness, instances: Sequence[Instance], predictions: Sequence[Prediction], folder: Path, *, workers: int
) -> list[Verdict]:
    """Its verdicts, in the order of the predictions; what it had come to in this folder before is not run again.

    Raises:
        UsageError: the rows of the instances lack what this version needs.
        HarnessFailed: it ended without its report.
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
    with log.open("ab") as said:
        code = subprocess.run(
            command(harness, run_id, images, workers=workers),
            cwd=folder, stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=_environment(), check=False,
        ).returncode  # fmt: skip
    summary = next(folder.glob(f"*.{run_id}.json"), None)  # it bears the name of one of the models
    if code != 0 or summary is None:
        tail = log.read_text(errors="replace").strip()[-1000:]
        raise HarnessFailed(f"{harness.name} ended with exit code {code} and no report; the end of {log}:\n{tail}")
    return read_reports(summary, folder / "logs" / "run_evaluation" / run_id, named)


def command(harness: Harness, run_id: str, images: Sequence[str], *, workers: int) -> list[str]:
    """Its command line, to be run in a folder with dataset.json and preds.json.

    Raises:
        UsageError: the images have names that this version does not look for.
    """
    line = [harness.python, "-m", "swebench.harness.run_evaluation", "--dataset_name", "dataset.json"]
    line += ["--predictions_path", "preds.json", "--run_id", run_id]
    line += ["--max_workers", str(workers), "--timeout", str(TIMEOUT_S)]
    return [*line, *_images_of_4(images)] if harness.major == 4 else line


def _images_of_4(images: Sequence[str]) -> list[str]:
    """Version 4 makes the names of images itself, from a namespace and a tag that are the same for all."""
    parts = set()
    for image in images:
        found = PUBLISHED.fullmatch(image) if image else None
        if image and found is None:
            raise UsageError(
                f"swebench 4 looks for NAMESPACE/sweb.eval.x86_64.ID only, not for {image}; take swebench 5"
            )
        parts.add((found["namespace"], found["tag"] or "latest") if found else ("swebench", "latest"))
    if len(parts) > 1:
        raise UsageError(f"swebench 4 takes images of one namespace and tag, not of {sorted(parts)}; take swebench 5")
    ((namespace, tag),) = parts
    return ["--namespace", namespace, "--instance_image_tag", tag]


def _row(harness: Harness, instance: Instance) -> Mapping[str, object]:
    """The row of an instance, which has what the harness will read of it."""
    row = instance.hidden.row
    needed = ("instance_id", "FAIL_TO_PASS", "PASS_TO_PASS", *NEEDED[harness.major])
    if missing := [name for name in needed if name not in row]:
        other = "swebench 5 grades newer rows, swebench 4 those of before August 2026"
        raise UsageError(f"{harness.name} needs {', '.join(missing)}, which the row of {instance.id} lacks; {other}")
    return row


def _run_id(folder: Path) -> str:
    """Names what is graded: equal for the same patches and rows, so that their results are found again."""
    content = b"".join((folder / name).read_bytes() for name in ("dataset.json", "preds.json"))
    return f"ramify-{hashlib.sha256(content).hexdigest()[:16]}"


def _environment() -> dict[str, str]:
    """The environment, without what points to our own packages."""
    ours = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYTHONSAFEPATH"}
    return {key: value for key, value in os.environ.items() if key not in ours}
