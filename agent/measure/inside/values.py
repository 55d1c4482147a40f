"""Show any value in a few characters. Stdlib only, Python 3.8 and later.

Invariant: no size, loop or error of a value affects the test. Built-in values are shown without running their code; for
others `__repr__` is called, with a time limit.
PYTEST_DONT_REWRITE
"""

from __future__ import annotations

import itertools
import platform
import re
import signal
from collections import deque
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

from .alarm import TIMER_CALLS, Clock, OutOfTime

TIMEOUT_S = 0.25
"""Time limit for one value."""
TEXT_CHARACTERS = 80
VALUE_CHARACTERS = 160
LONG = 4000
INTEGER_BITS = 200
ITEMS = 6
ATTRIBUTES = 8
DEPTH = 3
PLAIN = (bool, float, complex, type(None), type(...), type(NotImplemented))
BRACKETS: dict[type, tuple[str, str]] = {
    list: ("[", "]"),
    tuple: ("(", ")"),
    set: ("{", "}"),
    frozenset: ("{", "}"),
    deque: ("[", "]"),
}
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


class TooSlow(BaseException):
    """Showing a value takes too long. This is not an Exception, because the value's own code could swallow that."""


class Values:
    """Shows values. If the `__repr__` of a type took too long once, it is not called again."""

    def __init__(self) -> None:
        self.armed = False
        self.slow: list[type] = []
        self.clock = None
        if platform.machine() in TIMER_CALLS:
            self.clock = Clock(signal.SIGVTALRM)
            signal.signal(signal.SIGVTALRM, self._ring)

    def _ring(self, number: int, frame: FrameType | None) -> None:
        if self.armed:
            raise TooSlow

    def show(self, value: object) -> str:
        """The value, at most VALUE_CHARACTERS of it."""
        if type(value) in PLAIN:
            return repr(value)
        return self.guarded(lambda: self.text(value), lambda: self._slow_one(value))

    def text(self, value: object) -> str:
        """Like `show`, but errors and timeouts are not caught."""
        return self._cut(self._text(value, DEPTH))

    def guarded(self, find: Callable[[], str], late: Callable[[], str], timeout_s: float = TIMEOUT_S) -> str:
        """Return the result of a function that may run tested code, or how it failed. Only the test's own alarm is not
        caught."""
        try:
            return self._timed(find, timeout_s)
        except OutOfTime:
            raise
        except TooSlow:
            return late()
        except BaseException as error:  # whatever the test's own code raises
            return "<raised %s>" % self._named(error)

    def _timed(self, find: Callable[[], str], timeout_s: float) -> str:
        self.armed = True
        if self.clock is not None:
            self.clock.set(timeout_s)
        try:
            return find()
        finally:
            self.armed = False
            if self.clock is not None:
                self.clock.set(0)

    def error(self, error: BaseException) -> str:
        """An exception as in the last line of a traceback."""
        name = type.__getattribute__(type(error), "__name__")
        text = self.guarded(
            lambda: self._cut(ADDRESS.sub("", str(error)[:LONG])), lambda: "a message that takes too long"
        )
        return "%s: %s" % (name, text) if text else str(name)

    def _named(self, error: BaseException) -> str:
        name = type.__getattribute__(type(error), "__name__")
        message = error.args[0] if len(error.args) == 1 and type(error.args[0]) is str else ""
        return "%s: %s" % (name, message[:TEXT_CHARACTERS]) if message else str(name)

    def _slow_one(self, value: object) -> str:
        kind = type(value)
        if kind not in BRACKETS and kind is not dict:
            self.slow.append(kind)
        return self._late(kind)

    @staticmethod
    def _late(kind: type) -> str:
        return "<%s: it takes too long to be shown>" % type.__getattribute__(kind, "__name__")

    def _text(self, value: Any, depth: int) -> str:
        kind = type(value)
        if kind in PLAIN:
            return repr(value)
        if kind is int:
            return repr(value) if value.bit_length() <= INTEGER_BITS else "int of %d bits" % value.bit_length()
        if kind in (str, bytes, bytearray):
            return _string(value)
        if kind in BRACKETS or kind is dict:
            return self._container(value, depth)
        return self._object(value, depth)

    def _container(self, value: Any, depth: int) -> str:
        kind, size = type(value), len(value)
        left, right = BRACKETS.get(kind, ("{", "}"))
        if depth == 0 and size:
            return "%s...%s" % (left, right)
        if kind is dict:
            pairs = itertools.islice(value.items(), ITEMS)
            shown = ["%s: %s" % (self._text(key, depth - 1), self._text(each, depth - 1)) for key, each in pairs]
        else:
            shown = [self._text(each, depth - 1) for each in self._some(value)]
        if size > len(shown):
            shown.insert(ITEMS // 2, "...")
        text = left + ", ".join(shown) + ("," if kind is tuple and size == 1 else "") + right
        if kind in (frozenset, deque) or (kind is set and not size):
            text = "%s(%s)" % (kind.__name__, text if size else "")
        return text if size <= ITEMS else "%s (%s of %d)" % (text, kind.__name__, size)

    @staticmethod
    def _some(value: Any) -> Iterable[Any]:
        """The first and last items of an ordered value, else the first ones."""
        if len(value) <= ITEMS or not isinstance(value, (list, tuple)):
            return itertools.islice(value, ITEMS)
        return [*value[: ITEMS // 2], *value[-(ITEMS // 2) :]]

    def _object(self, value: Any, depth: int) -> str:
        kind = type(value)
        name = type.__getattribute__(kind, "__name__")
        if any(kind is each for each in self.slow):
            return self._late(kind)
        own: object = kind.__repr__
        if own is not object.__repr__:
            text = str.__str__(repr(value))
            return ADDRESS.sub("", text if len(text) <= LONG else text[: LONG // 2] + "..." + text[-LONG // 2 :])
        try:
            attributes = object.__getattribute__(value, "__dict__")
        except AttributeError:  # it has slots
            attributes = {}
        if type(attributes) is not dict:
            return "<%s>" % name
        if depth == 0 and attributes:
            return "%s(...)" % name
        some = itertools.islice(attributes.items(), ATTRIBUTES)
        shown = ["%s=%s" % (key, self._text(each, depth - 1)) for key, each in some]
        return "%s(%s%s)" % (name, ", ".join(shown), ", ..." if len(attributes) > ATTRIBUTES else "")

    @staticmethod
    def _cut(text: str) -> str:
        line = text if "\n" not in text else text.replace("\n", "\\n")
        return line if len(line) <= VALUE_CHARACTERS else line[: VALUE_CHARACTERS - 20] + "..." + line[-17:]


def _string(value: Any) -> str:
    if len(value) <= TEXT_CHARACTERS:
        return repr(value)
    kind = type(value).__name__
    ends = value[: TEXT_CHARACTERS // 2], value[-TEXT_CHARACTERS // 4 :]
    return "%r...%r (%s of %d)" % (*ends, kind, len(value))
