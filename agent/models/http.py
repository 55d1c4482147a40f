"""HTTP exceptions beneath the clients: newer `openai` clients use httpx2, older ones and litellm use httpx."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec

LIBRARIES = ("httpx", "httpx2")


@cache
def failures(*names: str) -> tuple[type[Exception], ...]:
    """The exception classes of these names in each installed library."""
    installed = [import_module(library) for library in LIBRARIES if find_spec(library) is not None]
    return tuple(getattr(library, name) for library in installed for name in names)
