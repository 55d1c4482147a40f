"""A verdict: whether a patch passes the hidden tests, and the rules that derive it from a report.

Rules: every test that has to pass must have passed, and a skipped test has not passed. A run of the tests that is not
valid (it did not finish, collected nothing, or its exit code contradicts its results) resolves nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from agent.counting import counted
from agent.measure import Outcome, SuiteReport
from benchmarks.data.harness_logs import FAILURES, LOG, judge_log
from benchmarks.data.instances import Hidden, Instance
from benchmarks.data.jsonl_ledger import Ledger, read_rows

RULES = 3
"""The version of the rules. It is increased when the same patch may get another verdict."""

Status = Literal["resolved", "unresolved", "empty_patch", "apply_failed", "error"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of grading one patch."""

    instance_id: str
    status: Status
    patch_sha256: str
    mode: str = "unknown"
    """Whether the patch was found with the tests `hidden` or `revealed`."""
    reason: str = ""
    failing: tuple[str, ...] = ()
    """Tests of FAIL_TO_PASS that did not pass."""
    broken: tuple[str, ...] = ()
    """Tests of PASS_TO_PASS that did not pass."""
    seconds: float = 0.0

    @property
    def resolved(self) -> bool | None:
        """Whether the patch resolves the instance; None: grading failed, which says nothing about the patch."""
        return None if self.status == "error" else self.status == "resolved"

    @property
    def summary(self) -> str:
        """The status, with the reason if there is one."""
        return f"{self.status} ({self.reason})" if self.reason else self.status

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Verdict:
        """The verdict in a line of JSON. Raises TypeError for any other object."""
        fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in row.items() if k != "key"}
        return cls(**fields)


@dataclass(frozen=True, slots=True)
class Finding:
    """What grading a patch observed, before a verdict is derived from it."""

    report: SuiteReport | None = None
    """The report on the hidden tests; None: they were not run."""
    refused: str = ""
    """Why the patch could not be applied."""
    fault: str = ""
    """What failed for reasons outside the patch."""
    state: str = ""
    """The digest of the base state."""
    log: bytes = b""
    """The output of an eval script, if one was run, or of the set's own program that reads the logs."""
    left: Mapping[str, bytes] = field(default_factory=dict)
    """The logs that the set's program read, by their paths in the sandbox; the eval script's own output has the empty
    path."""


Verdicts = Mapping[tuple[str, str], Verdict]
"""Verdicts by instance id and digest of the patch."""


def decide(instance_id: str, patch: bytes, hidden: Hidden, finding: Finding) -> Verdict:
    """Derive the verdict from a finding alone."""
    verdict = Verdict(instance_id, "unresolved", patch_digest(patch))
    if finding.fault:
        return replace(verdict, status="error", reason=finding.fault)
    if finding.refused:
        return replace(verdict, status="apply_failed", reason=finding.refused)
    if finding.report is None:
        return replace(verdict, status="empty_patch", reason="no patch")
    failing, broken = judge(finding.report, hidden)
    status: Status = "resolved" if finding.report.valid and not failing and not broken else "unresolved"
    reason = describe(finding.report, failing, broken)
    return replace(verdict, status=status, reason=reason, failing=failing, broken=broken)


def judge(report: SuiteReport, hidden: Hidden) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The tests of FAIL_TO_PASS and those of PASS_TO_PASS that did not pass; all of them if the run is not valid."""
    if report.adapter == LOG:
        return judge_log(report, hidden)
    if hidden.outcomes:
        return _differing(report, hidden.outcomes), ()
    failing = tuple(t for t in hidden.fail_to_pass if not _passed(report, t))
    return failing, tuple(t for t in hidden.pass_to_pass if not _passed(report, t))


def _differing(report: SuiteReport, expected: Mapping[str, str]) -> tuple[str, ...]:
    """The tests whose outcome is not as expected, and the failed tests without an expected outcome."""
    if not report.valid:
        return tuple(expected)
    ended = {".".join(test.split("::")[1:]): outcome for test, outcome in report.outcomes.items()}
    ended.pop("", None)
    others = (test for test, outcome in ended.items() if test not in expected and outcome in FAILURES)
    return (*(test for test, end in expected.items() if _word(ended.get(test)) != end), *others)


def _word(outcome: Outcome | None) -> str:
    return "FAILED" if outcome is Outcome.TIMEOUT else "" if outcome is None else outcome.name


def full_ids(test_id: str, report: SuiteReport) -> list[str]:
    """The ids in a report that match a published id. Published sets cut some ids of parametrised tests at a space; such
    an id matches every id that begins with it."""
    if test_id in report.outcomes:
        return [test_id]
    is_cut = "[" in test_id and not test_id.endswith("]")
    return [each for each in report.outcomes if each.startswith(f"{test_id} ")] if is_cut else []


def _passed(report: SuiteReport, test_id: str) -> bool:
    """Whether a test passed; for a file, class or function, all of its tests."""
    return all(map(report.passed, full_ids(test_id, report) or [test_id]))


def describe(report: SuiteReport, failing: tuple[str, ...], broken: tuple[str, ...]) -> str:
    """Why a report does not resolve an instance, in one line; empty if it does. Evidence holds these texts: a changed
    text would contradict the verdicts of earlier versions."""
    if not report.valid:
        return report.problem or "the run of the tests is not valid"
    skipped = sum(report.outcomes.get(test) is Outcome.SKIPPED for test in failing)
    goals = f"{counted(len(failing), 'test')} of FAIL_TO_PASS did not pass" + (
        f", {skipped} skipped" if skipped else ""
    )
    others = f"{counted(len(broken), 'test')} of PASS_TO_PASS did not pass"
    return "; ".join(part for part, tests in ((goals, failing), (others, broken)) if tests)


def patch_digest(patch: bytes) -> str:
    """The SHA-256 of a patch, in hex, by which verdicts identify it."""
    return hashlib.sha256(patch).hexdigest()


def read_verdicts(path: Path) -> Verdicts:
    """The last verdict on each instance and patch in a file.

    Raises:
        UsageError: a line is not a verdict.
    """
    return {(v.instance_id, v.patch_sha256): v for v in read_rows(path, Verdict.from_row)}


class VerdictCache:
    """A file of verdicts by what they depend on: the patch and the instance, never the name of a run. Thread-safe.

    The verdict `error` is not kept.

    Raises:
        UsageError: another process holds the file.
    """

    def __init__(self, path: Path) -> None:
        self._ledger = Ledger(path)
        self._known = dict(read_rows(path, lambda row: (str(row["key"]), Verdict.from_row(row))))

    def close(self) -> None:
        """Release the file for other processes."""
        self._ledger.close()

    def get(self, instance: Instance, patch: bytes, mode: str) -> Verdict | None:
        """The verdict on a patch; None if it has not been graded."""
        known = self._known.get(_key(instance, patch))
        return None if known is None else replace(known, mode=mode)

    def put(self, instance: Instance, patch: bytes, verdict: Verdict) -> None:
        """Keep a verdict, unless it is an error."""
        if verdict.status != "error":
            key = _key(instance, patch)
            self._ledger.append({"key": key, **asdict(verdict)})
            self._known[key] = verdict


def _key(instance: Instance, patch: bytes) -> str:
    hidden, task = instance.hidden, instance.task
    graded_by = [hidden.fail_to_pass, hidden.pass_to_pass, hidden.test_patch.hex(), task.test_command, task.base]
    known = [RULES, instance.id, graded_by, list(task.workspace.environment), patch_digest(patch)]
    more = [hidden.test_command, hidden.eval_script, hidden.eval_type, hidden.log_parser, dict(hidden.outcomes)]
    read: list[Any] = [hidden.assets, hidden.reader and asdict(hidden.reader), hidden.text_only]
    place = hidden.workspace or task.workspace
    made = [place.image, list(place.setup), sorted(place.env.items())]
    plain = not any((hidden.test_command, hidden.eval_script, hidden.outcomes, *made))
    content = json.dumps(known if plain else [*known, *more, *read, *made])
    return hashlib.sha256(content.encode()).hexdigest()
