"""A conversation that is about to be sent, cut to what the model can read: the oldest results are left out first.

Law: nothing is left out while all of it fits, and then much at once, so that conversations go on beginning with the
same bytes. What a turn was asked without is recorded with it (`agent.policy.chat.transcript.pack`).
"""

from __future__ import annotations

import json
import sys
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

from agent.models import Message
from agent.policy import Position
from agent.policy.chat.briefing import TURNS, opening
from agent.policy.chat.dialects import ToolDialect
from agent.policy.chat.transcript import branch, left_out

__all__ = ["Conversation", "capped"]

BYTES_PER_TOKEN = 3
"""A low figure, so that an estimate is rather too high."""
FULL = 0.8
"""The share of the context at which results are left out; the rest is for the answer."""
KEPT = 0.5
"""The share that is aimed at then."""
ISSUE_SHARE = 0.25
RESULT_SHARE = 0.2
"""Of one turn's results together, in a short context."""


def capped(context_tokens: int | None, soft_cap: int) -> int:
    """What a model is taken to read, so that results are left out above `FULL` of what it can read (None: not known)
    and above the soft cap, whichever is less."""
    return min(context_tokens or sys.maxsize, int(soft_cap / FULL))


class Conversation:
    """What a model is told before its next turn."""

    def __init__(
        self,
        position: Position,
        form: ToolDialect,
        given: Sequence[Message],
        context_tokens: int | None = None,
        most_turns: int = TURNS,
    ) -> None:
        """`given` comes last, after the turns of the branch. `context_tokens`: what the model can read, if known.
        `most_turns`: what it is told that there are."""
        self._position = position
        self.form = form
        self._given = given
        self._context_tokens = context_tokens
        self._most_turns = most_turns
        self._debug = position.path[0].report.adapter == "pytest"
        self._turns = sum(len(node.steps) for node in position.path) + len(position.steps)
        self.left_out = left_out(position.path, position.steps)
        """How many turns of the branch, from the oldest on, are told without their results."""
        if context_tokens is not None and self.tokens() > FULL * context_tokens:
            self._shorten(KEPT * context_tokens)

    def messages(self, later: Sequence[Message] = ()) -> list[Message]:
        """As the provider takes them, with these at the end."""
        told = opening(self._position, self.form.manual(debug=self._debug), self._bytes(ISSUE_SHARE), self._most_turns)
        told += branch(self._position.path, self._position.steps, self.form, self.left_out, self._bytes(RESULT_SHARE))
        return self.form.sent([*told, *self._given, *later])

    def tokens(self) -> float:
        """An estimate, rather too high."""
        return len(json.dumps([self.tools(), self.messages()])) / BYTES_PER_TOKEN

    def tools(self) -> Sequence[Mapping[str, Any]]:
        """What the request offers; `debug` where pytest runs the tests."""
        return self.form.tools(debug=self._debug)

    def shorten(self) -> bool:
        """Leave out so many more results that about half is left. The last turn keeps its own. False: there are none
        that could be left out."""
        before = self.left_out
        self._shorten(self.tokens() / 2)
        return self.left_out > before

    def _shorten(self, tokens: float) -> None:
        def short_enough(left_out: int) -> bool:
            self.left_out = left_out
            return self.tokens() <= tokens

        candidates = range(self.left_out, max(self.left_out, self._turns - 1))
        self.left_out = candidates.start + bisect_left(candidates, True, key=short_enough)

    def _bytes(self, share: float) -> int | None:
        return None if self._context_tokens is None else int(self._context_tokens * share * BYTES_PER_TOKEN)
