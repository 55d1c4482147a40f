"""Code bundle: what is sent to workers, Ramify's own code and the instances."""

from __future__ import annotations

import importlib
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.batch.cluster.task import Order
from benchmarks.data.sources import open_source, parted
from benchmarks.data.sources.bundles import Bundles

__all__ = ["pack"]

_CODE = ("agent", "benchmarks", "prompts", "sandboxes")
_MEANING = re.compile(r"[\\*?\[\]!# ]")
"""Characters with a meaning in patterns of .gitignore."""
_PLACE = "set"
"""Where the instances are for the workers: none of our packages has such a folder, and none is called so. Patterns of
what is left out hold for the code as well, and a worker imports from the folder that this is in."""


def pack(order: Order, out: Path, packed: Path) -> tuple[Order, dict[str, Any]]:
    """The order as workers understand it, and the runtime environment in which they do. `packed` is an empty folder and
    holds a link to the folder of the instances then, or to a file of instances that stands alone, so that nothing that
    lies beside it is sent. The batch's folder stays here.

    Raises:
        UsageError: there are no such instances.
    """
    code = [str(Path(str(importlib.import_module(name).__file__)).parent) for name in _CODE]
    excludes = ["**/__pycache__"]
    shipped: dict[str, Any] = {"py_modules": code, "excludes": excludes}
    place, part = parted(order.source)
    path = Path(place).absolute()
    if not path.exists():
        return order, shipped
    if path.is_file() and not isinstance(open_source(order.source, out), Bundles):
        target, inside = path, ""
    else:
        target, inside = (path.resolve(), "") if path.is_dir() else (path.parent.resolve(), f"/{path.name}")
        if out.resolve().is_relative_to(target):
            batch = f"/{_PLACE}/{target.name}/{out.resolve().relative_to(target)}"
            excludes.append(_MEANING.sub(r"\\\g<0>", batch))
    (packed / _PLACE).mkdir()
    (packed / _PLACE / target.name).symlink_to(target)
    source = f"{_PLACE}/{target.name}{inside}{f':{part}' if part else ''}"
    return replace(order, source=source), shipped | {"working_dir": str(packed)}
