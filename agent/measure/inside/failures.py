"""Describe a test failure as needed to repair the code: the calls inside the repository, as in pytest's short
tracebacks, and the exception with its explanation. Stdlib only, Python 3.8 and later.

PYTEST_DONT_REWRITE
"""

from __future__ import annotations

import linecache
import os
import traceback
from types import FrameType, TracebackType
from typing import Any, Iterator, List, NamedTuple, Optional

from .cutting import cut

MOST = 1_500
"""Approximate limits in bytes: of a message, of the exception's own text, of one line of that, and of the exceptions
that led to it."""
ERROR, LINE, EARLIER = 900, 400, 500
SOURCE_CHARACTERS = 160
ENDS = 6
"""Number of calls shown at the beginning, and at the end."""
GROUPED = 3
"""Number of exceptions of a group that are shown."""
PACKAGES = ("site-packages", "dist-packages", ".venv", "venv", ".tox", ".nox")
RUNNERS = ("_pytest", "pytest", "pluggy", "unittest", "doctest")
LATER = "During handling of the above exception, another one occurred:"
CAUSED = "The above exception was the cause of this one:"

# Tests patch this function; messages must not depend on that.
realpath = os.path.realpath


Entry = NamedTuple("Entry", [("file", str), ("path", str), ("line", int), ("frame", FrameType)])  # before Python 3.6
"""A call that was active when an exception was raised. `path` is relative to the repository; "" outside it."""


class Failures:
    """Describes test failures of one repository, whose files are below the first of these folders, or else below the
    others."""

    def __init__(self, *roots: str) -> None:
        known = [root.rstrip(os.sep) + os.sep for each in roots for root in (each, realpath(each))]
        self.roots = list(dict.fromkeys(known))

    def message(self, error: BaseException, file: str = "") -> str:
        """The message of a failure, starting at the first call in the test's file, if there is one."""
        earlier = [self.one(each, file, EARLIER) + "\n" + joint for each, joint in _earlier(error)]
        if not earlier:
            return self.one(error, file, MOST)
        return cut("\n".join(earlier), EARLIER)[0] + "\n" + self.one(error, file, MOST - EARLIER)

    def one(self, error: BaseException, file: str, most: int) -> str:
        """Like `message`, without the exceptions that led to it."""
        example = getattr(error, "example", None)
        if type(error).__name__ == "UnexpectedException" and example is not None:
            return self.doctest(error, most)
        explanation = "\n".join(("E   " + line).rstrip() for line in self.own_text(error).split("\n"))
        calls = [*self.calls(self.entries(error.__traceback__, file)), *self.syntax_error_place(error)]
        parts = [cut("\n".join(calls), max(most - len(explanation), most // 3))[0], explanation]
        held = _group(error)[:GROUPED]
        parts.extend("E   One of them:\n" + self.one(each, file, most // GROUPED) for each in held)
        return "\n".join(part for part in parts if part)

    def doctest(self, failure: Any, most: int) -> str:
        """The message of an exception in a documentation example."""
        test, example = failure.test, failure.example
        path = self.path(test.filename or "") or test.filename
        place = "%s:%d: in %s" % (path, (test.lineno or 0) + example.lineno + 1, test.name)
        source = "\n".join("    >>> " + line for line in example.source.rstrip().split("\n"))
        return "\n".join([place, source, self.one(failure.exc_info[1], "", most)])

    def plain(self, text: str) -> str:
        """The message of a failure that another program has described."""
        return cut(self.shortened(text).strip("\n"), MOST)[0]

    def own_text(self, error: BaseException) -> str:
        """The exception's own text."""
        if isinstance(error, SyntaxError) and error.filename:
            return "%s: %s" % (type(error).__name__, error.msg)
        lines = "".join(traceback.format_exception_only(type(error), error)).rstrip("\n")
        return cut("\n".join(cut(line, LINE)[0] for line in self.shortened(lines).split("\n")), ERROR)[0]

    def syntax_error_place(self, error: BaseException) -> List[str]:
        """The place of a syntax error."""
        if not isinstance(error, SyntaxError) or not error.filename:
            return []
        path = self.path(error.filename) or error.filename
        return ["%s:%s" % (path, error.lineno), *_source(error.text or "")]

    def shortened(self, text: str) -> str:
        """The text with paths relative to the repository."""
        for root in self.roots:
            text = text.replace(root, "")
        return text

    def path(self, file: str) -> str:
        """The path relative to the repository; "" outside it."""
        for candidate in (file, realpath(file)) if os.path.isabs(file) else ():
            for root in self.roots:
                if candidate.startswith(root):
                    inside = candidate[len(root) :]
                    return "" if any(part in PACKAGES for part in inside.split(os.sep)) else inside
        return ""

    def entries(self, trace: Optional[TracebackType], file: str) -> List[Entry]:
        """The calls from the first one in the test's file, or else in the repository."""
        known: List[Entry] = []
        while trace is not None:
            name = trace.tb_frame.f_code.co_filename
            known.append(Entry(name, self.path(name), trace.tb_lineno or 0, trace.tb_frame))
            trace = trace.tb_next
        wanted = self.path(file) if file else ""
        begin = next((n for n, each in enumerate(known) if wanted and each.path == wanted), None)
        if begin is None:
            begin = next((n for n, each in enumerate(known) if each.path), len(known))
        return known[begin:]

    def calls(self, entries: List[Entry]) -> Iterator[str]:
        """The calls inside the repository, the number of others between them, and the last call of all, which raised
        the exception, unless it is the runner's."""
        raised = len(entries) - 1
        shown = [n for n, each in enumerate(entries) if each.path or (n == raised and _tells(each))]
        runs = _runs(entries, shown)
        before = -1
        for run in runs if len(runs) <= 2 * ENDS else runs[:ENDS] + runs[-ENDS:]:
            each = entries[run[0]]
            if run[0] - before > 1:
                inside = sum(before < n < run[0] for n in shown)
                where = ", %d of them in the repository" % inside if inside else " outside of the repository"
                yield "  (%d calls%s)" % (run[0] - before - 1, where)
            before = run[-1]
            yield "%s:%d: in %s" % (each.path or _outside(each.file), each.line, each.frame.f_code.co_name)
            yield from _source(linecache.getline(each.file, each.line, each.frame.f_globals))
            if len(run) > 1:
                yield "  (the same %d times more)" % (len(run) - 1)


def _runs(entries: List[Entry], shown: List[int]) -> List[List[int]]:
    """The indices of these calls, with consecutive calls of one place grouped."""
    runs: List[List[int]] = []
    for number in shown:
        each, last = entries[number], entries[runs[-1][-1]] if runs else None
        if last is not None and runs[-1][-1] == number - 1 and (last.file, last.line) == (each.file, each.line):
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs


def _source(line: str) -> List[str]:
    text = line.strip()
    more = " [...]" if len(text) > SOURCE_CHARACTERS else ""
    return ["    " + text[:SOURCE_CHARACTERS] + more] if text else []


def _tells(entry: Entry) -> bool:
    """Whether a call outside the repository is informative: it is in a file, not part of the test runner, and not
    hidden by its author."""
    module = str(entry.frame.f_globals.get("__name__", "")).split(".")[0]
    hidden = bool(entry.frame.f_locals.get("__tracebackhide__"))
    return os.path.isabs(entry.file) and module not in RUNNERS and not hidden


def _outside(file: str) -> str:
    """The path of an installed file, starting at its library."""
    parts = file.split(os.sep)
    starts = [n for n, part in enumerate(parts) if part in PACKAGES[:2] or part.startswith("python3.")]
    return "/".join(parts[starts[-1] :]) if starts else file


def _earlier(error: BaseException) -> List[Any]:
    """The exceptions that led to this one, earliest first, each with its relation to the next."""
    found: List[Any] = []
    seen = {id(error)}
    while True:
        cause = error.__cause__
        before = cause if cause is not None else None if error.__suppress_context__ else error.__context__
        if before is None or id(before) in seen:
            return found
        found.insert(0, (before, CAUSED if cause is not None else LATER))
        seen.add(id(before))
        error = before


def _group(error: BaseException) -> List[BaseException]:
    held = getattr(error, "exceptions", ()) if type(error).__name__.endswith("ExceptionGroup") else ()
    return [each for each in held if isinstance(each, BaseException)]
