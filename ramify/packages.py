"""Makes Ramify's packages importable even if others have the same names: a repository may have its own package `agent`,
and PYTHONPATH or the working directory may come before the place where Ramify is installed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

PACKAGES = ("agent", "benchmarks", "prompts", "sandboxes")
"""All packages of Ramify except this one. This module is below them and imports none of them."""
_PLACE = Path(__file__).resolve().parent.parent
"""The directory that holds them, and this package."""


class _Finder:
    """Finds those packages in that directory, before any other place is searched."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """As `importlib.abc.MetaPathFinder.find_spec`."""
        return PathFinder.find_spec(name, [str(_PLACE)]) if name in PACKAGES else None


def take_precedence() -> None:
    """Import Ramify's own packages from now on, whatever comes before them on the path.

    Raises:
        ImportError: another package with one of their names has already been imported.
    """
    for name in PACKAGES:
        if (module := sys.modules.get(name)) is not None and _PLACE not in (places := _places(module)):
            where = ", ".join(map(str, places)) or "created at run time"
            raise ImportError(
                f"another package `{name}` is imported here already ({where}), so Ramify cannot run in this process: "
                "run it as a program of its own (`ramify solve --json`)"
            )
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)


def _places(package: ModuleType) -> list[Path]:
    """The directories that hold a package."""
    return [Path(path).resolve().parent for path in getattr(package, "__path__", ())]
