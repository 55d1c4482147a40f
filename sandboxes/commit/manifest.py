"""Manifests of workspaces: the entry of every path, with digests and differences of manifests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import IO

Entry = tuple[str, int, str]
"""[kind, mode, content hash or link target]; kind is f, l, d or o(ther)."""

Manifest = dict[str, Entry]
"""By path: relative to the workspace, `/`-separated; bytes that are not UTF-8 are surrogate-escaped."""


def hash_of(file: IO[bytes]) -> str:
    """The hash of a file's content."""
    summary = hashlib.blake2b(digest_size=16)
    for part in iter(lambda: file.read(1 << 20), b""):
        summary.update(part)
    return summary.hexdigest()


def delta(old: Manifest, new: Manifest) -> dict[str, Entry | None]:
    """The entries that turn `old` into `new`; None for a deleted path."""
    return {path: new.get(path) for path in sorted(old.keys() | new.keys()) if old.get(path) != new.get(path)}


def apply(base: Manifest, changed: Mapping[str, Entry | None]) -> Manifest:
    """Apply a delta to a manifest."""
    merged = {**base, **changed}
    return {path: entry for path, entry in merged.items() if entry is not None}


def digest(key: str, *deltas: Mapping[str, Entry | None]) -> str:
    """The digest of a state's differences from the base that `key` names. Byte code caches are not counted."""
    counted = [sorted((path, entry) for path, entry in changes.items() if not _is_cache(path)) for changes in deltas]
    return hashlib.blake2b(json.dumps([key, counted]).encode(), digest_size=16).hexdigest()


def _is_cache(path: str) -> bool:
    return any(part in ("__pycache__", ".pytest_cache") for part in path.split("/"))


def differing(old: Manifest, new: Manifest) -> tuple[str, ...]:
    """The paths that differ, sorted, without directories."""
    return tuple(path for path in delta(old, new) if any(side[path][0] != "d" for side in (old, new) if path in side))


def nested_in(manifest: Iterable[str]) -> tuple[str, ...]:
    """The directories (ending in a slash) that are nested repositories."""
    return tuple(path.removesuffix(".git") for path in manifest if path.endswith("/.git"))


def put_back(base: Manifest, new: Manifest, paths: Sequence[str]) -> Manifest:
    """`new` with some paths and everything below them as in `base`; they are absent if `base` lacks them."""
    result = dict(new)
    for path in paths:
        _clear(result, path)
        for parent in _parents(path):
            if parent in base and base[parent][0] == "d" and result.get(parent, ("", 0, ""))[0] != "d":
                _clear(result, parent)
                result[parent] = base[parent]
        parent_is_there = all(result.get(parent, ("", 0, ""))[0] == "d" for parent in _parents(path))
        if parent_is_there:
            result.update({name: entry for name, entry in base.items() if _at_or_below(name, path)})
    return result


def _clear(manifest: Manifest, path: str) -> None:
    for name in [name for name in manifest if _at_or_below(name, path)]:
        del manifest[name]


def _at_or_below(name: str, path: str) -> bool:
    return name == path or name.startswith(path + "/")


def _parents(path: str) -> list[str]:
    """Every directory above a path, outermost first."""
    parts = path.split("/")[:-1]
    return ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
