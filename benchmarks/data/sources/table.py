"""A table of public rows, each of whichever set its columns tell, as a source."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from glob import escape
from pathlib import Path

from agent.errors import UsageError
from agent.task import Task
from benchmarks.data.instances import Hidden, Instance, InstanceBroken, Mode
from benchmarks.data.sources import changes, images
from benchmarks.data.sources.blinding import blinded
from benchmarks.data.sources.columns import Row, instance_name
from benchmarks.data.sources.files import read_rows
from benchmarks.data.sources.formats import format_of
from benchmarks.data.sources.swebench import COMMANDS
from sandboxes import Workspace

__all__ = ["Table", "revealed"]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows whose checkouts are in images. With `reveal` the tests that have to pass are there, and protected."""

    name: str
    files: Callable[[], list[Path]]
    """Finds the files when they are needed: a set of the hub is downloaded then."""
    reveal: bool = False

    def instances(self) -> Iterator[Instance]:
        """In the order of the rows. One of a row that cannot be used says so, where any other row can be.

        Raises:
            UsageError: no row can be used; the message says it of the first.
        """
        read = self._read()
        broken = list[Instance]()
        for instance in read:
            if not instance.fault:
                yield from (*broken, instance, *read)
                return
            broken.append(instance)
        if broken:
            raise UsageError(broken[0].fault)

    def prepare(self, instance: Instance) -> None:
        """Nothing is made: the checkout is in the image.

        Raises:
            InstanceBroken: the row cannot be used.
        """
        if instance.fault:
            raise InstanceBroken(instance.fault)

    def _read(self) -> Iterator[Instance]:
        seen: set[str] = set()
        for number, row in enumerate(read_rows(self.files()), 1):
            instance = self._instance(number, row)
            if instance.id in seen:
                twice = instance.fault or self._said(number, row, "another row before it has this instance_id")
                instance = self._broken(f"row-{number}", twice)
            seen.add(instance.id)
            yield instance

    def _instance(self, number: int, row: Row | ValueError) -> Instance:
        try:
            if isinstance(row, ValueError):
                raise row
            instance = format_of(row).read(row)
            return revealed(instance) if self.reveal else blinded(instance, COMMANDS.get(instance.language, ""))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            reason = f"no {error}" if isinstance(error, KeyError) else str(error)
            return self._broken(_id_of(row) or f"row-{number}", self._said(number, row, reason))

    def _said(self, number: int, row: Row | ValueError, reason: str) -> str:
        named = _id_of(row)
        return f"{self.name}, instance {number}{f' ({named})' if named else ''}: {reason}"

    def _broken(self, name: str, fault: str) -> Instance:
        """What stands for a row that cannot be used."""
        task = Task(id=name, statement="", workspace=Workspace(), test_command="")
        mode: Mode = "revealed" if self.reveal else "hidden"
        return Instance(task, Hidden((), (), b"", b""), mode, fault=fault)


def _id_of(row: Row | ValueError) -> str:
    """Its instance_id, where that can name a folder; else empty."""
    try:
        return "" if isinstance(row, ValueError) else instance_name(str(row.get("instance_id") or ""))
    except ValueError:
        return ""


def revealed(instance: Instance) -> Instance:
    """The instance as on a red build: the hidden tests are in the checkout, and a patch may not change them."""
    task, hidden = instance.task, instance.hidden
    place = (not hidden.patch_file and hidden.workspace) or task.workspace
    if hidden.test_patch:
        place = replace(place, setup=(*place.setup, images.applying(hidden.test_patch), images.ALONE))
    goals = hidden.fail_to_pass if all("::" in test for test in hidden.fail_to_pass) else ()
    seen = replace(
        task,
        workspace=place,
        test_command=hidden.test_command or task.test_command,
        goal_tests=goals,
        protected_paths=tuple(escape(path) for path in changes.touched(hidden.test_patch)),
    )
    return replace(instance, task=seen, mode="revealed")
