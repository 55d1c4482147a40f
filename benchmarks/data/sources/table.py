"""A source of instances from a table of public rows; the columns of a row determine its set."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from glob import escape
from pathlib import Path

from benchmarks.data.instances import Instance, InstanceBroken
from benchmarks.data.sources import changes, images
from benchmarks.data.sources.blinding import blinded
from benchmarks.data.sources.columns import Row
from benchmarks.data.sources.faults import instances_of
from benchmarks.data.sources.formats import format_of
from benchmarks.data.sources.swebench import COMMANDS


@dataclass(frozen=True, slots=True)
class Table:
    """Rows whose checkouts are in images. With `reveal`, the hidden tests are in the checkout and protected."""

    name: str
    files: Callable[[], list[Path]]
    """Finds the files when they are needed; this may download a set from the hub."""
    reveal: bool = False

    def instances(self) -> Iterator[Instance]:
        """The instances, in the order of the rows (`benchmarks.data.sources.faults`).

        Raises:
            UsageError: no row can be used.
        """
        return instances_of(self.files(), self._instance, "revealed" if self.reveal else "hidden")

    def prepare(self, instance: Instance) -> None:
        """Do nothing: the checkout is in the image.

        Raises:
            InstanceBroken: the row cannot be used.
        """
        if instance.fault:
            raise InstanceBroken(instance.fault)

    def _instance(self, row: Row) -> Instance:
        instance = format_of(row).read(row)
        return revealed(instance) if self.reveal else blinded(instance, COMMANDS.get(instance.language, ""))


def revealed(instance: Instance) -> Instance:
    """The instance with the hidden tests in the checkout, as on a red build; a patch may not change them."""
    task, hidden = instance.task, instance.hidden
    place = (not hidden.patch_file and hidden.workspace) or task.workspace
    if hidden.test_patch:
        place = replace(place, setup=(*place.setup, images.applying(hidden.test_patch), images.SINGLE_COMMIT))
    goals = hidden.fail_to_pass if all("::" in test for test in hidden.fail_to_pass) else ()
    task = replace(
        task,
        workspace=place,
        test_command=hidden.test_command or task.test_command,
        goal_tests=goals,
        protected_paths=tuple(escape(path) for path in changes.touched(hidden.test_patch)),
    )
    return replace(instance, task=task, mode="revealed")
