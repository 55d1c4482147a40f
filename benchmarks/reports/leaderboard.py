"""Writes a submission for SWE-bench's leaderboard: patches, logs of grading, trajectories and a description.

Invariants: a batch with revealed tests is refused, and missing parts are named. Nothing is claimed that the batch does
not show: what only the submitter knows is left open, as `null` or `[ ]`, and marked.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.counting import counted
from agent.errors import UsageError
from agent.files import write_atomically
from agent.learning.export.documents import export as write_documents
from benchmarks.batch.batch import read_identity
from benchmarks.data.predictions import Prediction, read_predictions
from benchmarks.grading.verdicts import Verdict, patch_digest, read_verdicts
from benchmarks.reports.report import evidence_folder, verdicts_file

NAME = re.compile(r"\d{8}_[\w.-]+")
LOGS = ("report.json", "test_output.txt", "patch.diff", "run_instance.log", "eval.sh")
"""The files that are copied from the official harness's folder of an instance."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A submission that was written."""

    folder: Path
    model: str
    resolved: int
    """The number of resolved instances, according to the reports among the logs."""
    instances: int
    ungraded: tuple[str, ...]
    """Instances with a patch but without a report on it."""
    without_trajectory: tuple[str, ...]
    """Instances without a trajectory."""


def export(batch: Path, folder: Path, *, site: str = "", report: str = "", authors: str = "") -> Submission:
    """Write the submission of a batch to a new folder with a name like `20261122_ramify`.

    Raises:
        UsageError: the folder has another kind of name or exists, the tests were revealed, or there is no answer.
    """
    model = _model(batch, folder)
    predictions = read_predictions(batch / "preds.json")
    if not predictions:
        raise UsageError(f"{batch / 'preds.json'} has no answer to submit")
    verdicts = read_verdicts(verdicts_file(batch / "preds.json"))
    work = folder.with_name(f".{folder.name}")
    shutil.rmtree(work, ignore_errors=True)
    for prediction in predictions:
        verdict = verdicts.get((prediction.instance_id, patch_digest(prediction.patch)))
        _write_logs(batch, work / "logs" / prediction.instance_id, prediction, verdict)
    reports = {p.instance_id: _bytes(work / "logs" / p.instance_id / "report.json") for p in predictions}
    submission = Submission(
        folder=folder,
        model=model,
        resolved=sum(bool(report) and json.loads(report)[name]["resolved"] for name, report in reports.items()),
        instances=len(predictions),
        ungraded=tuple(p.instance_id for p in predictions if p.patch and not reports[p.instance_id]),
        without_trajectory=_write_trajectories(batch, work / "trajs", [p.instance_id for p in predictions]),
    )
    _write_lines(work / "all_preds.jsonl", predictions)
    write_atomically(work / "metadata.yaml", _metadata(submission, site, report, authors).encode())
    write_atomically(work / "README.md", _readme(submission, report).encode())
    work.rename(folder)
    return submission


def _model(batch: Path, folder: Path) -> str:
    """The model name of the batch's predictions, after a check that the batch may be submitted in that folder."""
    identity = read_identity(batch)
    if identity.mode != "hidden":
        raise UsageError(
            f"{batch} was run with --reveal-tests: the leaderboard takes no answer that knew the failing tests"
        )
    if not NAME.fullmatch(folder.name):
        raise UsageError(f"--out {folder.name}: the leaderboard requires a folder name such as 20261122_name")
    if folder.exists():
        raise UsageError(f"{folder} already exists; name a new one")
    return identity.model


def _write_lines(path: Path, predictions: Sequence[Prediction]) -> None:
    keys = ("instance_id", "model_name_or_path", "model_patch")
    rows = [{key: prediction.to_row()[key] for key in keys} for prediction in predictions]
    write_atomically(path, "".join(json.dumps(row) + "\n" for row in rows).encode())


def _write_trajectories(batch: Path, folder: Path, names: Sequence[str]) -> tuple[str, ...]:
    """Write the trajectories. Returns the instances that have none."""
    folder.mkdir(parents=True)
    written = set()
    for name in names:
        if (batch / name / "journal.jsonl").is_file():
            for path in write_documents([batch / name], "traj", {}, folder):
                path.rename(folder / path.name)
                path.parent.rmdir()
                written.add(name)
    return tuple(name for name in names if name not in written)


def _write_logs(batch: Path, folder: Path, prediction: Prediction, verdict: Verdict | None) -> None:
    """Write the official harness's files for exactly this patch if the harness made a report, else the corresponding
    files of Ramify's own grading."""
    folder.mkdir(parents=True)
    official = _official(batch, prediction)
    if official is not None:
        for name in LOGS:
            if (official / name).is_file():
                shutil.copyfile(official / name, folder / name)
        return
    if verdict is None:
        return
    bundle = _bundle(evidence_folder(batch / "preds.json") / prediction.instance_id, prediction.patch)
    write_atomically(folder / "patch.diff", prediction.patch)
    write_atomically(folder / "report.json", json.dumps(_report(verdict, bundle), indent=4).encode())
    if bundle and (log := _bytes(bundle / "log.txt")):
        write_atomically(folder / "test_output.txt", log)


def _official(batch: Path, prediction: Prediction) -> Path | None:
    folders = batch.glob(f"preds.swebench-*/logs/run_evaluation/*/*/{prediction.instance_id}")
    reported = (folder for folder in sorted(folders) if (folder / "report.json").is_file())
    same = [folder for folder in reported if _bytes(folder / "patch.diff") == prediction.patch]
    return same[-1] if same else None


def _bundle(evidence: Path, patch: bytes) -> Path | None:
    bundles = sorted(evidence.glob("[0-9]*"), key=lambda path: int(path.name))
    return next((bundle for bundle in reversed(bundles) if _bytes(bundle / "patch.diff") == patch), None)


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _report(verdict: Verdict, bundle: Path | None) -> Mapping[str, Any]:
    """A verdict in the format of the official harness's report."""
    report: dict[str, Any] = {
        "patch_is_None": False,
        "patch_exists": verdict.status != "empty_patch",
        "patch_successfully_applied": verdict.status in ("resolved", "unresolved"),
        "resolved": verdict.status == "resolved",
    }
    if bundle and report["patch_successfully_applied"]:
        facts = json.loads((bundle / "bundle.json").read_bytes())
        tests = {"FAIL_TO_PASS": verdict.failing, "PASS_TO_PASS": verdict.broken}
        report["tests_status"] = {key: _divided(facts[key.lower()], failed) for key, failed in tests.items()}
    return {verdict.instance_id: report}


def _divided(tests: Sequence[str], failed: Sequence[str]) -> dict[str, list[str]]:
    return {"success": [test for test in tests if test not in failed], "failure": list(failed)}


def _metadata(submission: Submission, site: str, report: str, authors: str) -> str:
    """The YAML file, with values as JSON, which is also YAML; `null` and a mark where only the submitter knows."""
    info = {"name": f"Ramify ({submission.model})", "site": site, "report": report, "authors": authors}
    tags = {"checked": False, "model": None, "org": None, "os_model": None, "os_system": None}
    return "\n".join(
        [
            "# Check the keys against the leaderboard's own instructions before you submit this.",
            "info:",
            *(_entry(key, value or None) for key, value in info.items()),
            "tags:",
            *(_entry(key, value) for key, value in tags.items()),
            "  system:",
            _entry("  attempts", None),
            "",
        ]
    )


def _entry(key: str, value: str | bool | None) -> str:
    return f"  {key}: {json.dumps(value)}{' # to be filled in' if value is None else ''}"


def _readme(submission: Submission, report: str) -> str:
    rate = submission.resolved / submission.instances
    missing = [f"- not graded: {', '.join(submission.ungraded)}"] if submission.ungraded else []
    missing += [f"- no trajectory: {', '.join(submission.without_trajectory)}"] if submission.without_trajectory else []
    lines = [
        f"# Ramify ({submission.model})",
        "",
        f"Resolved {submission.resolved} of {counted(submission.instances, 'instance')} ({rate:.1%}).",
        "",
        "Ramify searches a tree of sandbox states and returns one patch for each instance.",
        f"Report: {report or 'to be named'}",
        "",
        "What this batch shows is ticked. Tick the rest yourself if you know that it is true.",
        "",
        "- [ ] Is a pass@1 submission: only one batch was run, not chosen among several",
        "- [x] Does not use SWE-bench test knowledge (`PASS_TO_PASS`, `FAIL_TO_PASS`): the batch was run with",
        "  the tests hidden",
        "- [ ] Does not use the `hints` field in SWE-bench: Ramify reads no such column; the statements are the set's",
        "- [ ] Does not look solutions up on the web: commands of the search have no network; set-up commands do,",
        "  and so may a model's provider on its side",
        *(["", "Missing:", "", *missing] if missing else []),
        "",
    ]
    return "\n".join(lines)
