"""Turn the transcript of a test run into a SuiteReport, and check whether the run can be believed.

Invariant: a run counts only if it finished, everything requested is in the report, and the report, the runner's own
status and the command's exit code agree. For pytest, nothing on stdout is read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

from agent.counting import counted
from agent.measure import Outcome, SuiteReport
from agent.measure.ids import file_of, holds
from agent.measure.inside.cutting import ending
from agent.parsing import loads
from sandboxes import ExecResult, Sandbox

COMMAND = "test-command"
"""The only test id of a report made from an exit code."""
OUTPUT_BYTES = 4000
MESSAGE_BYTES = 2000
QUOTED = 200
"""Maximum characters of an error message that a problem quotes."""
KILLED = 137
NO_TESTS = "no tests were collected"
NOT_REPORTED = "not reported: "
"""Prefix of the problem of a run whose only fault is that requested tests are missing from its report."""
STATUSES = {2: "it was interrupted", 3: "internal error", 4: "usage error", 5: NO_TESTS}
LIMITS = {
    "memory": "the run used more memory than sandbox.limits.memory_bytes",
    "pids": "the run started more processes than sandbox.limits.pids",
    "disk": "the run wrote more than sandbox.limits.disk_bytes, or the disk is full",
}


@dataclass(slots=True)
class Transcript:
    """What a test run reported, by kind."""

    opened: bool = False
    start: str = "new"
    started: list[str] = field(default_factory=list)
    tests: dict[str, dict[str, Any]] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    left_out: set[str] = field(default_factory=set)
    late: list[str] = field(default_factory=list)
    """Tests that the run had no time for."""
    titles: list[tuple[str, str]] = field(default_factory=list)
    """First lines of the documentation of tests, with the test ids."""
    ends: list[dict[str, Any]] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    values: list[dict[str, Any]] = field(default_factory=list)
    """What a watched run noted for each test."""

    @property
    def unfinished(self) -> str | None:
        """The test that was running when the report broke off, else None."""
        return self.started[-1] if self.started and self.started[-1] not in self.tests and not self.ends else None

    def test(self, test_id: str, outcome: Outcome, seconds: float = 0.0, message: str = "") -> None:
        """Add the outcome of a test; a second, different outcome is recorded as a doubt."""
        fact = {"id": test_id, "outcome": outcome.value, "seconds": seconds, "message": message}
        _sort(self, {"kind": "test"} | fact)

    def broke(self, whole: str, message: str) -> None:
        """Record that the program that ran the tests `whole::...` failed. Tests that it reported as passed become
        errors."""
        self.broken[whole] = message
        for test, fact in self.tests.items():
            if test.startswith(f"{whole}::") and fact["outcome"] == Outcome.PASSED.value:
                self.tests[test] = fact | {"outcome": Outcome.ERROR.value}

    def end(self, status: int | None = None) -> None:
        """Record that the runner finished with this status; None: derive it from the outcomes."""
        failed = bool(self.broken) or any(Outcome(fact["outcome"]).failed for fact in self.tests.values())
        numbers = {"tests": len(self.tests), "collected": len(self.tests), "left_out": 0}
        self.ends.append({"exit": int(failed) if status is None else status} | numbers)


def read(data: bytes, nonce: str) -> Transcript:
    """Parse a report's lines, each of which must carry its seal. An incomplete last line is ignored."""
    transcript = Transcript()
    for number, line in enumerate(data.split(b"\n")[:-1]):
        seal, _, fact = line.partition(b" ")
        if seal.decode(errors="replace") != sha256(f"{nonce}{number}".encode() + fact).hexdigest():
            transcript.doubts.append("something else than the plugin wrote to the report")
            break
        _sort(transcript, loads(fact))
    return transcript


def fetch(box: Sandbox, path: str, nonce: str) -> Transcript:
    """Return the transcript in the file `path`; an empty one if the file does not exist."""
    try:
        return read(box.read(path), nonce)
    except FileNotFoundError:
        return Transcript()


def _sort(transcript: Transcript, fact: dict[str, Any]) -> None:
    if title := fact.get("title"):
        transcript.titles.append((title, fact["id"]))
    match fact["kind"]:
        case "open":
            transcript.opened = True
        case "copied":
            transcript.start = fact["at"]
        case "start":
            transcript.started.append(fact["id"])
        case "broken":
            transcript.broken[fact["id"]] = fact["message"]
        case "test":
            before = transcript.tests.setdefault(fact["id"], fact)
            if before["outcome"] != fact["outcome"]:
                transcript.doubts.append(f"{fact['id']} is reported as {before['outcome']} and as {fact['outcome']}")
        case "values":
            transcript.values.append(fact)
        case "left":
            transcript.left_out.add(fact["id"])
        case "late":
            transcript.late.append(fact["id"])
        case "end":
            transcript.ends.append(fact)


def from_transcript(
    transcript: Transcript, result: ExecResult, wanted: Sequence[str] = (), adapter: str = "pytest"
) -> SuiteReport:
    """Build the report of a run from its transcript."""
    outcomes = dict.fromkeys(transcript.broken, Outcome.ERROR)
    outcomes |= {test_id: Outcome(fact["outcome"]) for test_id, fact in transcript.tests.items()}
    messages = transcript.broken | {
        test_id: fact["message"] for test_id, fact in transcript.tests.items() if fact["message"]
    }
    if (cut := transcript.unfinished) is not None:
        outcomes[cut] = Outcome.TIMEOUT if result.exit_code == KILLED else Outcome.ERROR
        messages[cut] = f"the test process ended during this test with exit code {result.exit_code}"
    report = SuiteReport(
        outcomes=outcomes,
        duration_s=result.duration_s,
        collected=transcript.ends[-1]["collected"] if transcript.ends else 0,
        complete=not wanted and not transcript.left_out and not transcript.late,
        left_out=len(transcript.left_out),
        late=Counter(map(file_of, transcript.late)),
        asked=tuple(wanted),
        exit_code=result.exit_code,
        timed_out=result.timed_out,
        adapter=adapter,
        output=_tail(result),
        durations={test_id: fact["seconds"] for test_id, fact in transcript.tests.items()},
        messages=messages,
        titles=_only(transcript.titles),
        copies=transcript.ends[-1].get("copies", {}) if transcript.ends else {},
        unexpected=tuple(test_id for test_id, fact in transcript.tests.items() if fact.get("unexpected")),
    )
    problem = next(_problems(transcript, result, report, wanted), "")
    return report if not problem else _invalid(report, problem)


def _only(titles: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The titles that belong to a single test."""
    count = Counter(title for title, _ in titles)
    return {title: test for title, test in titles if count[title] == 1}


def from_exit_code(result: ExecResult) -> SuiteReport:
    """Build the weakest report: the whole command counts as one test, which passes if the exit code is 0."""
    outcome = Outcome.PASSED if result.exit_code == 0 else Outcome.FAILED
    report = SuiteReport(
        outcomes={COMMAND: Outcome.TIMEOUT if result.timed_out else outcome},
        duration_s=result.duration_s,
        collected=1,
        exit_code=result.exit_code,
        timed_out=result.timed_out,
        adapter="exit-code",
        output=_tail(result),
        durations={COMMAND: result.duration_s},
        messages={} if result.exit_code == 0 else {COMMAND: ending(_tail(result), MESSAGE_BYTES)},
    )
    return _invalid(report, "the command ran out of time") if result.timed_out else report


def _problems(transcript: Transcript, result: ExecResult, report: SuiteReport, wanted: Sequence[str]) -> Iterator[str]:
    if result.timed_out:
        yield f"the run was ended after {result.duration_s:.0f} s"
    if result.limit:
        yield LIMITS[result.limit]
    yield from transcript.doubts
    if not transcript.opened:
        yield f"{report.adapter} did not report; the command ended with exit code {result.exit_code}"
    if not transcript.ends:
        where = f", during {transcript.unfinished}" if transcript.unfinished else ""
        errors = [] if transcript.tests else re.findall(r"(?m)^.*\berror: (.+)$", _tail(result))
        why = f": {errors[-1].strip()[:QUOTED]}" if errors else ""
        yield f"the run broke off with exit code {result.exit_code}{where}{why}"
        return
    end = transcript.ends[-1]
    if len(transcript.ends) > 1:
        yield f"{report.adapter} came to its end more than once"
    if end["exit"] not in (0, 1):
        yield f"{report.adapter} ended with status {end['exit']}: {STATUSES.get(end['exit'], 'unknown')}"
    if not end["collected"] and not transcript.broken:
        yield NO_TESTS
    if end["tests"] != len(transcript.tests):
        yield f"{counted(end['tests'], 'test')} ran and {len(transcript.tests)} reported"
    if end["left_out"] != len(transcript.left_out):
        yield f"{counted(end['left_out'], 'test')} left out and {len(transcript.left_out)} reported"
    for name, code in ((f"{report.adapter}'s status", end["exit"]), ("the command's exit code", result.exit_code)):
        if (code != 0) != bool(report.failures or report.unexpected):
            yield f"{name} is {code}, but {counted(len(report.failures), 'test')} failed"
    not_run = {*transcript.left_out, *transcript.late}
    missing = [t for t in wanted if "::" in t and report.outcome(t) is None and not any(holds(t, u) for u in not_run)]
    if missing:
        yield f"{NOT_REPORTED}{', '.join(missing[:3])}{' and more' if len(missing) > 3 else ''}"


def _invalid(report: SuiteReport, problem: str) -> SuiteReport:
    return replace(report, valid=False, problem=problem)


def _tail(result: ExecResult) -> str:
    return ending((result.stdout + result.stderr).decode(errors="replace"), OUTPUT_BYTES)
