"""Describes a cluster, the resources that an instance requests by Ray's names, and how many instances fit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent.errors import UsageError

_OPTIONS = {"CPU": "num_cpus", "GPU": "num_gpus", "memory": "memory"}
"""Resources for which Ray's tasks have an option."""
_AMOUNT = re.compile(r"[0-9]+(\.[0-9]+)?(e[0-9])?")


def read(text: str) -> dict[str, float]:
    """The amounts in `CPU=2,memory=4e9,docker=1`; one CPU if the text names none.

    Raises:
        UsageError: the text is malformed.
    """
    request = {"CPU": 1.0}
    for part in text.split(",") if text else ():
        name, _, amount = part.partition("=")
        if not name or not _AMOUNT.fullmatch(amount):
            raise UsageError(f"--ray-resources {part!r}: write NAME=N, such as CPU=2 or docker=1")
        request[name] = float(amount)
    return request


def options(request: Mapping[str, float]) -> dict[str, Any]:
    """A request as options of a task of Ray."""
    builtin = {_OPTIONS[name]: amount for name, amount in request.items() if name in _OPTIONS}
    return builtin | {
        "resources": {name: amount for name, amount in request.items() if name not in _OPTIONS and amount}
    }


def capacity(machines: Iterable[Mapping[str, float]], request: Mapping[str, float]) -> int:
    """How many instances fit on these machines at the same time; each machine is given by its resources."""
    needs = {name: amount for name, amount in request.items() if amount} or {"CPU": 1.0}
    return sum(min(int(machine.get(name, 0) / amount) for name, amount in needs.items()) for machine in machines)


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster of Ray, and what an instance needs of one of its machines."""

    address: str = "auto"
    resources: Mapping[str, float] = field(default_factory=lambda: read(""))
    environment: Sequence[str] = ()
    """Names of environment variables that are passed to the workers with the values that they have here."""
