"""JUnit XML, as Maven's surefire, Gradle and many others write it, usually one file per class.

These files are written to the workspace by the build tool, not by the test process; older ones are removed first. The
candidate's code could write more of them, but a test with different results in two files is refused, and the build tool
notices if the test process ends early.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from xml.etree import ElementTree as ET
from xml.parsers import expat

from agent.measure import Outcome
from agent.measure.adapters import MESSAGE_BYTES, PROC, Adapter, Invocation, RunOutput
from agent.measure.documents import root
from agent.measure.inside.cutting import cut
from agent.measure.inside.wanted import numbered
from agent.measure.reading import Transcript
from agent.measure.warm.plugins import Limits, RunNames

SUITES = ("testsuites", "testsuite")


def read(output: RunOutput) -> Transcript:
    """Read the XML files. Ids are `class::name`, as with `--from-junit`."""
    transcript = Transcript()
    for path, data in sorted({**output.gathered, "the report": output.report}.items()):
        try:
            suites = root(data) if data else None
        except (ET.ParseError, expat.ExpatError) as error:
            transcript.doubts.append(f"{path} is not XML: {error}")
            continue
        if suites is not None and suites.tag in SUITES:
            transcript.opened = True
            _read_file(transcript, suites)
    if transcript.opened:
        transcript.end()
    return transcript


def _read_file(transcript: Transcript, suites: ET.Element) -> None:
    """Add the tests of a file. A repeated name is another test, since parameters are often left out."""
    seen: dict[str, int] = {}
    for case in suites.iter("testcase"):
        name = "::".join(filter(None, (case.get("classname", ""), case.get("name", "")))) or "?"
        outcome, message = _ended(case)
        transcript.test(numbered(name, seen), outcome, _seconds(case), message)


def _ended(case: ET.Element) -> tuple[Outcome, str]:
    for tag, outcome in (("error", Outcome.ERROR), ("failure", Outcome.FAILED)):
        if (element := case.find(tag)) is not None:
            return outcome, cut((element.text or element.get("message") or "").strip(), MESSAGE_BYTES)[0]
    return (Outcome.SKIPPED if case.find("skipped") is not None else Outcome.PASSED), ""


def _seconds(case: ET.Element) -> float:
    try:
        seconds = float(case.get("time", "0").replace(",", ""))
    except ValueError:
        return 0.0
    return seconds if 0 <= seconds < float("inf") else 0.0


def _ask(names: RunNames, command: str, wanted: Sequence[str], limits: Limits) -> Invocation:
    return Invocation(f"export RAMIFY_JUNIT={names.report}\nmkdir -p {names.folder}\n{command}")


def _build(
    names: RunNames,
    command: str,
    wanted: Sequence[str],
    limits: Limits,
    *,
    tool: str,
    whole: str,
    where: tuple[str, ...],
) -> Invocation:
    """Make the build continue after tests fail in one part of the project."""
    return Invocation(re.sub(tool, rf"\g<0> {whole}", command, count=1), gather=where)


JUNIT = Adapter(
    name="junit",
    command="",
    named=re.compile(r"\$\{?RAMIFY_JUNIT\b"),
    invocation=_ask,
    read=read,
    tests=(
        *(f"{place}{name}/*" for name in ("test", "tests", "spec") for place in ("", "*/")),
        *("*_test.*", "*_spec.*", "*.test.*", "*.spec.*", "*Test.*", "*Tests.*", "*Spec.*"),
    ),
    tricks=re.compile("RAMIFY_JUNIT"),
)
"""For any other runner: `$RAMIFY_JUNIT` tells its command where to write the report."""

SOURCES = ("src/test/*", "*/src/test/*")
ABOUT_TESTS = re.compile(r".*(surefire|failsafe|junit|testng|<test|skipTests|<(in|ex)clude)", re.IGNORECASE)
TRICKS = re.compile(
    rf"\.halt\([^)]|\bexit\(\s*0\s*\)|surefire|test-results|org\.(junit|testng|gradle\.api\.tasks\.testing)|{PROC}"
)

MAVEN = Adapter(
    name="maven",
    command="mvn -B test",
    named=re.compile(r"\bmvnw?\b"),
    invocation=partial(
        _build,
        tool=r"\bmvnw?(?=\s)",
        whole="--fail-at-end",
        where=("*/surefire-reports/TEST-*.xml", "*/failsafe-reports/TEST-*.xml"),
    ),
    read=read,
    tests=SOURCES,
    config_files=(".mvn/*", "mvnw"),
    manifests=("pom.xml",),
    config_lines=ABOUT_TESTS,
    tricks=TRICKS,
    built=("target/*", "*/target/*"),
)
GRADLE = Adapter(
    name="gradle",
    command="./gradlew test",
    named=re.compile(r"\bgradlew?\b"),
    invocation=partial(_build, tool=r"\bgradlew?(?=\s)", whole="--continue", where=("*/build/test-results/*.xml",)),
    read=read,
    tests=SOURCES,
    tricks=TRICKS,
    config_files=("*.gradle", "*.gradle.kts", "gradle.properties", "gradle/*", "gradlew"),
    built=("build/*", "*/build/*", ".gradle/*"),
)
