"""A simulated developer with the interface of a model. It knows the parts of each reference solution, finds some of
them, reports which parts an attempt has, and adopts parts from summaries of earlier attempts.

Only the model is simulated: attempts are edits of real repositories, and its summaries and votes answer the questions
that a model gets. Its answers depend on the request and its seed only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from agent.prompts import render
from agent.untrusted import issue_text
from benchmarks.data.instances import Instance
from benchmarks.perf.answering import ATTEMPT, by_letter, called

_FILE = re.compile(r"^--- (?:a/)?(\S+).*\n\+\+\+ (?:b/)?(\S+).*\n", re.MULTILINE)
_HUNK = re.compile(r"^@@ -(\d+)[^\n]*\n((?:[ +\\-][^\n]*\n|\n)*)", re.MULTILINE)
SAYS_IT = "the attempt has part {} of the change"


@dataclass(frozen=True, slots=True)
class Part:
    """One hunk of a patch."""

    path: str
    line: int
    old: str
    new: str
    added: tuple[str, ...]

    @property
    def call(self) -> dict[str, Any]:
        """The arguments of the edit that makes this change."""
        return {"path": self.path, "old": self.old, "new": self.new} | ({"line": self.line} if self.old else {})


def parts(patch: bytes) -> list[Part]:
    """The hunks of a git patch, in its order."""
    text = patch.decode(errors="replace")
    heads = list(_FILE.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return [
        _part(head[2], hunk)
        for head, end in zip(heads, ends, strict=True)
        for hunk in _HUNK.finditer(text, head.end(), end)
    ]


def _part(path: str, hunk: re.Match[str]) -> Part:
    lines = [line for line in hunk[2].splitlines() if line[:1] in (" ", "+", "-", "")]
    old, new = ("\n".join(line[1:] for line in lines if line[:1] != other) for other in "+-")
    added = tuple(line[1:].strip() for line in lines if line[:1] == "+" and line[1:].strip())
    return Part(path, int(hunk[1]), old, new, added)


class Developer:
    """Answers requests for chat completions. Probabilities are in [0, 1]."""

    def __init__(
        self, instances: Iterable[Instance], finds: float = 0.3, takes: float = 0.5, right: float = 0.8
    ) -> None:
        """`finds` is the probability that an attempt finds a part by itself, `takes` that it adopts a part from one
        earlier attempt that has it, and `right` that a vote is for the attempt with the most parts."""
        self._known = {issue_text(each.task.statement).strip(): parts(each.hidden.patch) for each in instances}
        self._finds, self._takes, self._right = finds, takes, right

    def __call__(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """The assistant's message for a request."""
        texts = [str(message.get("content") or "") for message in asked["messages"]]
        whole = "\n".join(texts)
        known = next((found for statement, found in self._known.items() if statement in whole), [])
        rng = Random(f"{asked.get('seed')}/{whole}")
        if texts[0].startswith(render("chat_system").strip()):
            return {"tool_calls": called(self._attempt(known, whole, rng))}
        if texts[0].startswith(render("tournament_system").strip()):
            return {"content": json.dumps(self._vote(known, texts[-1], rng))}
        if texts[0].startswith(render("summary_system").strip()):
            return {"content": json.dumps(_summary(known, whole))}
        return {"content": json.dumps({"steps": []})}

    def _attempt(self, known: Sequence[Part], told: str, rng: Random) -> Iterator[tuple[str, dict[str, Any]]]:
        """The edits, from the last part of a file to the first, so that the lines of earlier parts do not move."""
        for number in reversed(range(len(known))):
            priors = told.count(SAYS_IT.format(number))
            if rng.random() < 1 - (1 - self._finds) * (1 - self._takes) ** priors:
                yield "edit", known[number].call
        yield "submit", {}

    def _vote(self, known: Sequence[Part], question: str, rng: Random) -> dict[str, str]:
        has = {letter: len(_had(known, text)) for letter, text in by_letter(ATTEMPT, question).items()}
        best = max(has, key=lambda letter: has[letter])
        others = [letter for letter in has if letter != best]
        chosen = best if rng.random() < self._right or not others else rng.choice(others)
        return {"winner": chosen, "reason": f"It has {has[chosen]} parts of the change."}


def _had(known: Sequence[Part], text: str) -> list[int]:
    """The numbers of the parts whose lines are in a text."""
    return [number for number, part in enumerate(known) if part.added and all(line in text for line in part.added)]


def _summary(known: Sequence[Part], question: str) -> dict[str, Any]:
    solved = "No test that passed before fails with the change." in question
    insights = [SAYS_IT.format(number) for number in _had(known, question)]
    outcome = "solved" if solved else "improved" if insights else "unchanged"
    return {"hypothesis": "", "outcome": outcome, "progress": "", "insights": insights}
