"""Makes instances from the rows of files. A row that cannot be used becomes an instance with a fault."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from agent.counting import counted
from agent.errors import UsageError
from agent.task import Task
from benchmarks.data.clones import GitRefused
from benchmarks.data.instances import Hidden, Instance, Mode
from benchmarks.data.sources.columns import Row, instance_name
from benchmarks.data.sources.files import read_rows
from sandboxes import Workspace

SHOWN = 5
"""The largest number of faults in one message."""


def instances_of(files: Iterable[Path], make: Callable[[Row], Instance], mode: Mode) -> Iterator[Instance]:
    """Return the instances that `make` makes from the rows of files, in order. The fault of a row names its file and
    line.

    Raises:
        UsageError: no row can be used; the message gives the faults of the first rows.
    """
    read = _all(files, make, mode)
    broken = list[Instance]()
    for instance in read:
        if not instance.fault:
            yield from (*broken, instance, *read)
            return
        broken.append(instance)
    if broken:
        rest = len(broken) - SHOWN
        more = [f"and {counted(rest, 'more row', 'more rows')} that cannot be used"] if rest > 0 else []
        raise UsageError("\n".join([*(instance.fault for instance in broken[:SHOWN]), *more]))


def _all(files: Iterable[Path], make: Callable[[Row], Instance], mode: Mode) -> Iterator[Instance]:
    seen: set[str] = set()
    for number, (place, row) in enumerate(read_rows(files), 1):
        name = _id_of(row)
        where = f"{place} ({name})" if name else place
        try:
            if isinstance(row, ValueError):
                raise row
            instance = make(row)
            if instance.id in seen:
                name = ""
                raise ValueError("an earlier row has this instance_id")
        except (KeyError, TypeError, ValueError, AttributeError, GitRefused) as error:
            instance = _broken(name or f"row-{number}", f"{where}: {_reason(error)}", mode)
        seen.add(instance.id)
        yield instance


def _reason(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"no field {error}"
    return f"test_patch is no git patch: {error}" if isinstance(error, GitRefused) else str(error)


def _id_of(row: Row | ValueError) -> str:
    """The row's instance_id; empty if that cannot name a folder."""
    try:
        return "" if isinstance(row, ValueError) else instance_name(str(row.get("instance_id") or ""))
    except ValueError:
        return ""


def _broken(name: str, fault: str, mode: Mode) -> Instance:
    """The instance for a row that cannot be used."""
    task = Task(id=name, statement="", workspace=Workspace(), test_command="")
    return Instance(task, Hidden((), (), b"", b""), mode, fault=fault)
