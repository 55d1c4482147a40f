"""Find the tests inside a formatted source file: an item ends where its indentation does."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

OPENS = re.compile(r"\s*(pub(\([^)]*\))?\s+)?mod\s+\w+\s*\{\s*")
DOCUMENTS = re.compile(r"\s*//[/!] ?(.*)")
FENCE = re.compile(r"`{3,}\s*(.*)")
RUN = re.compile(r"(rust|should_panic|no_run|compile_fail|edition\d+|[\s,])*")
"""What may follow a fence whose code is tested."""
ENDS = ("}", ";", ",")


def inner_tests(source: str, begins: re.Pattern[str]) -> list[str]:
    """Return the text of each item that only tests use, including lines right before it such as attributes, and of each
    documentation example that is run. `begins` matches a line that marks the next item as test code, or the whole file
    if the line has `#!`. A module is split into its items, so that others may be inserted between them."""
    lines = source.split("\n")
    found: list[str] = []
    at = 0
    while at < len(lines):
        if begins.match(lines[at]):
            whole = "#!" in lines[at]
            end = len(lines) if whole else _end(lines, at, _indent(lines[at]))
            opened = next((n for n in range(at, end) if whole or OPENS.fullmatch(lines[n])), None)
            found += [_text(lines[at:end])] if opened is None else _items(lines[opened + 1 : end - (not whole)])
            at = end
        else:
            at += 1
    return [item for item in (*found, *_documented(lines)) if item]


def _documented(lines: Sequence[str]) -> Iterator[str]:
    """Yield the code in documentation comments that is run: it is fenced and not in another language."""
    block: list[str] | None = None
    for line in lines:
        comment = DOCUMENTS.fullmatch(line)
        fence = FENCE.fullmatch(comment[1].strip()) if comment else None
        if block is not None and comment and not fence:
            block.append(line)
        elif block is not None and fence:
            yield _text(block)
            block = None
        else:
            block = [] if fence and RUN.fullmatch(fence[1]) else None


def _items(lines: Sequence[str]) -> Iterator[str]:
    indent = min((_indent(line) for line in lines if line.strip()), default=0)
    at = 0
    while at < len(lines):
        end = _end(lines, at, indent)
        yield _text(lines[at:end])
        at = end


def _end(lines: Sequence[str], at: int, indent: int) -> int:
    """The index after the first line from `at` on that ends an item and is indented no deeper than `indent`."""
    for n in range(at, len(lines)):
        if lines[n].rstrip().endswith(ENDS) and _indent(lines[n]) <= indent:
            return n + 1
    return len(lines)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _text(lines: Sequence[str]) -> str:
    return "\n".join(lines).strip("\r\n")
