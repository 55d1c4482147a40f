"""Variants of reference patches, and what the hidden tests say of each: candidates whose verdict is known.

A variant is the reference patch, the patch without one of its hunks, or the patch with one small change in one line
that it adds. What the hidden tests said is kept in a file, so that an interrupted examination goes on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from agent.files import write_atomically
from benchmarks.data.instances import Instance
from benchmarks.data.sources import Source
from benchmarks.grading.grading import examine
from benchmarks.grading.verdicts import decide
from sandboxes import Provider

MOST = 14
"""Variants of one patch that are examined, spread over its lines."""
SWAPS = (
    (" == ", " != "), (" != ", " == "), (" <= ", " < "), (" < ", " <= "), (" >= ", " > "), (" > ", " >= "),
    (" and ", " or "), (" or ", " and "), (" is not None", " is None"), (" is None", " is not None"),
    (" not in ", " in "), ("not ", ""), ("True", "False"), ("False", "True"), (" + ", " - "), (" - ", " + "),
    (" * ", " + "), ("max(", "min("), ("min(", "max("), ("(0", "(1"), (" 0", " 1"), (" 1", " 2"), ("[0]", "[-1]"),
    ("elif ", "if "), ("return ", "return not "),
)  # fmt: skip
"""What is replaced by what, each once a line."""
_HUNK = re.compile(r"^@@ .*?(?=^@@ |^diff |\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Variant:
    """A patch and what the hidden tests say of it."""

    patch: bytes
    right: bool
    """Whether it resolves the instance."""
    breaks: bool
    """Whether a test fails that passes before."""
    passed: frozenset[str]
    """The tests that pass of those that the reference patch repairs."""
    messages: Mapping[str, str]
    """How the others of these fail, by test."""


def patches(reference: bytes) -> list[bytes]:
    """The reference patch first, then its variants, all different, at most `MOST`."""
    text = reference.decode()
    found = list(dict.fromkeys(each.encode() for each in (*_without_a_hunk(text), *_changed(text)) if each != text))
    step = max(1, -(-len(found) // (MOST - 1)))
    return [reference, *found[::step]]


def _without_a_hunk(text: str) -> Iterator[str]:
    hunks = list(_HUNK.finditer(text))
    if len(hunks) > 1 and text.count("\n+++ ") == 1:
        yield from (text[: hunk.start()] + text[hunk.end() :] for hunk in hunks)


def _changed(text: str) -> Iterator[str]:
    lines = text.splitlines(keepends=True)
    for at, line in enumerate(lines):
        if not line.startswith("+") or line.startswith("+++"):
            continue
        for old, new in SWAPS:
            if old in line:
                yield "".join((*lines[:at], line.replace(old, new, 1), *lines[at + 1 :]))


def examined(instance: Instance, source: Source, provider: Provider, folder: Path) -> list[Variant]:
    """The base state as a variant without a patch, then the variants of the reference patch, each with the result of
    the hidden tests; without those whose tests could not be run."""
    file = folder / f"{instance.id.replace('/', '_')}.json"
    known = json.loads(file.read_text()) if file.exists() else {}
    found = []
    for patch in (b"", *patches(instance.hidden.patch)):
        key = sha256(patch).hexdigest()
        if key not in known:
            known[key] = _result(instance, patch, source, provider)
            write_atomically(file, json.dumps(known).encode())
        if known[key]:
            found.append(_variant(patch, known[key], instance.hidden.fail_to_pass))
    return found


def _result(instance: Instance, patch: bytes, source: Source, provider: Provider) -> dict[str, object] | None:
    finding = examine(instance, patch, source, provider)
    if finding.report is None or not finding.report.outcomes:
        return None
    verdict = decide(instance.id, patch, instance.hidden, finding)
    messages = {test: finding.report.messages.get(test, "") for test in verdict.failing}
    return {"right": verdict.resolved, "failing": messages, "broken": list(verdict.broken)}


def _variant(patch: bytes, result: Mapping[str, object], tests: Iterable[str]) -> Variant:
    failing = result["failing"]
    assert isinstance(failing, dict)
    return Variant(patch, bool(result["right"]), bool(result["broken"]), frozenset(tests) - failing.keys(), failing)
