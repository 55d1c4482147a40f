"""Go: `go test -json`; an environment variable makes every `go test` use it, even behind make.

The test binary is the candidate's own program, and `go` reads its output: code that prints a passing test's line and
ends the process looks like a pass. A test reported with two outcomes is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agent.measure import Outcome
from agent.measure.adapters import MESSAGE_BYTES, PROC, Adapter, Invocation, RunOutput
from agent.measure.inside.cutting import cut
from agent.measure.logs.go import ENDS, read_events
from agent.measure.reading import Transcript
from agent.measure.warm.plugins import Limits, RunNames


def invocation(names: RunNames, command: str, wanted: Sequence[str], limits: Limits) -> Invocation:
    """Run the command with `-json`, and with `-run` if tests are wanted. Flags in its own GOFLAGS are kept."""
    flags = ["-json", *([f"-run=^({'|'.join(_functions(wanted))})$"] if wanted else [])]
    ours = f"GOFLAGS='{' '.join(flags)} '"
    own = re.sub(r"(?<!\w)GOFLAGS=", lambda _: ours, command)
    return Invocation(f'export {ours}"${{GOFLAGS-}}"\n{own}', captured=True)


def read(output: RunOutput) -> Transcript:
    """Read the output of the command. Ids are `package::Test/subtest`. A package that failed although none of its tests
    did counts as broken, with all its tests."""
    transcript, packages = Transcript(), dict[str, _Package]()
    for event in read_events(output.report.decode(errors="replace")):
        transcript.opened = True
        package = packages.setdefault(event["Package"], _Package(event["Package"]))
        if event["Action"] == "output":
            package.printed.setdefault(event.get("Test", ""), []).append(str(event.get("Output", "")))
        elif outcome := ENDS.get(event["Action"].upper()):
            package.end(transcript, event, outcome)
    if transcript.opened and all(package.ended for package in packages.values()):
        transcript.end()
    return transcript


@dataclass(slots=True)
class _Package:
    path: str
    printed: dict[str, list[str]] = field(default_factory=dict)
    """Output by test; under "", output outside any test."""
    failed: bool = False
    ended: bool = False

    def end(self, transcript: Transcript, event: dict[str, Any], outcome: Outcome) -> None:
        """Record the end of a test, or of the whole package."""
        test, seconds = event.get("Test", ""), event.get("Elapsed")
        failed = outcome is Outcome.FAILED
        message = cut("".join(self.printed.get(test, [])), MESSAGE_BYTES)[0] if failed else ""
        if test:
            self.failed = self.failed or failed
            transcript.test(
                f"{self.path}::{test}", outcome, seconds if isinstance(seconds, (int, float)) else 0.0, message
            )
            return
        self.ended = True
        if failed and not self.failed:
            transcript.broke(self.path, message)


def _functions(wanted: Sequence[str]) -> list[str]:
    """The test functions that contain these tests."""
    return sorted({re.escape(test.partition("::")[2].split("/")[0]) for test in wanted})


GO = Adapter(
    name="go",
    command="go test ./...",
    named=re.compile(r"\bgo\s+test\b|\bgotestsum\b"),
    invocation=invocation,
    read=read,
    tests=("*_test.go", "*/testdata/*", "testdata/*"),
    config_files=("go.work", "go.work.sum"),
    manifests=("go.mod", "go.sum"),
    config_lines=re.compile(r"\s*(replace|toolchain)\b|.*=>"),
    built=("vendor/*",),
    tricks=re.compile(rf'\bsyscall\.(Exit|Kill)|"testing"|--- (PASS|FAIL|SKIP)|{PROC}|"Action"'),
    selects=True,
)
