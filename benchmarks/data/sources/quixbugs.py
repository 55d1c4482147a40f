"""QuixBugs: a folder of programs with one bug each, their corrections, and their tests.

The folder is a clone of github.com/jkoppel/QuixBugs, or one laid out like it. A checkout has one program and its tests,
and never a correction. The tests are always visible, as on a red build: the mode is `revealed`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agent.errors import UsageError
from agent.task import Task
from benchmarks.data import clones
from benchmarks.data.instances import Hidden, Instance
from sandboxes import Workspace
from sandboxes.git.diff import Difference, Side, patch

_BUGGY, _CORRECT, _TESTS, _DATA = "python_programs", "correct_python_programs", "python_testcases", "json_testcases"
_SHARED = ("conftest.py", "LICENSE*", f"{_BUGGY}/node.py", f"{_TESTS}/node.py", f"{_TESTS}/load_testdata.py")
_STATEMENT = """\
`{name}` in `{program}` does not pass its tests. What it should do is described at the end of the file. The tests in
`{tests}` are right and must not be changed.
"""


@dataclass(frozen=True, slots=True)
class QuixBugs:
    """The programs that have a correction and tests, in the order of their names."""

    folder: Path
    work: Path
    """The folder in which checkouts are made, each in its own folder."""

    @staticmethod
    def fits(folder: Path) -> bool:
        """Whether the folder is laid out like QuixBugs."""
        return all((folder / name).is_dir() for name in (_BUGGY, _CORRECT, _TESTS))

    def instances(self) -> Iterator[Instance]:
        """The instances. Raises UsageError if no program has both a correction and tests."""
        names = [name for name in self._names() if self._file(_CORRECT, name).is_file() and self._tests(name).is_file()]
        if not names:
            raise UsageError(f"{self.folder} has no program with a file in {_CORRECT} and a test_NAME.py in {_TESTS}")
        yield from map(self._instance, names)

    def prepare(self, instance: Instance) -> None:
        """Copy the program, its tests and what these import into a new repository."""
        folder = self.work / instance.id
        shutil.rmtree(folder, ignore_errors=True)
        for file in self._files(instance.task.tags["program"]):
            target = folder / file.relative_to(self.folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
        clones.create(folder)

    def _instance(self, name: str) -> Instance:
        program, tests = f"{_BUGGY}/{name}.py", f"{_TESTS}/test_{name}.py"
        sides = [Side("f", 0o644, self._file(kind, name).read_bytes()) for kind in (_BUGGY, _CORRECT)]
        solution = patch([Difference(program, *sides)])
        instance_id = f"QuixBugs-{name}"
        task = Task(
            id=instance_id,
            statement=_STATEMENT.format(name=name, program=program, tests=tests),
            workspace=Workspace(path=self.work / instance_id, mount="/workspace"),
            test_command=f"python3 -m pytest -q -p no:cacheprovider {tests}",
            protected_paths=(f"{_DATA}/*", f"{_TESTS}/node.py", f"{_TESTS}/load_testdata.py"),
            tags={"program": name, "repo": "jkoppel/QuixBugs"},
        )
        hidden = Hidden(fail_to_pass=(tests,), pass_to_pass=(), patch=solution, test_patch=b"")
        return Instance(task, hidden, "revealed", repo="jkoppel/QuixBugs")

    def _names(self) -> list[str]:
        return sorted(path.stem for path in (self.folder / _BUGGY).glob("*.py"))

    def _files(self, name: str) -> Iterator[Path]:
        for pattern in _SHARED:
            yield from self.folder.glob(pattern)
        for file in (self._file(_BUGGY, name), self._tests(name), self.folder / _DATA / f"{name}.json"):
            if file.is_file():
                yield file

    def _file(self, kind: str, name: str) -> Path:
        return self.folder / kind / f"{name}.py"

    def _tests(self, name: str) -> Path:
        return self.folder / _TESTS / f"test_{name}.py"
