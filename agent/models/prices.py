"""Token prices, and the default limits of a run on models of unknown price."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from agent.errors import UsageError
from agent.models.library import entry_of

UNPRICED_LIMITS = {"max_calls": 1000, "max_tokens": 10_000_000}
"""Default limits on models of unknown price, for a run whose settings limit dollars and neither calls nor tokens."""

REMEDY = (
    f"calls and tokens are limited instead of dollars (by default to {UNPRICED_LIMITS['max_calls']:,} and "
    f"{UNPRICED_LIMITS['max_tokens']:,}); for a limit in dollars, give the price per million tokens: --model-price "
    "IN,OUT[,CACHED] (setting: model.price)"
)


class Price(NamedTuple):
    """Dollars per million tokens."""

    prompt: float
    completion: float
    cached: float | None = None
    """Prompt tokens read from a cache; None: the price of other prompt tokens."""
    written: float | None = None
    """Prompt tokens written to a cache; None: the price of other prompt tokens."""

    def of(self, counts: Mapping[str, Any]) -> float:
        """Dollars for a provider's token counts, in the form of the chat completions interface."""
        details = counts.get("prompt_tokens_details") or {}
        cached = details.get("cached_tokens") or 0
        written = details.get("cache_creation_tokens") or details.get("cache_write_tokens")
        written = written or counts.get("cache_creation_input_tokens") or 0
        plain = (counts.get("prompt_tokens") or 0) - cached - written
        dollars = plain * self.prompt + (counts.get("completion_tokens") or 0) * self.completion
        dollars += cached * (self.prompt if self.cached is None else self.cached)
        dollars += written * (self.prompt if self.written is None else self.written)
        return dollars / 1e6


def parse_price(text: str) -> list[float]:
    """Parse a price from the command line.

    Raises:
        UsageError: it is not a list of numbers.
    """
    try:
        return [float(number) for number in text.split(",")]
    except ValueError as error:
        raise UsageError(
            f"--model-price {text}: give numbers, such as 3,15 or 3,15,0.3: dollars per million tokens of the prompt, "
            "of the completion, and of the prompt if read from a cache"
        ) from error


def listed(name: str, base_url: str | None) -> Price | None:
    """The price in litellm's list; None if the list has none."""
    costs = entry_of(name, base_url)
    keys = ("input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost")
    prompt, completion, cached, written = (costs.get(key) for key in (*keys, "cache_creation_input_token_cost"))
    if not prompt:  # 0 in the list: free, part of a subscription, or unknown
        return None
    return Price(prompt * 1e6, (completion or 0.0) * 1e6, cached and cached * 1e6, written and written * 1e6)
