"""What goes wrong beneath the `openai` client: newer ones speak HTTP by httpx2, older ones and litellm by httpx."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec

__all__ = ["failures"]

LIBRARIES = ("httpx", "httpx2")


@cache
def failures(*names: str) -> tuple[type[Exception], ...]:
    """The exceptions of these names, of each of the libraries that is installed."""
    found = [import_module(library) for library in LIBRARIES if find_spec(library) is not None]
    return tuple(getattr(library, name) for library in found for name in names)
