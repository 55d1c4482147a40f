"""Clusters of errors that differ only in names, numbers and places.

SLEA-RL retrieves experience at every step by the cluster of the observation there.
"""

from __future__ import annotations

import hashlib
import re

from agent.measure import SuiteReport
from agent.measure.messages import error_of

_ALIKE = (
    (re.compile(r"(?<!\w)(?:'[^'\n]*'|\"[^\"\n]*\"|`[^`\n]*`)(?!\w)"), "<name>"),
    (re.compile(r"\b0x[0-9a-fA-F]+\b"), "<address>"),
    (
        re.compile(r"(?:\b[A-Za-z]:)?[\w.~-]*(?:[/\\][\w.@~+-]+)+|\b[\w-]+\.(?:py|pyx|js|ts|go|rs|java|c|h|cpp)\b"),
        "<path>",
    ),
    (re.compile(r"<path>(?::\d+)+"), "<path>"),
    (re.compile(r"(?<![\w<])[-+]?\d[\d_.,]*(?:e[-+]?\d+)?\b"), "<number>"),
    (re.compile(r"\s+"), " "),
)


def shape_of(error: str) -> str:
    """The error with quoted names, addresses, paths and numbers replaced by placeholders."""
    for pattern, placeholder in _ALIKE:
        error = pattern.sub(placeholder, error)
    return error.strip()


def cluster_of(error: str) -> str:
    """The key shared by errors of the same shape."""
    return hashlib.sha256(shape_of(error).encode("utf-8", "replace")).hexdigest()[:16]


def errors_of(report: SuiteReport) -> dict[str, str]:
    """The errors of the failing tests by test id, without tests that gave none."""
    errors = {test: error_of(report.messages.get(test, "")) for test in report.failures}
    return {test: error for test, error in errors.items() if error}
