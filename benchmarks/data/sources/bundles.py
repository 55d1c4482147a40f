"""Ramify's own format: JSON lines with SWE-bench's fields, each with a git bundle beside the file.

Additional fields: `bundle` (path relative to the file), `test_cmd` (shell command that runs the tests), `requirements`
(pinned packages), `license`, `source_url`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from glob import escape
from pathlib import Path
from shlex import quote
from typing import Any

from benchmarks.data import clones
from benchmarks.data.instances import Instance, InstanceBroken
from benchmarks.data.sources import columns
from benchmarks.data.sources.faults import instances_of
from benchmarks.data.sources.swebench import hidden_of, instance_of
from sandboxes import Workspace

ENV = "/opt/env"
MOUNT = "/workspace"
_ENVIRONMENT = {"TZ": "UTC", "COLUMNS": "80", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
_INSTALLED = {"PATH": f"{ENV}/bin:/usr/local/bin:/usr/bin:/bin", "VIRTUAL_ENV": ENV}
"""Environment variables for instances with requirements."""
_TAGS = ("bundle", "license", "source_url")


@dataclass(frozen=True, slots=True)
class Bundles:
    """A file of instances. With `reveal`, the hidden tests are in the checkout and protected."""

    file: Path
    work: Path
    """The folder in which checkouts are made, each in its own folder."""
    reveal: bool = False

    def instances(self) -> Iterator[Instance]:
        """The instances, in the order of the file (`benchmarks.data.sources.faults`).

        Raises:
            UsageError: no row can be used.
        """
        return instances_of([self.file], self._instance, "revealed" if self.reveal else "hidden")

    def prepare(self, instance: Instance) -> None:
        """Clone the bundle; with `reveal`, add the hidden tests to the base commit."""
        if instance.fault:
            raise InstanceBroken(instance.fault)
        folder = instance.task.workspace.path
        assert folder is not None
        clones.clone(self.file.parent / instance.task.tags["bundle"], instance.task.base, folder)
        if self.reveal:
            clones.reveal(folder, instance.hidden.test_patch)

    def _instance(self, row: Mapping[str, Any]) -> Instance:
        name = columns.instance_name(row["instance_id"])
        columns.path_inside(self.file.parent, row["bundle"])
        hidden = hidden_of(row)
        if not hidden.fail_to_pass:
            raise ValueError("FAIL_TO_PASS is empty: name the tests that fail without the solution and pass with it")
        place = workspace_of(self.work / name, row.get("requirements") or ())
        instance = instance_of(row, place, hidden, row["test_cmd"], language="python")
        tags = {**instance.task.tags, **{key: str(row[key]) for key in _TAGS if row.get(key)}}
        task = replace(instance.task, base=row["base_commit"], tags=tags)
        if not self.reveal:
            return replace(instance, task=task)
        protected = tuple(escape(path) for path in clones.paths_of(hidden.test_patch))
        task = replace(task, goal_tests=hidden.fail_to_pass, protected_paths=protected)
        return replace(instance, task=task, mode="revealed")


def workspace_of(path: Path, requirements: Sequence[str]) -> Workspace:
    """A workspace with a clone and, if there are requirements, a virtual environment with them."""
    env = _ENVIRONMENT | (_INSTALLED if requirements else {})
    return Workspace(path=path, mount=MOUNT, environment=environment_of(requirements), env=env)


def environment_of(requirements: Sequence[str]) -> tuple[str, ...]:
    """The commands that make a virtual environment with these packages in `ENV`; none without packages."""
    packages = " ".join(quote(requirement) for requirement in sorted(requirements))
    install = (f"python3 -m venv {ENV}", f"{ENV}/bin/pip install -q --disable-pip-version-check {packages}")
    return install if packages else ()
