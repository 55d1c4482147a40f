"""Splits rows into training, validation and test sets.

Invariant: all rows of a repository are in one split, and more data never moves them: the split is a hash of its name.
An address counts as the name it ends in: `https://example.org/a/b.git` and `git@example.org:a/b` are `a/b`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256

from agent.errors import UsageError

_SERVER = re.compile(r"^(\w+://[^/]+/|[^/@:]+@[^/:]+:/?)")


@dataclass(frozen=True, slots=True)
class Splits:
    """The share of repositories in each split, in percent; they add up to 100."""

    train: int = 100
    validation: int = 0
    test: int = 0

    @classmethod
    def read(cls, text: str) -> Splits:
        """Parse a text such as `90,5,5`. Raises UsageError if it is not of this form."""
        try:
            train, validation, test = (int(share) for share in text.split(","))
        except ValueError as error:
            raise UsageError(f"--split {text!r}: give three whole numbers, such as 90,5,5") from error
        if min(train, validation, test) < 0 or train + validation + test != 100:
            raise UsageError(f"--split {text!r}: give shares of 0 or more that add up to 100")
        return cls(train, validation, test)

    def of(self, repository: str) -> str:
        """The split of a repository."""
        place = bucket(repository)
        if place < self.train:
            return "train"
        return "validation" if place < self.train + self.validation else "test"


def bucket(repository: str) -> int:
    """A number from 0 to 99 that depends only on the repository's name."""
    return int.from_bytes(sha256(plain(repository).encode()).digest()[:8]) % 100


def plain(repository: str) -> str:
    """A repository's name in lower case, without its server and a trailing `.git`."""
    return _SERVER.sub("", repository.lower().removesuffix("/").removesuffix(".git"))
