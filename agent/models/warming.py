"""Warming: requests that begin alike do not all ask a cold prefix cache; the first goes ahead until its answer begins.

Laws: a request waits for another only where it would then read at least one block more from the cache; short requests,
and those that begin otherwise, wait for nobody. Of those that wait, requests that are alike but for their seed may go
on as one (`agent.models.pace`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

__all__ = ["NO_PROMPT", "PrefixCache", "Prompt", "prompt_of"]

BLOCK_BYTES = 4096
"""About 1,024 tokens: providers keep no shorter beginning (docs.claude.com and platform.openai.com, "Prompt caching"),
so that a shorter one is not worth a wait."""
KEPT_S = 300.0
"""A beginning that was not read for so long is cold again: what hosted providers promise at least."""
MOST = 20_000
"""Blocks that are remembered; those that were read longest ago are forgotten first."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a prefix cache sees of a request."""

    blocks: tuple[bytes, ...]
    """The digest of each of its beginnings, each a block longer than the one before."""
    patience_s: float = 0.0
    """The longest that it waits for others."""
    draw: bytes = b""
    """What it has in common with other draws from the same distribution; empty: it is always asked for by itself."""


NO_PROMPT = Prompt(())
"""Waits for nobody."""


def prompt_of(
    model: str,
    tools: Sequence[object],
    messages: Sequence[object],
    patience_s: float,
    sampling: Mapping[str, Any] | None = None,
) -> Prompt:
    """The prompt of a conversation, in the order in which providers read it. With `sampling` it may be asked for
    together with others that differ in the seed alone; a `n` of its own says otherwise."""
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
    """What a provider has most likely in its cache, and what it is about to get. Not thread-safe."""

    def __init__(self) -> None:
        self._read: dict[bytes, float] = {}
        """When each block was read last, in that order."""
        self._coming: set[bytes] = set()

    def is_coming(self, prompt: Prompt, now: float) -> bool:
        """Whether somebody who has no answer yet warms the first block that is cold."""
        return next(iter(self._cold(prompt, now)), b"") in self._coming

    def warm(self, prompt: Prompt, now: float) -> frozenset[bytes]:
        """The request is sent; the blocks that it is the first to warm."""
        first = frozenset(self._cold(prompt, now)) - self._coming
        self._coming |= first
        return first

    def begun(self, prompt: Prompt, first: frozenset[bytes], now: float) -> None:
        """Its answer has begun: the provider has read all of it."""
        self._coming -= first
        for block in prompt.blocks:
            self._read.pop(block, None)
            self._read[block] = now
        while len(self._read) > MOST:
            del self._read[next(iter(self._read))]

    def given_up(self, first: frozenset[bytes]) -> None:
        """It has ended; what it did not come to warm is for others."""
        self._coming -= first

    def _cold(self, prompt: Prompt, now: float) -> list[bytes]:
        warm = [self._read.get(block, -math.inf) + KEPT_S >= now for block in prompt.blocks]
        known = next((n for n, is_warm in enumerate(warm) if not is_warm), len(warm))
        return list(prompt.blocks[known:])
