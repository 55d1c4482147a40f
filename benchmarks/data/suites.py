"""Suite: the name of what a set of instances is, so that numbers of two snapshots of it are never mixed.

Law: it names the work and what decides about it, and nothing of the machine or the mode. A field that has its default
says nothing, so that one which a later version adds changes no name.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from benchmarks.data.instances import Instance

__all__ = ["instance_digest", "suite_id"]

_LOCAL = frozenset({"path", "mount", "goal_tests", "protected_paths", "tags", "mode"})
"""Where an instance is put, what a mode makes of it, and free facts."""
_EMPTY: tuple[Any, ...] = (None, "", b"", (), [], {}, False)


def suite_id(instances: Iterable[Instance]) -> str:
    """Twelve hex digits that name the instances' content, in whatever order they come."""
    lines = sorted(f"{each.id} {instance_digest(each)}" for each in instances)
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()[:12]


def instance_digest(instance: Instance) -> str:
    """The SHA-256, in hex, of what an instance asks for and is graded by."""
    return hashlib.sha256(json.dumps(_content(instance), sort_keys=True).encode()).hexdigest()


def _content(value: Any) -> Any:
    """As JSON has it."""
    if is_dataclass(value):
        named = {each.name: getattr(value, each.name) for each in fields(value) if each.name not in _LOCAL}
        return {name: _content(item) for name, item in named.items() if item not in _EMPTY}
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Mapping):
        return {str(key): _content(item) for key, item in value.items()}
    return [_content(item) for item in value] if isinstance(value, list | tuple | set | frozenset) else value
