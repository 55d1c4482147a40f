"""Notes on one test: its probes, functions and calls. Values are kept as text only.

Stdlib only, Python 3.8 and later.
PYTEST_DONT_REWRITE
"""

from __future__ import annotations

import dis
from collections import deque
from types import CodeType, FrameType
from typing import Any, Deque, Dict, List, Optional, Set, Tuple

ENDS = 3
"""Number of values that are kept at the beginning, and at the end."""
LINES_EACH = 3_000
"""Number of executed lines watched per function; later calls are only counted."""


class Series:
    """The first and the last of many texts."""

    def __init__(self) -> None:
        self.count = 0
        self.first: List[str] = []
        self.last: Deque[str] = deque(maxlen=ENDS)

    def add(self, text: str) -> None:
        self.count += 1
        (self.first if len(self.first) < ENDS else self.last).append(text)

    def facts(self) -> Dict[str, Any]:
        return {"count": self.count, "first": self.first, "last": list(self.last)}


class Call:
    """One call of a function: its arguments, what each line changed, and how it ended."""

    def __init__(self, frame: Optional[FrameType], values: Dict[str, str]) -> None:
        self.frame = frame
        """Kept only for generators, which are entered repeatedly."""
        self.arguments, self.values = values, values
        self.line = 0
        self.lines: Dict[int, Tuple[List[int], Dict[str, Series]]] = {}
        self.ended = ""
        self.error: Optional[BaseException] = None

    def reach(self, line: int) -> None:
        """Record that a line is about to run."""
        self.line = line
        self.lines.setdefault(line, ([0], {}))[0][0] += 1

    def learn(self, values: Dict[str, str]) -> None:
        """Record the locals after the last line."""
        if self.line:
            changed = self.lines[self.line][1]
            for name, text in values.items():
                if self.values.get(name) != text:
                    changed.setdefault(name, Series()).add(text)
        self.values = values

    def facts(self) -> Dict[str, Any]:
        lines = [
            [line, hits[0], {name: series.facts() for name, series in changed.items()}]
            for line, (hits, changed) in sorted(self.lines.items())
        ]
        return {"arguments": self.arguments, "lines": lines, "ended": self.ended}


class Function:
    """The record of a function of the workspace."""

    def __init__(self, path: str, code: CodeType, wanted: bool, probes: List[Probe]) -> None:
        self.path, self.code, self.wanted, self.probes = path, code, wanted, probes
        self.calls, self.left = 0, LINES_EACH
        self.last: Optional[Call] = None
        self.seen = 0
        """The time of its last activity."""
        self.series = Series()
        """Calls with arguments and results, for a function that a probe names."""
        self.ran: Set[int] = set()

    def keep(self, call: Call) -> None:
        """Keep the last finished call; among calls ended by the same exception, the one that raised it."""
        if call.error is None or self.last is None or self.last.error is not call.error:
            self.last = call

    def facts(self) -> Dict[str, Any]:
        return {
            "path": self.path,
            "name": qualified(self.code),
            "line": self.code.co_firstlineno,
            "calls": self.calls,
            "cut": self.left <= 0,
            "wanted": self.series.facts() if self.wanted else None,
            "last": self.last.facts() if self.last else None,
        }


class Probe:
    """An expression at a line, or a function by its name."""

    def __init__(self, probe: Dict[str, Any]) -> None:
        self.path: str = probe["path"]
        self.line: int = probe["line"]
        self.name: str = probe["name"]
        self.series, self.hits, self.problem = Series(), 0, ""
        try:
            self.expression = compile(probe["expression"], "<probe>", "eval") if probe["expression"] else None
        except SyntaxError as error:  # this Python is older than the one that checked the expression
            self.problem = str(error)
        self.inside: List[Function] = []
        """Called functions that contain the line or have the name."""

    def fits(self, path: str, code: CodeType) -> bool:
        """Whether the probe concerns this function."""
        if self.name:
            if not hasattr(code, "co_qualname"):
                return code.co_name == self.name.split(".")[-1]
            module = path[: -len(".py")].replace("/", ".")
            return (".%s.%s" % (module, qualified(code))).endswith("." + self.name)
        return path == self.path and any(line == self.line for _, line in dis.findlinestarts(code))

    def facts(self) -> Dict[str, Any]:
        ran = sorted({line for function in self.inside for line in function.ran})
        calls = sum(function.calls for function in self.inside)
        return {"values": self.series.facts(), "hits": self.hits, "calls": calls, "ran": ran, "problem": self.problem}


def qualified(code: CodeType) -> str:
    """The name of a function, qualified by class if this Python knows it."""
    return str(getattr(code, "co_qualname", code.co_name)).replace("<locals>.", "")
