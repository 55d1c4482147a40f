"""The one retry layer: what is tried again, how long is waited, and when it is given up."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from random import Random
from typing import TypeVar

from agent.errors import ModelError

__all__ = ["Retry", "Transient", "wait_asked_for"]

log = logging.getLogger(__name__)
T = TypeVar("T")


class Transient(Exception):
    """A failure that may pass: an overloaded or unreachable provider, an answer that cannot be read."""

    def __init__(self, message: str, wait_s: float | None = None) -> None:
        super().__init__(message)
        self.wait_s = wait_s
        """How long the provider asks to wait; None: it does not say."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Exponential back-off with jitter; a wait that the provider asks for is never cut short."""

    attempts: int = 8
    first_s: float = 1.0
    most_s: float = 60.0
    patience_s: float = 300.0
    """A provider that asks for a longer wait has failed for good."""
    sleep: Callable[[float], None] = time.sleep
    rng: Random = field(default_factory=Random)

    def run(self, call: Callable[[], T]) -> T:
        """What `call` returns, once it does not raise Transient.

        Raises:
            ModelError: it raised Transient every time, or the wait would be too long.
        """
        for attempt in range(1, self.attempts + 1):
            try:
                return call()
            except Transient as error:
                if attempt == self.attempts:
                    raise ModelError(f"{error} (given up after {attempt} attempts)") from error
                if error.wait_s is not None and error.wait_s > self.patience_s:
                    raise ModelError(f"{error} (it asks to wait {error.wait_s:.0f} s)") from error
                wait_s = self._wait_s(attempt, error.wait_s or 0.0)
                log.info("%s; attempt %d in %.1f s", error, attempt + 1, wait_s)
                self.sleep(wait_s)
        raise ValueError(f"attempts is {self.attempts}: it has to be at least 1")

    def _wait_s(self, attempt: int, asked_s: float) -> float:
        backed_off = min(self.most_s, self.first_s * 2.0 ** (attempt - 1))
        return max(asked_s, backed_off / 2) + self.rng.uniform(0, backed_off / 2)


def wait_asked_for(headers: Mapping[str, str], now: Callable[[], float] = time.time) -> float | None:
    """Seconds that a response's `Retry-After` (or `Retry-After-Ms`) asks to wait, at least 0; None when it does not."""
    milliseconds, after = headers.get("retry-after-ms"), headers.get("retry-after")
    try:
        if milliseconds is not None:
            return max(0.0, float(milliseconds) / 1000)
        if after is None:
            return None
        if after.strip().replace(".", "", 1).isdecimal():
            return float(after)
        seconds: float = parsedate_to_datetime(after).timestamp() - now()
        return max(0.0, seconds)
    except ValueError:
        return None
