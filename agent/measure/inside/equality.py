"""Check whether assertions could have failed. The text of this program is put into copies of test files.

A value that equals a newly created object equals everything. In the copy, a decoy replaces the expected value; an
assertion that holds with a decoy cannot fail. Neither proves anything. Stdlib only, Python 3.8 and later.

PYTEST_DONT_REWRITE
"""

from __future__ import annotations

import builtins
import os
import random
import sys
from types import TracebackType
from typing import Any, Dict, Iterator, List, Optional, Sequence

EVERYTHING = "a value that equals everything"
UNFAILING = "an assertion that cannot fail"
BUILTIN = "a builtin function of the patch"
DEPTH, MOST, TRIES = 6, 2_000, 24
"""Limits: the depth of nested values, the number of values, and how many numbers or texts a value is compared with."""
COMPARISONS: Dict[str, Any] = {
    "==": lambda left, right: left == right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
    "in": lambda left, right: right in left,
}
SLOT: Any = type(object.__eq__)
draw = random.SystemRandom()


class Unique:
    """Equal only to itself."""


def other(value: Any) -> Any:
    """Return a different value of the same plain type; the value itself if there is none."""
    kind = type(value)
    if kind is int or kind is float:
        return value + draw.randrange(10**9, 10**12)
    if kind is str:
        return value + "%x" % draw.getrandbits(64)
    if kind is bytes:
        return value + b"%x" % draw.getrandbits(64)
    if kind in (list, tuple, set, frozenset):
        return kind(other(each) for each in value)
    if kind is dict:
        return {key: other(each) for key, each in value.items()}
    return value


class Assertions:
    """The checks of one copied test file. Errors start with `marker`. Values of classes outside the patch's `changed`
    files may equal everything if the test, or `words`, name them."""

    def __init__(self, marker: str, words: Sequence[str], changed: Sequence[str]) -> None:
        self.marker, self.words, self.changed = marker, frozenset(words), tuple(os.sep + path for path in changed)
        self.named = self.words
        self.decoys: List[Any] = []
        self.special = False
        """Whether the last seen value contains an object whose class defines equality."""

    def enter(self, words: Sequence[str], used: Sequence[str]) -> None:
        """Start a test that contains these words and uses these builtins."""
        self.named = self.words.union(words)
        if any(self.is_changed(_file(getattr(builtins, name, None))) for name in used):
            self.refuse(BUILTIN)

    def swap(self, value: Any) -> Any:
        """Return a decoy for the value; the value itself if there is none."""
        try:
            new = other(value)
            if new != value:
                self.decoys.append(new)
                return new
        except Exception:  # it may contain objects of any type
            pass
        return value

    def see(self, value: Any, sign: str = "==") -> Any:
        """Check a value that is about to be compared by `sign`; with `in`, it is on the right side."""
        for each in _leaves([value]) if sign in ("==", "in") else ():
            self.special = self.special or _is_special(type(each))
            if _is_special(type(each)) and _equals_everything(each) and not self.is_named(each):
                self.refuse(EVERYTHING)
        if sign != "==" and (_holds(sign, value, Unique()) or (sign != "in" and _holds(sign, Unique(), value))):
            self.refuse(EVERYTHING)
        return value

    def failing(self, expected: Any, method: Any = None) -> Failing:
        """Return a block that must fail if its expected value is a decoy (`self` counts as one). Assertion methods that
        the tests define themselves need not fail."""
        self.special = False
        decoyed = expected is self or any(expected is decoy for decoy in self.decoys)
        return Failing(self, decoyed and (method is None or _is_standard(method)))

    def refuse(self, why: str) -> None:
        """Fail for this reason."""
        raise RuntimeError(self.marker + why)

    def is_changed(self, file: str) -> bool:
        """Whether the patch changes a file."""
        return bool(file) and os.path.realpath(file).endswith(self.changed)

    def is_named(self, value: Any) -> bool:
        """Whether a value may equal everything, because the test names its class or the value."""
        kind = type(value)
        file = _file(kind)
        if not file or self.is_changed(file):
            return False
        known = vars(sys.modules[kind.__module__])
        names = {name for name, each in known.items() if each is value} | {"__eq__"}
        if known.get(kind.__qualname__, kind) is kind:
            names.add(kind.__name__)
        return bool(names & self.named)


class Failing:
    """A block of the copy with an assertion, which has to fail if `wanted`."""

    def __init__(self, assertions: Assertions, wanted: bool) -> None:
        self.assertions, self.wanted = assertions, wanted

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Optional[type], error: Optional[BaseException], trace: Optional[TracebackType]) -> bool:
        """Continue after a wanted failure; refuse an assertion that should have failed."""
        if kind is None and self.wanted and not self.assertions.special:
            self.assertions.refuse(UNFAILING)
        return self.wanted and kind is not None and (issubclass(kind, AssertionError) or kind.__name__ == "Failed")


def _is_standard(method: Any) -> bool:
    """Whether a test has this assertion method from unittest."""
    kinds = type(getattr(method, "__self__", None)).__mro__
    owner = next((kind for kind in kinds if getattr(method, "__name__", "") in vars(kind)), None)
    return owner is not None and owner.__module__ == "unittest.case"


def _file(value: Any) -> str:
    """The file of a function or class, or of an object's class."""
    code = getattr(value, "__code__", None)
    kind = value if isinstance(value, type) else type(value)
    module = sys.modules.get(str(kind.__module__))
    return str(getattr(code, "co_filename", None) or getattr(module, "__file__", None) or "")


def _leaves(values: List[Any]) -> Iterator[Any]:
    """The values and their contents."""
    todo = [(value, 0) for value in values]
    seen: Dict[int, Any] = {}
    while todo and len(seen) < MOST:
        value, depth = todo.pop()
        if id(value) not in seen and depth <= DEPTH:
            seen[id(value)] = value
            yield value
            todo.extend((each, depth + 1) for each in _inside(value))


def _inside(value: Any) -> List[Any]:
    kind = type(value)
    if issubclass(kind, dict):
        return [*dict.keys(value), *dict.values(value)]
    for plain in (list, tuple, set, frozenset):
        if issubclass(kind, plain):
            return list(plain.__iter__(value))
    return list(_attributes(value).values()) if _is_special(kind) else []


def _attributes(value: Any) -> Dict[str, Any]:
    found = dict(getattr(value, "__dict__", None) or {})
    for kind in type(value).__mro__:
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                found[name] = getattr(value, name)
    return found


def _is_special(kind: type) -> bool:
    """Whether a class defines equality in Python."""
    for each in kind.__mro__:
        if "__eq__" in vars(each):
            own: Any = vars(each)["__eq__"]
            return type(own) is not SLOT or own.__name__ != "__eq__" or own.__objclass__ is not each
    return False


def _equals_everything(value: Any) -> bool:
    """Whether a value equals an unknown object, or any number or text, or an object of its class with different
    content."""
    if _holds("==", value, Unique()):
        return True
    if any(all(_holds("==", value, draw.randrange(most)) for _ in range(TRIES)) for most in (100, 10**12)):
        return True
    if any(all(_holds("==", value, other(each)) for _ in range(TRIES)) for each in (0.0, "", b"")):
        return True
    kind, attributes = type(value), _attributes(value)
    try:
        twin = object.__new__(kind)
        for name in attributes:
            object.__setattr__(twin, name, Unique())
    except Exception:  # not every class allows that
        return False
    return bool(attributes) and _holds("==", value, twin)


def _holds(sign: str, left: Any, right: Any) -> bool:
    """Whether a comparison holds. For arrays and queries the result is an object, which does not count as True."""
    try:
        result = COMPARISONS[sign](left, right)
        return result is True or (type(result) in (int, float, str) and bool(result))
    except Exception:  # the values cannot be compared
        return False
