"""Counting: what an export holds, for its manifest and its card."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.errors import UsageError
from agent.learning.export import Row
from agent.learning.export.turns import bare
from agent.run.message_store import digest_of

__all__ = ["ANSWERED", "Tally", "tokenizer"]

Count = Callable[[Any], int]
ANSWERED = ("messages", "completion", "chosen", "rejected", "preferred_output", "non_preferred_output")
"""Columns that hold answers which are trained on."""


@dataclass(slots=True)
class Tally:
    """Counts over the rows that were written."""

    tokens: Count | None = None
    """Of a message; None: only messages are counted."""
    by: dict[str, Counter[str]] = field(default_factory=dict)
    """Rows by split, repository, licence, policy, model and task."""
    refused: Counter[str] = field(default_factory=Counter)
    """Rows that were not written, by the reason."""
    trained: Counter[str] = field(default_factory=Counter)
    """`answers` have the loss on, `distinct` of them are different in what was said or what they were given to,
    `messages` are all. With a tokenizer also `answer_tokens` and `tokens`."""
    _known: set[str] = field(default_factory=set)

    def add(self, split: str, row: Row) -> None:
        """A row was written."""
        told = row["provenance"]
        values: Mapping[str, list[str]] = {
            "split": [split],
            "repository": [told["repository"]],
            "license": [told["license"]],
            "policy": told["policies"],
            "model": told["models"],
            "task": [told["task"]],
        }
        for key, names in values.items():
            self.by.setdefault(key, Counter()).update(names)
        for before, message, trains in _messages(row):
            self._count(before, message, trains)

    def _count(self, before: str, message: Any, trains: bool) -> None:
        tokens = self.tokens(message) if self.tokens else 0
        self.trained.update(messages=1, tokens=tokens)
        if trains:
            self.trained.update(answers=1, answer_tokens=tokens)
            name = digest_of([before, bare(message)])
            self.trained["distinct"] += name not in self._known
            self._known.add(name)


def tokenizer(path: Path) -> Count:
    """Counts the tokens of a message by a `tokenizer.json`, without what a chat template puts around it.

    Raises:
        UsageError: it cannot be read, or the library `tokenizers` is not installed.
    """
    try:
        from tokenizers import Tokenizer
    except ModuleNotFoundError as error:
        raise UsageError("--tokenizer needs the library tokenizers: pip install tokenizers") from error
    try:
        known = Tokenizer.from_file(str(path / "tokenizer.json" if path.is_dir() else path))
    except Exception as error:  # the library raises this class itself
        raise UsageError(f"--tokenizer {path}: not a tokenizer.json: {error}") from error
    return lambda message: len(known.encode(_text(message), add_special_tokens=False).ids)


def _messages(row: Row) -> list[tuple[str, Any, bool]]:
    """The messages of a row, each with the digest of those before it and whether its loss is on."""
    prompt = row.get("prompt") or row.get("input", {}).get("messages") or []
    ends = [row[key] for key in ANSWERED if key in row]
    found: list[tuple[str, Any, bool]] = []
    for number, end in enumerate(ends or [[]]):
        said = ""
        for place, message in enumerate([*prompt, *end]):
            told = {key: value for key, value in message.items() if key not in ("train", "weight")}
            on = message["role"] == "assistant" and message.get("train", message.get("weight", 1)) in (True, 1)
            if number == 0 or place >= len(prompt):
                found.append((said, told, on and place >= len(prompt)))
            said = digest_of([said, bare(told)])
    return found


def _text(message: Any) -> str:
    calls = [call["function"] for call in message.get("tool_calls", ())]
    return "\n".join([str(message.get("content") or ""), *(f"{call['name']} {call['arguments']}" for call in calls)])
