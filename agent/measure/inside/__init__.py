"""Programs that Ramify writes into a sandbox beside the tests. Ramify itself handles them as text, and imports only a
few of their functions."""

from __future__ import annotations

from importlib import resources


def program_source(program: str) -> bytes:
    """The text of a program, by its file name."""
    return (resources.files(__name__) / program).read_bytes()
