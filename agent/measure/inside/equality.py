"""Whether a comparison in a test could have come out otherwise; planted in copies of test files.

A value that equals an object made on the spot equals everything, and a result that equals a decoy, which stands in the
copy where the test has what it expects, was read from there: neither proves anything. Stdlib only, Python 3.8 and
later.

PYTEST_DONT_REWRITE
"""

from __future__ import annotations

import operator
import os
import random
import sys
from typing import Any, Dict, Iterator, List, Sequence, Tuple

EVERYTHING = "a value that equals everything"
READ = "a value that was read from the test"
DEPTH, MOST, TRIES = 6, 2_000, 24
"""How deep values are looked into, how many are, and with how many numbers or texts one is compared."""
COMPARISONS: Dict[str, Any] = {
    "==": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "in": lambda value, container: value in container,
}
SLOT: Any = type(object.__eq__)
draw = random.SystemRandom()


class Anew:
    """Equal to itself only."""


def other(value: Any) -> Any:
    """Another value of the same plain type; an equal one where there is none."""
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


class Comparisons:
    """Those of one copied test file. What is raised begins with `marker`. Values of classes that the patch, which
    changes the files `changed`, leaves alone may equal everything where the test names them, or what `words` are of."""

    def __init__(self, marker: str, words: Sequence[str], changed: Sequence[str]) -> None:
        self.marker, self.words, self.changed = marker, frozenset(words), tuple(os.sep + path for path in changed)
        self.named = self.words
        self.decoys: List[Any] = []

    def enter(self, words: Sequence[str]) -> None:
        """A test in which these words are begins."""
        self.named = self.words.union(words)

    def decoy(self, value: Any) -> Any:
        """The value, which no test expects."""
        self.decoys.append(value)
        return value

    def swap(self, value: Any) -> Any:
        """A decoy in place of the value, where there is one."""
        try:
            new = other(value)
            return self.decoy(new) if new != value else value
        except Exception:  # what it holds may be of any type
            return value

    def holds(self, sign: str, left: Any, right: Any) -> Any:
        """What the comparison comes to."""
        return COMPARISONS[sign](*self.pair(left, right, sign))

    def pair(self, left: Any, right: Any, sign: str = "==") -> Tuple[Any, Any]:
        """The two values, which are about to be compared. With a decoy they hold: with what stood there, they did."""
        special = [each for each in _leaves([left, right]) if _is_special(type(each))]
        for each in special:
            if _equals_everything(each) and not self.is_named(each):
                self.refuse(EVERYTHING)
        if sign != "==" and (_holds(sign, left, Anew()) or _holds(sign, Anew(), right)):
            self.refuse(EVERYTHING)
        for value, expected in ((left, right), (right, left)):
            if any(expected is decoy for decoy in self.decoys):
                if not special and _holds("==", value, expected):
                    self.refuse(READ)
                return value, value
        return left, right

    def refuse(self, why: str) -> None:
        """Fail."""
        raise AssertionError(self.marker + why)

    def is_named(self, value: Any) -> bool:
        """Whether a value may equal everything."""
        kind = type(value)
        module = sys.modules.get(kind.__module__)
        file = getattr(module, "__file__", None)
        if not file or os.path.realpath(file).endswith(self.changed):
            return False
        known = vars(module)
        names = {name for name, each in known.items() if each is value} | {"__eq__"}
        if known.get(kind.__qualname__, kind) is kind:
            names.add(kind.__name__)
        return bool(names & self.named)


def _leaves(values: List[Any]) -> Iterator[Any]:
    """The values, and what is in them."""
    todo, seen = [(value, 0) for value in values], {}  # type: Tuple[List[Tuple[Any, int]], Dict[int, Any]]
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
    """What an object keeps in itself."""
    found = dict(getattr(value, "__dict__", None) or {})
    for kind in type(value).__mro__:
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                found[name] = getattr(value, name)
    return found


def _is_special(kind: type) -> bool:
    """Whether a class says in Python what its objects equal."""
    for each in kind.__mro__:
        if "__eq__" in vars(each):
            own: Any = vars(each)["__eq__"]
            return type(own) is not SLOT or own.__name__ != "__eq__" or own.__objclass__ is not each
    return False


def _equals_everything(value: Any) -> bool:
    """Whether it equals an object that nobody knows, or any number or text, or one of its class in which everything is
    different."""
    if _holds("==", value, Anew()):
        return True
    if any(all(_holds("==", value, other(each)) for _ in range(TRIES)) for each in (0, 0.0, "", b"")):
        return True
    kind, attributes = type(value), _attributes(value)
    try:
        twin = object.__new__(kind)
        for name in attributes:
            object.__setattr__(twin, name, Anew())
    except Exception:  # not every class lets that be done
        return False
    return bool(attributes) and _holds("==", value, twin)


def _holds(sign: str, left: Any, right: Any) -> bool:
    """Whether a comparison says so plainly: of arrays and queries the result is another object."""
    try:
        said = COMPARISONS[sign](left, right)
        return said is True or (type(said) in (int, float, str) and bool(said))
    except Exception:  # it cannot be compared
        return False
