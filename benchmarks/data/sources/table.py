"""A source of instances from a table of public rows; the columns of a row determine its set."""

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


@dataclass(frozen=True, slots=True)
class Table:
    """Rows whose checkouts are in images. With `reveal`, the hidden tests are in the checkout and protected."""

    name: str
    files: Callable[[], list[Path]]
    """Finds the files when they are needed, which may download a set of the hub."""
    reveal: bool = False

    def instances(self) -> Iterator[Instance]:
        """The instances, in the order of the rows. A row that cannot be used becomes an instance with a `fault`.

        Raises:
            UsageError: no row can be used; the message is the fault of the first.
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
        """Do nothing: the checkout is in the image.

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
                fault = instance.fault or self._fault(number, row, "an earlier row has this instance_id")
                instance = self._broken(f"row-{number}", fault)
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
            return self._broken(_id_of(row) or f"row-{number}", self._fault(number, row, reason))

    def _fault(self, number: int, row: Row | ValueError, reason: str) -> str:
        instance_id = _id_of(row)
        return f"{self.name}, instance {number}{f' ({instance_id})' if instance_id else ''}: {reason}"

    def _broken(self, name: str, fault: str) -> Instance:
        """The instance for a row that cannot be used."""
        task = Task(id=name, statement="", workspace=Workspace(), test_command="")
        mode: Mode = "revealed" if self.reveal else "hidden"
        return Instance(task, Hidden((), (), b"", b""), mode, fault=fault)


def _id_of(row: Row | ValueError) -> str:
    """The row's instance_id; empty if that cannot name a folder."""
    try:
        return "" if isinstance(row, ValueError) else instance_name(str(row.get("instance_id") or ""))
    except ValueError:
        return ""


def revealed(instance: Instance) -> Instance:
    """The instance with the hidden tests in the checkout, as on a red build; a patch may not change them."""
    task, hidden = instance.task, instance.hidden
    place = (not hidden.patch_file and hidden.workspace) or task.workspace
    if hidden.test_patch:
        place = replace(place, setup=(*place.setup, images.applying(hidden.test_patch), images.ALONE))
    goals = hidden.fail_to_pass if all("::" in test for test in hidden.fail_to_pass) else ()
    task = replace(
        task,
        workspace=place,
        test_command=hidden.test_command or task.test_command,
        goal_tests=goals,
        protected_paths=tuple(escape(path) for path in changes.touched(hidden.test_patch)),
    )
    return replace(instance, task=task, mode="revealed")
