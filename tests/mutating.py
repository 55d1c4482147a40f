"""Programs with one wrong line, and what a mutating policy makes of them without running anything."""

from __future__ import annotations

from collections.abc import Iterable

from agent.actions import Edit
from agent.policy.mutate.candidates import candidates, distinct
from agent.policy.mutate.source import Source

QUEUE = '''"""A queue of jobs."""
import re

LIMIT = 3
PATTERN = re.compile(r"[a-z]+-(\\d+)")


class Queue:
    def __init__(self, jobs=None, *, strict=False):
        self.jobs = list(jobs or [])
        self.strict = strict

    def due(self, now, horizon=0):
        """The jobs that are due."""
        found = []
        for index, job in enumerate(self.jobs):  # in order
            start, name = job
            if start <= now + horizon and name:
                found.append((index, name))
            elif self.strict:
                raise ValueError("late: %s" % job)
            else:
                continue
        return found[:LIMIT]


def parse(text, default=None):
    try:
        match = PATTERN.match(text)
        number = int(match.group(1)) - 1
    except (TypeError, KeyError):
        return default
    if not number:
        return []
    else:
        label = f"{text!r}: {number} of {LIMIT}"
        return max(number, len(label)), label


def walk(tree, seen=()):
    while True:
        if tree is None or tree in seen:
            return False
        seen = (*seen, tree)
        tree = tree.next
'''

TABS = """def total(rows, key):
	result = 0
	for row in rows:
		if row[key] > 0:	# counted
			result += row[key]
	return result"""


def every_line(source: Source) -> dict[str, dict[int, float]]:
    """All lines of a file, equally suspicious."""
    return {source.path: dict.fromkeys(range(1, source.data.count(b"\n") + 2), 1.0)}


def results(data: bytes, lines: Iterable[int] | None = None, limit: int | None = None) -> list[bytes]:
    """The files that are proposed for one file, the likeliest first."""
    source = Source("module.py", data)
    suspicion = every_line(source) if lines is None else {source.path: dict.fromkeys(lines, 1.0)}
    found = distinct(candidates([source], suspicion, "", {}), {source.path: source})
    return [result for _, (_, result) in zip(range(limit or 10**6), found, strict=False)]


def applied(data: bytes, edits: Iterable[Edit]) -> bytes:
    """A file after edits, each at its line."""
    for edit in edits:
        lines = data.decode().split("\n")
        at = len("\n".join(lines[: edit.line - 1]).encode()) + (edit.line > 1)
        old = edit.old.encode()
        assert data[at : at + len(old)] == old, edit
        data = data[:at] + edit.new.encode() + data[at + len(old) :]
    return data
