"""The folder that SWE-bench's leaderboard takes: patches, how they were graded and found, and what they are of.

Laws: answers that knew the failing tests are refused, and what is missing is named. Nothing is claimed that the batch
does not show: what only the person knows is left open, `null` or `[ ]`, and marked.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.errors import UsageError
from agent.files import write_atomically
from agent.learning.export.documents import export as write_documents
from benchmarks.batch.batch import read_identity
from benchmarks.data.predictions import Prediction, read_predictions
from benchmarks.grading.verdicts import Verdict, patch_digest, read_verdicts
from benchmarks.reports.report import evidence_folder, verdicts_file

__all__ = ["Submission", "export"]

NAME = re.compile(r"\d{8}_[\w.-]+")
LOGS = ("report.json", "test_output.txt", "patch.diff", "run_instance.log", "eval.sh")
"""What of the official harness's folder of an instance is taken along."""


@dataclass(frozen=True, slots=True)
class Submission:
    """What was written."""

    folder: Path
    model: str
    resolved: int
    """As the reports among the logs say."""
    instances: int
    ungraded: tuple[str, ...]
    """Instances with a patch and no report on it."""
    untold: tuple[str, ...]
    """Instances of which there is no trajectory."""


def export(batch: Path, folder: Path, *, site: str = "", report: str = "", authors: str = "") -> Submission:
    """Write the submission of a batch to a new folder, whose name has to be like `20261122_ramify`.

    Raises:
        UsageError: the folder has another name or is there, the solver saw the failing tests, or nothing was answered.
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
    said = {p.instance_id: _bytes(work / "logs" / p.instance_id / "report.json") for p in predictions}
    made = Submission(
        folder=folder,
        model=model,
        resolved=sum(bool(report) and json.loads(report)[name]["resolved"] for name, report in said.items()),
        instances=len(predictions),
        ungraded=tuple(p.instance_id for p in predictions if p.patch and not said[p.instance_id]),
        untold=_write_trajectories(batch, work / "trajs", [p.instance_id for p in predictions]),
    )
    _write_lines(work / "all_preds.jsonl", predictions)
    write_atomically(work / "metadata.yaml", _metadata(made, site, report, authors).encode())
    write_atomically(work / "README.md", _readme(made, report).encode())
    work.rename(folder)
    return made


def _model(batch: Path, folder: Path) -> str:
    """What the batch's predictions are filed under, where the batch may be submitted in that folder."""
    identity = read_identity(batch)
    if identity.mode != "hidden":
        known = "the leaderboard takes no answer that knew the failing tests"
        raise UsageError(f"{batch} was run with --reveal-tests: {known}")
    if not NAME.fullmatch(folder.name):
        raise UsageError(f"{folder.name} is not like 20261122_name, as the leaderboard calls its folders")
    if folder.exists():
        raise UsageError(f"{folder} is there already; name a new one")
    return identity.model


def _write_lines(path: Path, predictions: Sequence[Prediction]) -> None:
    keys = ("instance_id", "model_name_or_path", "model_patch")
    rows = [{key: prediction.to_row()[key] for key in keys} for prediction in predictions]
    write_atomically(path, "".join(json.dumps(row) + "\n" for row in rows).encode())


def _write_trajectories(batch: Path, folder: Path, names: Sequence[str]) -> tuple[str, ...]:
    """The entries that are missing."""
    folder.mkdir(parents=True)
    told = set()
    for name in names:
        if (batch / name / "journal.jsonl").is_file():
            for path in write_documents([batch / name], "traj", {}, folder):
                path.rename(folder / path.name)
                path.parent.rmdir()
                told.add(name)
    return tuple(name for name in names if name not in told)


def _write_logs(batch: Path, folder: Path, prediction: Prediction, verdict: Verdict | None) -> None:
    """The official harness's files on this very patch, where it came to a report; else the same of ours."""
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
    """The last evidence that we kept of grading the patch."""
    bundles = sorted(evidence.glob("[0-9]*"), key=lambda path: int(path.name))
    return next((bundle for bundle in reversed(bundles) if _bytes(bundle / "patch.diff") == patch), None)


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _report(verdict: Verdict, bundle: Path | None) -> Mapping[str, Any]:
    """A verdict as the official harness reports it."""
    said: dict[str, Any] = {
        "patch_is_None": False,
        "patch_exists": verdict.status != "empty_patch",
        "patch_successfully_applied": verdict.status in ("resolved", "unresolved"),
        "resolved": verdict.status == "resolved",
    }
    if bundle and said["patch_successfully_applied"]:
        facts = json.loads((bundle / "bundle.json").read_bytes())
        tests = {"FAIL_TO_PASS": verdict.failing, "PASS_TO_PASS": verdict.broken}
        said["tests_status"] = {key: _parted(facts[key.lower()], failed) for key, failed in tests.items()}
    return {verdict.instance_id: said}


def _parted(tests: Sequence[str], failed: Sequence[str]) -> dict[str, list[str]]:
    return {"success": [test for test in tests if test not in failed], "failure": list(failed)}


def _metadata(made: Submission, site: str, report: str, authors: str) -> str:
    """YAML of which every value is JSON, which is YAML, too; `null` and a mark where only the person knows."""
    info = {"name": f"Ramify ({made.model})", "site": site, "report": report, "authors": authors}
    tags = {"checked": False, "model": None, "org": None, "os_model": None, "os_system": None}
    return "\n".join(
        [
            "# Hold the keys against the leaderboard's own instructions before you send this.",
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


def _readme(made: Submission, report: str) -> str:
    rate = made.resolved / made.instances
    missing = [f"- not graded: {', '.join(made.ungraded)}"] if made.ungraded else []
    missing += [f"- no trajectory: {', '.join(made.untold)}"] if made.untold else []
    lines = [
        f"# Ramify ({made.model})",
        "",
        f"Resolved {made.resolved} of {made.instances} instances ({rate:.1%}).",
        "",
        "Ramify searches a tree of sandbox states and returns one patch an instance.",
        f"Report: {report or 'to be named'}",
        "",
        "What this batch shows is ticked. Tick the rest yourself, where you know that it is so.",
        "",
        "- [ ] Is a pass@1 submission: one batch was run, and none was chosen among several",
        "- [x] Does not use SWE-bench test knowledge (`PASS_TO_PASS`, `FAIL_TO_PASS`): the batch was run with",
        "  the tests hidden",
        "- [ ] Does not use the `hints` field in SWE-bench: Ramify reads no such column; the statements are the set's",
        "- [ ] Does not look solutions up on the web: commands of the search have no network; set-up commands have",
        "  one, and so may what a model's provider does on its side",
        *(["", "Missing:", "", *missing] if missing else []),
        "",
    ]
    return "\n".join(lines)
