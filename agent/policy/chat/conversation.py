"""Shortens a conversation to the model's context before it is sent: the oldest results are left out first.

Invariant: nothing is left out while everything fits. After that, many results are left out at once, so that successive
requests keep a common prefix. Each turn records how many earlier turns were sent without their results
(`agent.policy.chat.transcript.pack`).
"""

from __future__ import annotations

import json
import sys
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

from agent.models import BYTES_PER_TOKEN, Message
from agent.policy import Position
from agent.policy.chat.dialects import ToolDialect
from agent.policy.chat.opening import RESULT_SHARE, TURNS, opening
from agent.policy.chat.transcript import branch, left_out

FULL = 0.8
"""The share of the context above which results are left out; the rest is for the answer."""
KEPT = 0.5
"""The share of the context that a shortened conversation fills."""


def capped(context_tokens: int | None, soft_cap: int) -> int:
    """The context to assume, so that results are left out above `FULL` of the model's context (None: unknown) or above
    the soft cap, whichever is less."""
    return min(context_tokens or sys.maxsize, int(soft_cap / FULL))


def context_bytes(context_tokens: int | None, share: float = 1.0) -> int | None:
    """A share of a model's context in bytes; None if the context is unknown."""
    return None if context_tokens is None else int(context_tokens * share * BYTES_PER_TOKEN)


class Conversation:
    """The messages that a model gets before its next turn."""

    def __init__(
        self,
        position: Position,
        dialect: ToolDialect,
        request: Sequence[Message],
        context_tokens: int | None = None,
        most_turns: int = TURNS,
    ) -> None:
        """`request` comes last, after the turns of the branch. `context_tokens`: the model's context, if known.
        `most_turns`: the turn limit that the model is told."""
        self._position = position
        self._dialect = dialect
        self._request = request
        self._context_tokens = context_tokens
        self._most_turns = most_turns
        self._debug = position.path[0].report.adapter == "pytest"
        self._turns = sum(len(node.steps) for node in position.path) + len(position.steps)
        self.left_out = left_out(position.path, position.steps)
        """How many turns of the branch, oldest first, are sent without their results."""
        if context_tokens is not None and self.tokens() > FULL * context_tokens:
            self._shorten(KEPT * context_tokens)

    def messages(self, later: Sequence[Message] = ()) -> list[Message]:
        """The whole conversation in the form that the provider accepts, with `later` at the end."""
        position, dialect = self._position, self._dialect
        instructions = dialect.instructions(debug=self._debug)
        messages = opening(position, instructions, context_bytes(self._context_tokens), self._most_turns)
        most_bytes = context_bytes(self._context_tokens, RESULT_SHARE)
        messages += branch(position.path, position.steps, dialect, self.left_out, most_bytes)
        return dialect.to_wire([*messages, *self._request, *later])

    def tokens(self) -> float:
        """An estimate of the conversation's length, rather too high."""
        return len(json.dumps([self.tools(), self.messages()])) / BYTES_PER_TOKEN

    def tools(self) -> Sequence[Mapping[str, Any]]:
        """The tools that the request offers; `debug` only if pytest runs the tests."""
        return self._dialect.tools(debug=self._debug)

    def shorten(self) -> bool:
        """Leave out more results, so that about half of the conversation remains. The last turn keeps its results.
        Return False if nothing more can be left out."""
        before = self.left_out
        self._shorten(self.tokens() / 2)
        return self.left_out > before

    def _shorten(self, tokens: float) -> None:
        def short_enough(left_out: int) -> bool:
            self.left_out = left_out
            return self.tokens() <= tokens

        candidates = range(self.left_out, max(self.left_out, self._turns - 1))
        self.left_out = candidates.start + bisect_left(candidates, True, key=short_enough)
