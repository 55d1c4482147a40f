"""Programs that Ramify writes into a sandbox beside the tests. They are read as text, never imported on this side."""

from __future__ import annotations

from importlib import resources


def program_source(program: str) -> bytes:
    """The text of a program, by its file name."""
    return (resources.files(__name__) / program).read_bytes()
