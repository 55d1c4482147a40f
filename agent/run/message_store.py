"""Message store: each message is stored once, and each conversation as the messages that it adds to an earlier one.

Invariants: the size of what is stored for a conversation is linear in what is new in it; `whole` returns exactly what
was stored.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any


@dataclass(frozen=True, slots=True)
class Passage:
    """The values that a conversation adds to a stored one."""

    digest: str
    """The SHA-256, in hex, of all values of the conversation in order."""
    after: str
    """The digest of its longest stored beginning; empty if nothing of it is stored."""
    new: tuple[Any, ...]
    """The values that follow, each a JSON list or object; a string is the digest of a stored value."""


class Conversations:
    """All conversations of a run: a tree of beginnings, and the values they are made of. A conversation is a sequence
    of JSON lists and objects. One thread may `learn` while others read."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._ends: dict[str, tuple[str, str]] = {}
        """For each beginning: the digest of the same without its last value, and the digest of that value."""

    def shorten(self, values: Sequence[Any]) -> Passage:
        """Return the passage to store for a conversation."""
        names = [digest_of(value) for value in values]
        beginnings = [""]
        for name in names:
            beginnings.append(_longer(beginnings[-1], name))
        known = max(n for n, beginning in enumerate(beginnings) if n == 0 or beginning in self._ends)
        rest = zip(names[known:], values[known:], strict=True)
        new = tuple(name if name in self._values else value for name, value in rest)
        return Passage(beginnings[-1], beginnings[known], new)

    def learn(self, passage: Passage) -> None:
        """Add a stored passage."""
        beginning = passage.after
        for value in passage.new:
            name = value if isinstance(value, str) else self.learn_value(value)
            longer = _longer(beginning, name)
            self._ends[longer] = beginning, name
            beginning = longer

    def learn_value(self, value: Any) -> str:
        """Add a stored value. Returns its digest."""
        name = digest_of(value)
        self._values.setdefault(name, value)
        return name

    def whole(self, digest: str) -> tuple[Any, ...]:
        """Return the values of a conversation, or of the beginning of one. Raises KeyError if it is not stored."""
        return tuple(self._values[name] for name in self.names(digest))

    def names(self, digest: str) -> tuple[str, ...]:
        """Return the digests of the values of a conversation. Raises KeyError like `whole`."""
        found = []
        while digest:
            digest, name = self._ends[digest]
            found.append(name)
        return tuple(reversed(found))

    def beginnings(self, digest: str) -> Iterator[str]:
        """Yield the digests of a conversation and of all its beginnings, the longest first. Raises KeyError like
        `whole`."""
        while digest:
            yield digest
            digest, _ = self._ends[digest]

    def value(self, name: str) -> Any:
        """Return the value with that digest. Raises KeyError if it was not stored."""
        return self._values[name]


def digest_of(value: object) -> str:
    """The SHA-256, in hex, of a JSON value. The order of an object's keys does not matter."""
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return sha256(canonical.encode()).hexdigest()


def _longer(beginning: str, name: str) -> str:
    return sha256(f"{beginning}{name}".encode()).hexdigest()
