"""A conversation that is about to be sent, cut to what the model can read: the oldest results are left out first.

Law: nothing is left out while all of it fits, and then much at once, so that conversations go on beginning with the
same bytes. What a turn was asked without is recorded with it (`agent.policy.transcript.pack`).
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Sequence

from agent.models import Message
from agent.policy import Position
from agent.policy.briefing import opening
from agent.policy.forms import Form
from agent.policy.transcript import branch, left_out

__all__ = ["Conversation"]

BYTES_PER_TOKEN = 3
"""A low figure, so that an estimate is rather too high."""
FULL = 0.8
"""The share of the context at which results are left out; the rest is for the answer."""
KEPT = 0.5
"""The share that is aimed at then."""
ISSUE_SHARE = 0.25
RESULT_SHARE = 0.2
"""Of one turn's results together, in a short context."""


class Conversation:
    """What a model is told before its next turn."""

    def __init__(
        self, position: Position, form: Form, given: Sequence[Message], context_tokens: int | None = None
    ) -> None:
        """`given` comes last, after the turns of the branch. `context_tokens`: what the model can read, if known."""
        self._position = position
        self.form = form
        self._given = given
        self._context_tokens = context_tokens
        self._turns = sum(len(node.steps) for node in position.path) + len(position.steps)
        self.left_out = left_out(position.path, position.steps)
        """How many turns of the branch, from the oldest on, are told without their results."""
        if context_tokens is not None and self.tokens() > FULL * context_tokens:
            self._shorten(KEPT * context_tokens)

    def messages(self, later: Sequence[Message] = ()) -> list[Message]:
        """As the provider takes them, with these at the end."""
        told = opening(self._position, self.form.manual(), self._bytes(ISSUE_SHARE))
        told += branch(self._position.path, self._position.steps, self.form, self.left_out, self._bytes(RESULT_SHARE))
        return self.form.sent([*told, *self._given, *later])

    def tokens(self) -> float:
        """An estimate, rather too high."""
        return len(json.dumps([self.form.tools(), self.messages()])) / BYTES_PER_TOKEN

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
