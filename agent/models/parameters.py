"""The parameters of a request, from the settings and from the call.

Invariant: parameters are recorded as they were set, whichever client sends them. Each client sends only those that its
model accepts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of the settings. None means the provider's default."""

    temperature: float | None = None
    reasoning_effort: str | None = None
    thinking_tokens: int | None = None
    body: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of each request, which override all others."""

    def with_those_of(self, call: Mapping[str, Any]) -> dict[str, Any]:
        """All parameters of a call: its own override the settings, and `body` overrides both."""
        settings = {name: getattr(self, name) for name in ("temperature", "reasoning_effort", "thinking_tokens")}
        return {**{name: value for name, value in settings.items() if value is not None}, **call, **self.body}


def without(parameters: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """The parameters except these."""
    return {name: value for name, value in parameters.items() if name not in names}
