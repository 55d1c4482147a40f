"""Stand-in."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from sandboxes import Sandbox


@dataclass(frozen=True)
class Near:
    file: str
    distance: float
    why: str


@dataclass(frozen=True)
class Changed:
    names: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Index:
    files: Mapping[str, Any]


def changed_of(path: str, before: str | None, after: str | None) -> Changed:
    return Changed()


def read_index(box: Sandbox) -> Index:
    found = box.exec(["find", ".", "-name", "*.py"], timeout_s=60).stdout.decode().split()
    return Index({path.removeprefix("./"): () for path in found})


def related(index: Index, changed: Mapping[str, Changed], tests: Collection[str]) -> list[Near]:
    return [Near(file, 1.0, "") for file in tests]
