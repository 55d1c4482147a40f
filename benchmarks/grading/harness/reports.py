"""Reads the reports of the official harness: `<model>.<run>.json`, and `report.json` in the folder of each instance."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from agent.measure import SuiteReport
from benchmarks.data.predictions import Prediction
from benchmarks.grading.verdicts import Verdict, describe, patch_digest

SCHEMA = 2
REFUSED = ">>>>> Patch Apply Failed"
TIMED_OUT = re.compile(r"Test timed out after \d+ seconds")
RAISED = re.compile(r"^[\w.]*(?:Error|Exception|NotFound)\b.*", re.MULTILINE)
"""The last line of a traceback."""
LOG_BYTES = 1 << 20


def read_reports(summary: Path, logs: Path, predictions: Iterable[Prediction]) -> list[Verdict]:
    """A verdict for each prediction, in order. If the harness reports an error and does not blame the patch, the
    verdict is `error`.

    Raises:
        ValueError: the summary has an unknown schema.
    """
    report = json.loads(summary.read_bytes())
    if report.get("schema_version") != SCHEMA:
        raise ValueError(f"{summary} has schema_version {report.get('schema_version')!r}; only {SCHEMA} is supported")
    completed, empty = set(report["completed_ids"]), set(report["empty_patch_ids"])
    return [_verdict(p, completed, empty, logs) for p in predictions]


def _verdict(prediction: Prediction, completed: set[str], empty: set[str], logs: Path) -> Verdict:
    name, digest = prediction.instance_id, patch_digest(prediction.patch)
    if name in empty:
        return Verdict(name, "empty_patch", digest, prediction.mode, "no patch")
    folder = logs / prediction.model_name_or_path.replace("/", "__") / name
    if name not in completed:
        return _failure(Verdict(name, "error", digest, prediction.mode), folder / "run_instance.log")
    return _graded(Verdict(name, "unresolved", digest, prediction.mode), folder / "report.json")


def _failure(verdict: Verdict, log: Path) -> Verdict:
    """The verdict on an instance without a report, with the reason from its log."""
    text = log.read_bytes()[-LOG_BYTES:].decode(errors="replace") if log.exists() else ""
    if REFUSED in text:
        return replace(verdict, status="apply_failed", reason=text.rpartition(REFUSED)[2].strip(": \n").split("\n")[0])
    if late := TIMED_OUT.search(text):
        return replace(verdict, status="unresolved", reason=late[0])
    raised: list[str] = RAISED.findall(text)
    return replace(verdict, reason=raised[-1] if raised else f"there is no report, and {log} does not say why")


def _graded(verdict: Verdict, report: Path) -> Verdict:
    result: Mapping[str, Any] = json.loads(report.read_bytes())[verdict.instance_id]
    if result["resolved"]:
        return replace(verdict, status="resolved")
    tests = result.get("tests_status")
    if tests is None:
        why = result.get("infra_failure_reason")
        return replace(verdict, reason=f"the log of the tests is not believed{f' ({why})' if why else ''}")
    failing, broken = (tuple(tests[key]["failure"]) for key in ("FAIL_TO_PASS", "PASS_TO_PASS"))
    return replace(verdict, reason=describe(SuiteReport(), failing, broken), failing=failing, broken=broken)
