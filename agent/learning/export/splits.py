"""Splits: which rows are trained on, and which are kept to validate and to test with.

Law: all rows of a repository are in one split, and more data never moves them: the split is a hash of its name. An
address names the same repository as what it ends in: `https://example.org/a/b.git` and `git@example.org:a/b` are `a/b`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256

from agent.errors import UsageError

__all__ = ["Splits", "bucket", "plain"]

NAMES = ("train", "validation", "test")
_SERVER = re.compile(r"^(\w+://[^/]+/|[^/@:]+@[^/:]+:/?)")


@dataclass(frozen=True, slots=True)
class Splits:
    """Shares of the repositories, in percent: they add up to 100."""

    train: int = 100
    validation: int = 0
    test: int = 0

    @classmethod
    def read(cls, text: str) -> Splits:
        """Such as `90,5,5`. Raises UsageError when it is not."""
        try:
            train, validation, test = (int(share) for share in text.split(","))
        except ValueError as error:
            raise UsageError(f"--split {text!r}: give three whole numbers, such as 90,5,5") from error
        if min(train, validation, test) < 0 or train + validation + test != 100:
            raise UsageError(f"--split {text!r}: give shares of 0 or more that add up to 100")
        return cls(train, validation, test)

    def of(self, repository: str) -> str:
        """The name of the split that a repository is in."""
        place = bucket(repository)
        if place < self.train:
            return "train"
        return "validation" if place < self.train + self.validation else "test"


def bucket(repository: str) -> int:
    """From 0 to 99, by the name alone."""
    return int.from_bytes(sha256(plain(repository).encode()).digest()[:8]) % 100


def plain(repository: str) -> str:
    """A repository's name without what does not count: the server that it is on, case and a trailing `.git`."""
    return _SERVER.sub("", repository.lower().removesuffix("/").removesuffix(".git"))
