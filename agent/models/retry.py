"""The only retry layer: what is retried, how long it waits, and when it gives up."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from random import Random

from agent.budget import Usage
from agent.counting import counted
from agent.errors import ModelError, RamifyError, Stopped
from agent.models import Completion
from agent.models.halt import Halt
from agent.models.pace import Pace, Slot
from agent.models.warming import NO_PROMPT, Prompt

_NO_SERVER = (
    "start the server, or correct its address: -c model.base_url=URL; for a run that has begun, "
    "ramify resume --base-url URL"
)

log = logging.getLogger(__name__)

UNKNOWN = Usage(model_calls=1, unpriced_calls=1)
"""The usage of a request whose answer was not read to its end. A response with an error status costs nothing."""


class Transient(Exception):
    """A failure that may pass: an overloaded or unreachable provider, or an answer that cannot be read."""

    def __init__(self, message: str, wait_s: float | None = None, usage: Usage | None = None) -> None:
        super().__init__(message)
        self.wait_s = wait_s
        """How long the provider asks to wait; None if it does not say."""
        self.usage = usage or Usage()
        """What the failed attempt cost."""


class Unreachable(Transient):
    """No connection was made to the provider's server. It is not retried if the server has never answered this
    process: then its address is wrong, or nothing runs there."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Exponential back-off with jitter. A wait that the provider asks for is never cut short, and holds for all
    requests to that provider."""

    attempts: int = 8
    first_s: float = 1.0
    most_s: float = 60.0
    patience_s: float = 300.0
    """The longest wait that is accepted; a provider that asks for a longer one has failed for good."""
    sleep: Callable[[float], bool | None] = Halt().sleep
    """Sleeps for these seconds; returns True if the run has ended meanwhile."""
    now: Callable[[], float] = time.monotonic
    rng: Random = field(default_factory=Random)

    def run(self, call: Callable[[Slot], Completion], pace: Pace, prompt: Prompt = NO_PROMPT) -> Completion:
        """The result of `call`, retried while it raises Transient, or the answer that came with another request.
        The usage of the result, or of the error, includes all earlier attempts.

        Raises:
            ModelError: every attempt raised Transient, the wait would be too long, or there is no server.
            agent.errors.Stopped: the run has ended.
        """
        spent, attempt = Usage(), 0
        while True:
            attempt += 1
            try:
                with pace.slot(self._pause_behind, self.now, prompt) as slot:
                    completion = slot.answer or call(slot)
                pace.answered = True
                return replace(completion, usage=spent + completion.usage)
            except Transient as error:
                spent += error.usage
                self._wait(error, attempt, pace, spent)
            except RamifyError as error:
                pace.answered = pace.answered or not isinstance(error, Stopped)
                error.usage += spent
                raise

    def _wait(self, error: Transient, attempt: int, pace: Pace, spent: Usage) -> None:
        """Wait before the next attempt, or raise `ModelError`."""
        try:
            if isinstance(error, Unreachable) and not pace.answered:
                raise ModelError(f"{error}; {_NO_SERVER}") from error
            pace.answered = pace.answered or not isinstance(error, Unreachable)
            asked_s = self._asked_s(error)
            pace.close(self.now() + asked_s)
            if attempt == self.attempts:
                raise ModelError(f"{error} (given up after {counted(attempt, 'attempt')})") from error
            backed_off = min(self.most_s, self.first_s * 2.0 ** (attempt - 1))
            wait_s = max(asked_s, backed_off / 2) + self.rng.uniform(0, backed_off / 2)
            log.warning("%s; attempt %d of %d in %.1f s", error, attempt + 1, self.attempts, wait_s)
            self._pause(wait_s)
        except ModelError as final:
            final.usage += spent
            raise

    def _asked_s(self, error: Transient) -> float:
        asked_s = error.wait_s or 0.0
        if asked_s > self.patience_s:
            raise ModelError(f"{error} (it asks to wait {asked_s:.0f} s)") from error
        return asked_s

    def _pause_behind(self, seconds: float) -> None:
        """Wait as another thread was told to, with jitter, so that not all threads ask again at the same moment."""
        self._pause(seconds + self.rng.uniform(0, min(1.0, seconds / 4)))

    def _pause(self, seconds: float) -> None:
        if self.sleep(seconds):
            raise Stopped("the run ended while it waited for its model provider")


def wait_asked_for(headers: Mapping[str, str], now: Callable[[], float] = time.time) -> float | None:
    """The seconds that the header `Retry-After` or `Retry-After-Ms` asks to wait, at least 0; None without either."""
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
