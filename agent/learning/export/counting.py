"""Counts of an export's rows, messages and tokens, for its manifest and its card."""

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

Count = Callable[[Any], int]
ANSWERED = ("messages", "completion", "chosen", "rejected")
"""Columns with answers that are trained on."""


@dataclass(slots=True)
class Tally:
    """Counts over the written rows."""

    tokens: Count | None = None
    """Counts the tokens of a message; None: only messages are counted."""
    by: dict[str, Counter[str]] = field(default_factory=dict)
    """Rows by split, repository, licence, policy, model, task and outcome."""
    skipped: Counter[str] = field(default_factory=Counter)
    """Rows that were not written, by reason."""
    trained: Counter[str] = field(default_factory=Counter)
    """`messages` in all, `answers` with the loss on, and how many of those are `distinct` in their text or their
    prompt; with a tokenizer also `tokens` and `answer_tokens`."""
    _known: set[str] = field(default_factory=set)

    def add(self, split: str, row: Row) -> None:
        """Count a written row."""
        origin = row["provenance"]
        values: Mapping[str, list[str]] = {
            "split": [split],
            "repository": [origin["repository"]],
            "license": [origin["license"]],
            "policy": origin["policies"],
            "model": origin["models"],
            "task": [origin["task"]],
            "outcome": [origin.get("outcome") or "neither"],
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
    """Return a function that counts the tokens of a message with a `tokenizer.json`, without those that a chat template
    adds.

    Raises:
        UsageError: the file cannot be read, or the library `tokenizers` is not installed.
    """
    try:
        from tokenizers import Tokenizer
    except ModuleNotFoundError as error:
        raise UsageError("--tokenizer needs the library tokenizers: pip install tokenizers") from error
    try:
        loaded = Tokenizer.from_file(str(path / "tokenizer.json" if path.is_dir() else path))
    except Exception as error:  # the library raises this class itself
        raise UsageError(f"--tokenizer {path}: not a tokenizer.json: {error}") from error
    return lambda message: len(loaded.encode(_text(message), add_special_tokens=False).ids)


def _messages(row: Row) -> list[tuple[str, Any, bool]]:
    """The messages of a row, each with the digest of those before it and whether its loss is on."""
    prompt = row.get("prompt", [])
    ends = [row[key] for key in ANSWERED if key in row]
    messages: list[tuple[str, Any, bool]] = []
    for number, end in enumerate(ends or [[]]):
        before = ""
        for place, message in enumerate([*prompt, *end]):
            content = {key: value for key, value in message.items() if key != "train"}
            on = message["role"] == "assistant" and message.get("train", True)
            if number == 0 or place >= len(prompt):
                messages.append((before, content, on and place >= len(prompt)))
            before = digest_of([before, bare(content)])
    return messages


def _text(message: Any) -> str:
    calls = [call["function"] for call in message.get("tool_calls", ())]
    return "\n".join([str(message.get("content") or ""), *(f"{call['name']} {call['arguments']}" for call in calls)])
