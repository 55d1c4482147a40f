"""Turns the report of a red build (JUnit XML) into an issue with goal tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET
from xml.parsers import expat

from agent.actions.excerpt import excerpt
from agent.errors import UsageError
from agent.measure.documents import root as root_of
from agent.untrusted import terminal_text

REPORT_BYTES = 50_000_000
MESSAGE_BYTES = 3_000
MESSAGES = 10
"""The maximum number of failures that are quoted with their message."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A test that failed or could not be run."""

    test: str
    """The test's id in pytest's notation if its file was found in the repository; else `class::name`."""
    message: str = ""


def read_failures(report: Path, repo: Path) -> tuple[Failure, ...]:
    """Return the failed tests of a report in its order, without duplicates.

    Raises:
        agent.errors.UsageError: the report cannot be read, is not JUnit XML, or has no failed test.
    """
    cases = [case for case in _root(report).iter("testcase") if _failed(case)]
    failures = {failure.test: failure for failure in (_failure(case, repo) for case in reversed(cases))}
    if not failures:
        raise UsageError(f"the JUnit report {report}: no test failed there; give the report of a red build")
    return tuple(reversed(failures.values()))


def statement(failures: tuple[Failure, ...]) -> str:
    """Return the text of an issue that lists all failures and quotes the first messages."""
    names = "\n".join(f"- {failure.test}" for failure in failures)
    messages = "\n\n".join(f"{f.test}:\n{f.message}" for f in failures[:MESSAGES] if f.message)
    return f"These tests fail:\n\n{names}\n" + (f"\n{messages}\n" if messages else "")


def _root(report: Path) -> ET.Element:
    try:
        data = report.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read the JUnit report {report}: {error.strerror}") from error
    if len(data) > REPORT_BYTES:
        raise UsageError(f"the JUnit report {report} is larger than {REPORT_BYTES} bytes")
    try:
        root = root_of(data)
    except (ET.ParseError, expat.ExpatError) as error:
        raise UsageError(f"the report {report} is not XML: {error}") from error
    if root.tag not in ("testsuites", "testsuite"):
        raise UsageError(f"the report {report} is not JUnit XML: it begins with <{root.tag}>, not with <testsuites>")
    return root


def _failed(case: ET.Element) -> bool:
    return case.find("failure") is not None or case.find("error") is not None


def _failure(case: ET.Element, repo: Path) -> Failure:
    element = next(found for tag in ("failure", "error") if (found := case.find(tag)) is not None)
    text = terminal_text((element.text or element.get("message") or "").strip())
    return Failure(_name(case, repo), excerpt(text, MESSAGE_BYTES)[0])


def _name(case: ET.Element, repo: Path) -> str:
    """Return the test's id. Pytest reports `tests.test_x.TestA` and `test_b`; the longest prefix that is a file is the
    test's file."""
    name, parts = case.get("name", ""), case.get("classname", "").split(".")
    for file, classes in _files(case, parts, name):
        if (repo / file).is_file():
            return "::".join((file, *classes, *([name] if name and not _is_module(name, file) else [])))
    return "::".join(filter(None, (".".join(parts), name)))


def _files(case: ET.Element, parts: list[str], name: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the files that may contain the test, likeliest first, each with the classes around the test."""
    if file := case.get("file"):
        module = file.removesuffix(".py").split("/")
        yield file, parts[len(module) :] if parts[: len(module)] == module else []
    for length in range(len(parts), 0, -1):
        yield "/".join(parts[:length]) + ".py", parts[length:]
    yield name.replace(".", "/") + ".py", []  # for a module that cannot be imported, `name` is the module's name


def _is_module(name: str, file: str) -> bool:
    return name.replace(".", "/") + ".py" == file
