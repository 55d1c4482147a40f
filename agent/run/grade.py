"""Grades: how good an answer is, from a diff that nobody submitted to a patch with which the goal tests pass.

Invariant: a diff is never thrown away. Tests that it breaks lower its grade; only a manipulation of the tests
disqualifies it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, Literal

from agent.actions import Submit
from agent.measure.ids import holds
from agent.measure.regressions import regressions
from agent.run.tree.evaluation import MANIPULATION
from agent.run.tree.node import Node

Status = Literal["solved", "submitted", "improved", "no_patch"]


class Grade(IntEnum):
    """How good a verified answer is; the greater, the better."""

    NONE = 0
    """No patch, one that does not apply, or one that tampers with the tests."""
    UNFINISHED = 1
    """A diff that was not submitted, or with which a known goal still fails."""
    BROKEN = 2
    """Submitted, and it breaks tests that the submission does not declare to be wrong."""
    DECLARED = 3
    """Submitted, and for each test that it breaks, the submission says why the issue contradicts that test."""
    SUBMITTED = 4
    """Submitted in a run without known goals, and it breaks nothing."""
    SOLVED = 5
    """The goal tests pass, and it breaks nothing."""

    @property
    def status(self) -> Status:
        """The status in summaries and `--json`."""
        if self in (Grade.DECLARED, Grade.SUBMITTED):
            return "submitted"
        return "solved" if self is Grade.SOLVED else "improved" if self else "no_patch"


def grade(node: Node, verdict: Mapping[str, Any], goals: Sequence[str]) -> Grade:
    """The grade of a state with this verification (`agent.evaluate.verification.Verdict.to_note`; empty: it was not
    verified)."""
    if not verdict or str(verdict.get("why", "")).startswith(MANIPULATION):
        return Grade.NONE
    if verdict["solved"]:
        return Grade.SOLVED
    if not node.by_model:
        return Grade.UNFINISHED if verdict["improved"] else Grade.NONE
    if not verdict.get("applied", verdict["improved"]):
        return Grade.NONE
    if node.submission is None or not all(map(node.report.passed, goals)):
        return Grade.UNFINISHED
    broken = verdict.get("broken", ())
    if verdict.get("invalid") or len(declared(node.submission, broken)) < len(broken):
        return Grade.BROKEN
    return Grade.DECLARED if broken else Grade.SUBMITTED


def declared(submission: Submit | None, broken: Sequence[str]) -> dict[str, str]:
    """The broken tests that a `submit` declares to contradict the issue, each with its reason. A declaration names a
    test, or the file, class or unparametrised function that holds it."""
    entries = submission.contradicted if submission else ()
    return {test: reason for test in broken for reason in [_reason(entries, test)] if reason is not None}


def succeeded(node: Node, root: Node, goals: Sequence[str]) -> bool:
    """Whether a state solves the task or, if no goal is known, was submitted and breaks only tests that it declares to
    contradict the issue. It need not be verified."""
    if goals:
        return node.evaluation.solved
    broken = regressions(root.report, node.report)
    explained = len(declared(node.submission, broken)) == len(broken)
    return node.submitted and node.is_answer(root) and node.report.valid and explained


def _reason(entries: Sequence[str], test: str) -> str | None:
    for entry in entries:
        if entry.startswith(test):
            return entry[len(test) :].lstrip(" :-\u2013\u2014")
        name, _, reason = re.sub(r"(?<!:):\s|\s+[-\u2013\u2014]+\s+", "\0", entry.strip(), count=1).partition("\0")
        if holds(name.strip().rstrip(":"), test):
            return reason.strip()
    return None
