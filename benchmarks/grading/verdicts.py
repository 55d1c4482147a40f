"""Verdict: what a patch is worth against the hidden tests, and the rules by which a report becomes one.

Rules: a test that has to pass has passed, and a skipped one has not; a run of the tests that is not valid (it did not
come to its end, collected nothing, or its exit code contradicts it) resolves nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from agent.measure import Outcome, SuiteReport
from benchmarks.data.harness_logs import FAILURES, LOG, judge_log
from benchmarks.data.instances import Hidden, Instance
from benchmarks.data.jsonl_ledger import Ledger, read_rows

__all__ = [
    "Finding",
    "Status",
    "Verdict",
    "VerdictCache",
    "Verdicts",
    "decide",
    "describe",
    "judge",
    "patch_digest",
    "read_verdicts",
]

RULES = 3
"""Increased when the same patch may get another verdict."""

Status = Literal["resolved", "unresolved", "empty_patch", "apply_failed", "error"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on one patch."""

    instance_id: str
    status: Status
    patch_sha256: str
    mode: str = "unknown"
    """How the patch was found: with the tests `hidden` or `revealed`."""
    reason: str = ""
    failing: tuple[str, ...] = ()
    """Tests of FAIL_TO_PASS that did not pass."""
    broken: tuple[str, ...] = ()
    """Tests of PASS_TO_PASS that did not pass."""
    seconds: float = 0.0

    @property
    def resolved(self) -> bool | None:
        """Whether the patch resolves the instance; None: an outside failure says nothing about the patch."""
        return None if self.status == "error" else self.status == "resolved"

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Verdict:
        """The verdict in a line of JSON. Raises TypeError if it holds none."""
        fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in row.items() if k != "key"}
        return cls(**fields)


@dataclass(frozen=True, slots=True)
class Finding:
    """What grading a patch saw, before it is judged."""

    report: SuiteReport | None = None
    """The report of the hidden tests; None: they were not run."""
    refused: str = ""
    """Why the patch could not be applied."""
    fault: str = ""
    """The outside failure, which says nothing about the patch."""
    state: str = ""
    """The digest of the root state."""
    log: bytes = b""
    """The output of an evaluation script; if a program of the set read the logs, its output."""
    left: Mapping[str, bytes] = field(default_factory=dict)
    """Those logs, by their paths in the sandbox; the empty path is the output of the script itself."""


Verdicts = Mapping[tuple[str, str], Verdict]
"""Verdicts by instance and digest of the patch."""


def decide(instance_id: str, patch: bytes, hidden: Hidden, finding: Finding) -> Verdict:
    """The verdict that follows from what grading a patch saw, and from nothing else."""
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
    """The tests of FAIL_TO_PASS and those of PASS_TO_PASS that did not pass; all of them when the run is not valid."""
    if report.adapter == LOG:
        return judge_log(report, hidden)
    if hidden.outcomes:
        return _differing(report, hidden.outcomes), ()
    failing = tuple(t for t in hidden.fail_to_pass if not _passed(report, t))
    return failing, tuple(t for t in hidden.pass_to_pass if not _passed(report, t))


def _differing(report: SuiteReport, expected: Mapping[str, str]) -> tuple[str, ...]:
    """The tests that did not end as they should, and failed tests that are not named."""
    if not report.valid:
        return tuple(expected)
    ended = {".".join(test.split("::")[1:]): outcome for test, outcome in report.outcomes.items()}
    ended.pop("", None)
    others = (test for test, outcome in ended.items() if test not in expected and outcome in FAILURES)
    return (*(test for test, end in expected.items() if _word(ended.get(test)) != end), *others)


def _word(outcome: Outcome | None) -> str:
    return "FAILED" if outcome is Outcome.TIMEOUT else "" if outcome is None else outcome.name


def _passed(report: SuiteReport, test_id: str) -> bool:
    """Published sets cut some ids of parametrised tests at a space; such an id stands for every id that it begins."""
    if test_id in report.outcomes or "[" not in test_id or test_id.endswith("]"):
        return report.passed(test_id)
    whole = [t for t in report.outcomes if t.startswith(f"{test_id} ")]
    return bool(whole) and all(report.passed(t) for t in whole)


def describe(report: SuiteReport, failing: tuple[str, ...], broken: tuple[str, ...]) -> str:
    """Why a report does not resolve an instance, in a line; empty if it does."""
    if not report.valid:
        return report.problem or "the run of the tests is not valid"
    skipped = sum(report.outcomes.get(test) is Outcome.SKIPPED for test in failing)
    said = f"{len(failing)} tests of FAIL_TO_PASS did not pass" + (f", {skipped} were skipped" if skipped else "")
    also = f"{len(broken)} tests of PASS_TO_PASS did not pass"
    return "; ".join(part for part, tests in ((said, failing), (also, broken)) if tests)


def patch_digest(patch: bytes) -> str:
    """The digest that names a patch in verdicts."""
    return hashlib.sha256(patch).hexdigest()


def read_verdicts(path: Path) -> Verdicts:
    """The last verdict on each instance and patch (by digest) in a file.

    Raises:
        UsageError: a line holds none.
    """
    return {(v.instance_id, v.patch_sha256): v for v in read_rows(path, Verdict.from_row)}


class VerdictCache:
    """Verdicts by what they depend on: the patch and the instance, never the name of a run. Thread-safe.

    Errors of the world are not kept. Raises UsageError when another process holds the file.
    """

    def __init__(self, path: Path) -> None:
        self._ledger = Ledger(path)
        self._known = dict(read_rows(path, lambda row: (str(row["key"]), Verdict.from_row(row))))

    def close(self) -> None:
        """Let another process hold the file."""
        self._ledger.close()

    def get(self, instance: Instance, patch: bytes, mode: str) -> Verdict | None:
        """The verdict on a patch; None: there is none yet."""
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
