"""The text of an issue, from the command line, a file, stdin or GitHub."""

from __future__ import annotations

import sys
from pathlib import Path

from agent.cli.ci.github import ISSUE, fetch_issue
from agent.errors import UsageError

__all__ = ["read_issue"]

ISSUE_BYTES = 1 << 20
"""A larger issue is an error: a model would not read it."""


def read_issue(source: str | None, text: str | None, *, may_be_empty: bool) -> str:
    """The issue, given once: as a file, `-` for stdin or `owner/repository#number`, or as the text itself.

    Raises:
        agent.errors.UsageError: it was given twice or not at all, is empty though it must not be, or cannot be read.
        agent.errors.ModelError: GitHub cannot be reached.
    """
    if source is not None and text is not None:
        raise UsageError("give the issue once: as ISSUE or as --issue TEXT")
    if source is None and text is None and not may_be_empty:
        raise UsageError("no issue: give a file, - for stdin, owner/repository#number, or --issue TEXT")
    statement = (text or "") if source is None else _read(source)
    if not statement.strip() and not may_be_empty:
        raise UsageError(f"the issue is empty ({source or '--issue'}): say what is wrong, or give a --goal-test")
    return statement


def _read(source: str) -> str:
    if ISSUE.fullmatch(source) and not Path(source).exists():
        return fetch_issue(source)
    try:
        if source == "-":
            data = sys.stdin.buffer.read(ISSUE_BYTES + 1)
        else:
            with Path(source).open("rb") as file:
                data = file.read(ISSUE_BYTES + 1)
    except OSError as error:
        raise UsageError(
            f"cannot read the issue {source}: {error.strerror}; to give the text itself, use --issue"
        ) from error
    if len(data) > ISSUE_BYTES:
        raise UsageError(f"the issue {source} is larger than {ISSUE_BYTES} bytes; shorten it")
    return data.decode("utf-8", errors="replace")
