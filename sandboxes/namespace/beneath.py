"""Detects changes in the directories of this machine that every fork of a store shows in their current state.

States do not contain these directories, because copying them would take minutes.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path

_NOTE = "beneath.json"


def stamp(directory: str) -> str:
    """Return a fingerprint of a directory, which changes when packages are installed or removed."""
    top = Path(directory)
    places = (top, *top.glob("*bin"), *top.glob("lib*"), *top.glob("lib*/*-linux-*"))
    pythons = (python for pattern in ("lib*/python*", "python*", "local/lib*/python*") for python in top.glob(pattern))
    packages = [place for python in pythons for place in python.glob("*-packages") if place.is_dir()]
    names = sorted(each.name for place in packages for each in place.iterdir() if each.name != "__pycache__")
    listed = hashlib.blake2b("\0".join(names).encode(errors="surrogateescape"), digest_size=8).hexdigest()
    return f"{directory}@{max(place.stat().st_mtime_ns for place in places if place.exists())}-{listed}"


def note(store: Path, directories: Iterable[str]) -> None:
    """Record the fingerprints of directories that states will use, unless they are recorded already."""
    known = _noted(store)
    new = {directory: stamp(directory) for directory in directories if directory not in known}
    if new:
        draft = store / f"{_NOTE}.{os.getpid()}"
        draft.write_text(json.dumps(known | new), encoding="utf-8")
        draft.replace(store / _NOTE)


def changed(store: Path) -> tuple[str, ...]:
    """List the directories that have changed since the first states of a store were made on them."""
    return tuple(place for place, before in _noted(store).items() if not Path(place).exists() or stamp(place) != before)


def _noted(store: Path) -> dict[str, str]:
    file = store / _NOTE
    known: dict[str, str] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return known
