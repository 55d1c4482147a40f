"""Rust: `cargo test`, whose standard output and standard error are read as one text.

The test binary prints that text itself, so code that prints a passing test's line and ends the process looks like a
pass. Tests inside a source file cannot be restored either, so a patch that changes one is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from agent.measure import Outcome
from agent.measure.adapters import MESSAGE_BYTES, PROC, Adapter, Invocation, RunOutput
from agent.measure.inside.cutting import cut, ending
from agent.measure.inside.wanted import numbered
from agent.measure.logs.cargo import cargo
from agent.measure.reading import Transcript
from agent.measure.warm.plugins import Limits, RunNames
from agent.untrusted import terminal_text

COMMAND = re.compile(r"\bcargo((?:\s+\+\S+)?)\s+(test|t)(?![\w-])(?!.*--no-fail-fast)")
RUNNING = re.compile(r"Running (?:unittests )?(\S+) \((?:.*/)?(.+?)-[0-9a-f]+(?:\.exe)?\)|Doc-tests (\S+)")
RESULT = re.compile(r"test result: (ok|FAILED)\. (\d+) passed; (\d+) failed; (\d+) ignored;.*")
STDOUT = re.compile(r"---- (.+) stdout ----")
DOCUMENTED = re.compile(r"(.+?) \(line (\d{1,9})\)(.*)")


def invocation(names: RunNames, command: str, wanted: Sequence[str], limits: Limits) -> Invocation:
    """Make every target run, even after a failure. An alias cannot do that, so the command itself is changed."""
    script = COMMAND.sub(r"cargo\1 \2 --no-fail-fast", command)
    return Invocation(f"export CARGO_TERM_COLOR=never\n{script}", captured=True)


def read(output: RunOutput) -> Transcript:
    """Read the output of the command. Ids are `crate::path of the target::module::test`; for doctests,
    `crate::doc::file - documented item`."""
    transcript = Transcript()
    complete = True
    for target, lines in _targets(terminal_text(output.report.decode(errors="replace"))):
        transcript.opened = True
        complete = _read_target(transcript, target, lines) and complete
    if transcript.opened and complete:
        transcript.end()
    return transcript


def _targets(text: str) -> Iterator[tuple[str, list[str]]]:
    """The output of each test binary and each crate's doctests."""
    target, lines = "", list[str]()
    for line in text.split("\n"):
        if begins := RUNNING.fullmatch(line.strip()):
            if target:
                yield target, lines
            target = f"{begins[3]}::doc" if begins[3] else f"{begins[2]}::{begins[1]}"
            lines = []
        else:
            lines.append(line)
    if target:
        yield target, lines


def _read_target(transcript: Transcript, target: str, lines: list[str]) -> bool:
    """Read one target; return whether its summary agrees with its tests."""
    outcomes = dict[str, Outcome]()
    for test, outcome in cargo("\n".join(lines)):
        if outcomes.setdefault(test, outcome) is not outcome:
            transcript.doubts.append(f"{target}::{test} is reported as {outcomes[test].value} and as {outcome.value}")
    messages = _messages(lines)
    names = _names(outcomes) if target.endswith("::doc") else {}
    for test, outcome in outcomes.items():
        message = messages.get(test, "") if outcome is Outcome.FAILED else ""
        transcript.test(f"{target}::{names.get(test, test)}", outcome, message=message)
    results = [match for line in lines if (match := RESULT.fullmatch(line.strip()))]
    if len(results) > 1:
        transcript.doubts.append(f"{target} came to its end more than once")
    if not results:
        transcript.broke(target, ending("\n".join(lines), MESSAGE_BYTES))
        return True
    counted = [
        sum(end is each for end in outcomes.values()) for each in (Outcome.PASSED, Outcome.FAILED, Outcome.SKIPPED)
    ]
    return counted == [int(number) for number in results[0].groups()[1:]]


def _names(tests: Iterable[str]) -> dict[str, str]:
    """Names of doctests without line numbers, which any change above them moves. Further doctests of the same item are
    numbered."""
    lines = {test: int(match[2]) for test in tests if (match := DOCUMENTED.fullmatch(test))}
    seen = dict[str, int]()
    in_order = sorted(lines, key=lambda test: lines[test])
    return {test: numbered(DOCUMENTED.sub(r"\1\3", test), seen) for test in in_order}


def _messages(lines: list[str]) -> dict[str, str]:
    """The output of failed tests."""
    found: dict[str, list[str]] = {}
    into: list[str] = []
    for line in lines:
        if begins := STDOUT.fullmatch(line.strip()):
            into = found.setdefault(begins[1], [])
        elif line == "failures:":
            into = []
        else:
            into.append(line)
    return {test: cut("\n".join(texts).strip(), MESSAGE_BYTES)[0] for test, texts in found.items()}


CARGO = Adapter(
    name="cargo",
    command="cargo test",
    named=re.compile(r"\bcargo\b[^;&|]*\s(test|t)\b"),
    invocation=invocation,
    read=read,
    tests=("tests/*", "*/tests/*", "benches/*", "tests.rs", "*_test.rs", "*_tests.rs"),
    config_files=("build.rs", ".cargo/*", "rust-toolchain", "rust-toolchain.toml"),
    manifests=("Cargo.toml", "Cargo.lock"),
    config_lines=re.compile(
        r"\s*(\[\[?(test|bench|profile|patch|replace|lib|dev-dependencies)\b|(harness|test|doctest)\s*=)"
    ),
    built=("target/*",),
    tricks=re.compile(
        r"\bexit\(\s*0\s*\)|\b_exit\b|test result|\.\.\. ok|macro_rules!\s*(debug_)?assert(_eq|_ne)?\b"
        rf'|{PROC}|(?<!env!\(")\bCARGO_|RUST_TEST'
    ),
    inner=re.compile(r"\s*#!?\[cfg\((all\()?test\b"),
)
