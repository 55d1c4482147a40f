"""Refactorings of published packages, laid out like RefactorBench.

    python -m benchmarks.perf.refactorings FOLDER             write the folder
    python -m benchmarks.perf.refactorings FOLDER --check     also grade each change undone, half done and done

The tasks are in `refactorings.toml`. Half of a change is all that defines a name; the rest is what refers to it.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tomllib
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.data.sources.refactorbench import RefactorBench
from benchmarks.grading.grading import grade
from benchmarks.perf.bench import say
from benchmarks.perf.repositories import fetched
from sandboxes import Provider
from sandboxes.git.diff import Difference, Side, patch
from sandboxes.namespace.provider import namespace_provider

TASKS = Path(__file__).with_suffix(".toml")
CHECKER = Path(__file__).with_name("refactoring_checker.py")
Files = Mapping[str, str]
"""The text of each Python file by its path."""


@dataclass(frozen=True, slots=True)
class Project:
    """A published package with its tests."""

    package: str
    tests: list[str]
    """The arguments for pytest."""
    passed: int
    """The minimum number of tests that have to pass."""
    source: str = ""
    """The folder with its packages; "" for the top."""


@dataclass(frozen=True, slots=True)
class Refactoring:
    """A task. Places are `FILE::NAME`; a change consists of files, a pattern, and its replacement."""

    name: str
    project: str
    lazy: str
    """The instruction."""
    then: list[list[str]]
    """The changes of everything that refers to it."""
    defined: list[str]
    gone: list[str]
    kept: list[str] = field(default_factory=list)
    first: list[list[str]] = field(default_factory=list)
    """The changes of what is defined."""
    move: list[str] = field(default_factory=list)
    """The old file, the new file, the pattern of the text that is moved, and the text before it in the new file."""
    forbidden: list[list[str]] = field(default_factory=list)
    """Files and patterns in addition to those of `then`."""

    def half(self, files: Files) -> Files:
        """The files when only definitions are changed."""
        after = dict(files)
        if self.move:
            source, target, pattern, head = self.move
            found = re.search(pattern, after[source])
            assert found is not None, f"{self.name}: {source} has no {pattern}"
            after[source] = after[source].replace(found[0], "")
            after[target] = head + found[0].rstrip() + "\n"
        return changed({path: text for path, text in after.items() if text or not files.get(path)}, self.first)

    def all(self, files: Files) -> Files:
        """The files when everything is changed."""
        return changed(self.half(files), self.then)

    def checker(self, project: Project) -> bytes:
        """The program that grades it."""
        task = {key: asdict(self)[key] for key in ("defined", "gone", "kept", "then", "forbidden")} | asdict(project)
        return CHECKER.read_text().replace("= {}\n", f"= {task!r}\n", 1).encode()


def changed(files: Files, changes: Sequence[Sequence[str]]) -> Files:
    """The files after these changes."""
    after = dict(files)
    for glob, pattern, new in changes:
        after |= {path: re.sub(pattern, new, text) for path, text in after.items() if fnmatch(path, glob)}
    return after


def python_files(folder: Path) -> Files:
    """The Python files of a repository."""
    found = (path for path in folder.rglob("*.py") if ".git" not in path.parts)
    return {str(path.relative_to(folder)): path.read_text("utf-8") for path in sorted(found)}


def patch_of(old: Files, new: Files) -> bytes:
    """The patch between the files of a repository."""

    def side(files: Files, path: str) -> Side | None:
        return Side("f", 0o644, files[path].encode()) if path in files else None

    paths = sorted(path for path in {*old, *new} if old.get(path) != new.get(path))
    return patch([Difference(path, side(old, path), side(new, path)) for path in paths])


def read() -> tuple[dict[str, Project], list[Refactoring]]:
    """The projects and the tasks."""
    data = tomllib.loads(TASKS.read_text("utf-8"))
    projects = {name: Project(**fields) for name, fields in data["projects"].items()}
    return projects, [Refactoring(**fields) for fields in data["tasks"]]


def write(folder: Path, projects: Mapping[str, Project], tasks: Sequence[Refactoring]) -> None:
    """Write the tasks as a folder like RefactorBench's. Anything else in the folder is removed."""
    for name in ("problems", "tests", "scripts", "repositories"):
        shutil.rmtree(folder / name, ignore_errors=True)
    pairs = {}
    for name, project in projects.items():
        source = fetched(project.package, say)
        shutil.copytree(source, folder / "repositories" / name, ignore=shutil.ignore_patterns(".git"))
    for task in tasks:
        checker = Path("tests", task.project, f"{task.name}-test.py")
        problem = Path("problems", "lazy_problems", task.project, f"{task.name}.txt")
        pairs[f"../{checker}"] = f"../{problem}"
        for path, content in ((checker, task.checker(projects[task.project])), (problem, task.lazy.encode())):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
    (folder / "scripts").mkdir()
    (folder / "scripts" / "lazy_mapping.py").write_text(f"file_mapping = {pairs!r}\n")


def check(folder: Path, tasks: Sequence[Refactoring], provider: Provider) -> Iterator[str]:
    """A line for each task: how its checker grades the base state, half of the change, and all of it."""
    with TemporaryDirectory() as work:
        source = RefactorBench(folder, Path(work), "lazy")
        for task, instance in zip(tasks, source.instances(), strict=True):
            files = python_files(folder / "repositories" / task.project)
            patches = [patch_of(files, make(files)) for make in (unchanged, task.half, task.all)]
            verdicts = [grade(instance, each, source, provider) for each in patches]
            right = [verdict.status for verdict in verdicts[1:]] == ["unresolved", "resolved"]
            yield " | ".join((task.name, *(each.summary for each in verdicts), "ok" if right else "NOT VALID"))


def unchanged(files: Files) -> Files:
    """The files with only a comment added to one of them, since an empty patch is not graded."""
    path = next(path for path in files if path.endswith(("conftest.py", "tests.py", "tests/__init__.py")))
    return {**files, path: files[path] + "# unchanged\n"}


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the folder, and print the grades if the command line asks for them."""
    parser = ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--check", action="store_true", help="grade the base state, half of each change, and all of it")
    parser.add_argument("--only", default="", metavar="TEXT", help="only tasks with this in their names")
    given = parser.parse_args(arguments)
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    projects, tasks = read()
    tasks = [task for task in tasks if given.only in task.name]
    write(given.folder, projects, tasks)
    if given.check:
        with TemporaryDirectory() as place, namespace_provider(Path(place, "store")) as provider:
            for line in check(given.folder, tasks, provider):
                print(line, flush=True)


if __name__ == "__main__":
    main()
