"""Cache warming: of several requests with a common prefix, the first goes ahead. The others wait until its answer
begins, and then read the prefix from the provider's cache.

Invariants: a request waits for another only if it would then read at least one more block from the cache, so short
requests and those with other prefixes do not wait. Waiting requests that differ only in their seeds may be sent as one
(`agent.models.pace`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

BLOCK_BYTES = 4096
"""About 1,024 tokens: providers cache no shorter prefix (docs.claude.com and platform.openai.com, "Prompt caching"), so
a shorter one is not worth a wait."""
KEPT_S = 300.0
"""A prefix that was not read for this long is cold again: the shortest time that hosted providers promise."""
MOST = 20_000
"""How many blocks are remembered; the least recently read are forgotten first."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A request as a prefix cache sees it."""

    blocks: tuple[bytes, ...]
    """The digests of its prefixes, each a block longer than the one before."""
    patience_s: float = 0.0
    """The longest that it waits for others."""
    draw: bytes = b""
    """Equal for draws from the same distribution; empty: the request is never sent together with others."""


NO_PROMPT = Prompt(())
"""A prompt that never waits."""


def prompt_of(
    model: str,
    tools: Sequence[object],
    messages: Sequence[object],
    patience_s: float,
    sampling: Mapping[str, Any] | None = None,
) -> Prompt:
    """The prompt of a conversation, in the order in which providers read it. With `sampling`, it may be sent together
    with others that differ only in the seed, unless `sampling` has an `n`."""
    text = json.dumps([model, list(tools), *messages]).encode()
    so_far, blocks = blake2b(digest_size=16), list[bytes]()
    for end in range(BLOCK_BYTES, len(text) + 1, BLOCK_BYTES):
        so_far.update(text[end - BLOCK_BYTES : end])
        blocks.append(so_far.digest())
    if sampling is None or "n" in sampling:
        return Prompt(tuple(blocks), patience_s)
    unseeded = {key: value for key, value in sampling.items() if key != "seed"}
    so_far.update(text + json.dumps(unseeded, sort_keys=True).encode())
    return Prompt(tuple(blocks), patience_s, so_far.digest())


class PrefixCache:
    """A model of a provider's cache: the blocks that it likely has, and those about to be written. Not thread-safe."""

    def __init__(self) -> None:
        self._read: dict[bytes, float] = {}
        """When each block was last read, oldest first."""
        self._coming: set[bytes] = set()

    def is_coming(self, prompt: Prompt, now: float) -> bool:
        """Whether a request without an answer yet warms the prompt's first cold block."""
        return next(iter(self._cold(prompt, now)), b"") in self._coming

    def warm(self, prompt: Prompt, now: float) -> frozenset[bytes]:
        """Note that the request is sent; return the blocks that it is the first to warm."""
        first = frozenset(self._cold(prompt, now)) - self._coming
        self._coming |= first
        return first

    def begun(self, prompt: Prompt, first: frozenset[bytes], now: float) -> None:
        """Note that the answer has begun, so that the provider has read the whole prompt."""
        self._coming -= first
        for block in prompt.blocks:
            self._read.pop(block, None)
            self._read[block] = now
        while len(self._read) > MOST:
            del self._read[next(iter(self._read))]

    def given_up(self, first: frozenset[bytes]) -> None:
        """Note that the request ended; blocks that it did not warm are left to others."""
        self._coming -= first

    def _cold(self, prompt: Prompt, now: float) -> list[bytes]:
        is_cold = (self._read.get(block, -math.inf) + KEPT_S < now for block in prompt.blocks)
        first_cold = next((n for n, cold in enumerate(is_cold) if cold), len(prompt.blocks))
        return list(prompt.blocks[first_cold:])
