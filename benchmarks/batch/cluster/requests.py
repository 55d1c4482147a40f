"""What an instance needs of a machine of the cluster, in Ray's names of resources, and how many fit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from agent.errors import UsageError

__all__ = ["options", "read", "room"]

_OWN = {"CPU": "num_cpus", "GPU": "num_gpus", "memory": "memory"}
"""Resources that Ray has options for."""
_AMOUNT = re.compile(r"[0-9]+(\.[0-9]+)?(e[0-9])?")


def read(text: str) -> dict[str, float]:
    """Amounts from `CPU=2,memory=4e9,docker=1`; one CPU if it is not given.

    Raises:
        UsageError: it is not like that.
    """
    wanted = {"CPU": 1.0}
    for part in text.split(",") if text else ():
        name, _, amount = part.partition("=")
        if not name or not _AMOUNT.fullmatch(amount):
            raise UsageError(f"--ray-resources {part!r} is not like CPU=2 or docker=1")
        wanted[name] = float(amount)
    return wanted


def options(wanted: Mapping[str, float]) -> dict[str, Any]:
    """The amounts as options of a Ray task."""
    own = {_OWN[name]: amount for name, amount in wanted.items() if name in _OWN}
    return own | {"resources": {name: amount for name, amount in wanted.items() if name not in _OWN and amount}}


def room(machines: Iterable[Mapping[str, float]], wanted: Mapping[str, float]) -> int:
    """How many instances fit on these machines at the same time, given the resources of each."""
    asked = {name: amount for name, amount in wanted.items() if amount} or {"CPU": 1.0}
    return sum(min(int(machine.get(name, 0) / amount) for name, amount in asked.items()) for machine in machines)
