"""Digests that identify a set of instances, so that results on two versions of a set are never mixed.

Invariant: a digest covers the work and how it is graded, but not the machine or the mode. A field with its default
value is left out, so that a field that a later version adds changes no digest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from benchmarks.data.instances import Instance

_LOCAL = frozenset({"path", "mount", "goal_tests", "protected_paths", "tags", "mode"})
"""Fields that say where an instance is placed, that depend on the mode, or that hold arbitrary facts."""
_EMPTY: tuple[Any, ...] = (None, "", b"", (), [], {}, False)


def suite_id(instances: Iterable[Instance]) -> str:
    """Twelve hex digits that identify the content of the instances, in any order."""
    lines = sorted(f"{i.id} {instance_digest(i)}" for i in instances)
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()[:12]


def instance_digest(instance: Instance) -> str:
    """The SHA-256, in hex, of an instance's task and of how it is graded."""
    return hashlib.sha256(json.dumps(_content(instance), sort_keys=True).encode()).hexdigest()


def _content(value: Any) -> Any:
    """The value as plain JSON data."""
    if is_dataclass(value):
        named = {field.name: getattr(value, field.name) for field in fields(value) if field.name not in _LOCAL}
        return {name: _content(item) for name, item in named.items() if item not in _EMPTY}
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Mapping):
        return {str(key): _content(item) for key, item in value.items()}
    return [_content(item) for item in value] if isinstance(value, list | tuple | set | frozenset) else value
