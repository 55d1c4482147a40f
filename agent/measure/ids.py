"""Test ids: the file they name, and which id contains which."""

from __future__ import annotations

from pathlib import PurePosixPath


def file_of(test_id: str) -> str:
    """The file part of an id, usually relative to the workspace."""
    return test_id.split("::", 1)[0]


def holds(wanted: str, test_id: str) -> bool:
    """Whether `wanted` is the test, or a file, class or unparametrised function that contains it."""
    return test_id == wanted or test_id.startswith((f"{wanted}::", f"{wanted}["))


def is_source_doctest(test_id: str) -> bool:
    """Whether the id names a doctest in a Python module: its name is the dotted name of the documented object."""
    path, _, name = test_id.partition("::")
    return path.endswith(".py") and ("." in name.split("[", 1)[0] or name == PurePosixPath(path).stem)
