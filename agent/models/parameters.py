"""Parameters: what a request asks of a model beside its conversation, from the settings and from the call.

Law: they are recorded as they are set, whatever client sends them; each sends what its model takes of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Parameters", "without"]


@dataclass(frozen=True, slots=True)
class Parameters:
    """Those of the settings; None: as the provider has it."""

    temperature: float | None = None
    reasoning_effort: str | None = None
    thinking_tokens: int | None = None
    body: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of each request, which go before all others."""

    def with_those_of(self, call: Mapping[str, Any]) -> dict[str, Any]:
        """All parameters of a call, whose own go before the settings'."""
        own = {name: getattr(self, name) for name in ("temperature", "reasoning_effort", "thinking_tokens")}
        return {**{name: value for name, value in own.items() if value is not None}, **call, **self.body}


def without(parameters: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """All but those of these names."""
    return {name: value for name, value in parameters.items() if name not in names}
