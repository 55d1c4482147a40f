"""Refactorings of published packages, laid out like RefactorBench, and what the tracker of references says of them.

    python -m benchmarks.perf.refactorings FOLDER             write the folder
    python -m benchmarks.perf.refactorings FOLDER --check     and grade nothing, half and all of each change
    python -m benchmarks.perf.refactorings FOLDER --track     and compare what is tracked after half of it with the rest

The tasks are in `refactorings.toml`. Half of a change is all that defines a name; the rest is what refers to it.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import sys
import time
import tomllib
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from pathlib import Path
from tempfile import TemporaryDirectory

from agent.evaluate.references import tracked
from agent.parsing import syntax_tree
from benchmarks.data.sources.refactorbench import RefactorBench
from benchmarks.grading.grading import grade
from benchmarks.perf.bench import say
from benchmarks.perf.repositories import fetched
from sandboxes import Provider, Workspace
from sandboxes.git.diff import Difference, Side, patch
from sandboxes.namespace.provider import namespace_provider

TASKS = Path(__file__).with_suffix(".toml")
CHECKER = Path(__file__).with_name("refactoring_checker.py")
Files = Mapping[str, str]
"""The text of each Python file by its path."""
Place = tuple[str, int]
"""A path and a line."""


@dataclass(frozen=True, slots=True)
class Project:
    """A published package with its tests."""

    package: str
    tests: list[str]
    """What pytest is given."""
    passed: int
    """The fewest tests that pass."""
    source: str = ""
    """The folder with its packages; "" for the top."""


@dataclass(frozen=True, slots=True)
class Refactoring:
    """A task. Places are `FILE::NAME`; a change is the files, a pattern, and what replaces it."""

    name: str
    project: str
    lazy: str
    """The instruction."""
    then: list[list[str]]
    """The changes of what refers to it."""
    defined: list[str]
    gone: list[str]
    kept: list[str] = ()  # type: ignore[assignment]
    first: list[list[str]] = ()  # type: ignore[assignment]
    """The changes of what is defined."""
    move: list[str] = ()  # type: ignore[assignment]
    """From, to, the pattern of the text that is moved, and what stands before it in the new file."""
    forbidden: list[list[str]] = ()  # type: ignore[assignment]
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

    def rest(self, files: Files) -> frozenset[Place]:
        """Where, with half of the change, code has still to be changed."""
        found = set[Place]()
        for path, text in files.items():
            for glob, pattern, _ in self.then:
                if fnmatch(path, glob):
                    found |= {(path, text.count("\n", 0, match.start()) + 1) for match in re.finditer(pattern, text)}
        return frozenset(place for place in found if place[1] in code_lines(files[place[0]]))

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


def code_lines(text: str) -> frozenset[int]:
    """The lines that are neither comments nor of docstrings."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    lines = {number for number, line in enumerate(text.splitlines(), 1) if not line.lstrip().startswith("#")}
    for node in ast.walk(syntax_tree(text)):
        if isinstance(node, kinds) and ast.get_docstring(node) is not None:
            lines -= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return frozenset(lines)


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
    """Write the tasks as a folder like RefactorBench. Nothing but what is written is left of what was there."""
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
            places = task.rest(task.half(files))
            facts = f"{len(places)} places in {len({path for path, _ in places})} files"
            yield " | ".join((task.name, facts, *(each.summary for each in verdicts), "ok" if right else "NOT VALID"))


def unchanged(files: Files) -> Files:
    """The files as they are, but for a comment in one, for an empty patch is not graded."""
    path = next(path for path in files if path.endswith(("conftest.py", "tests.py", "tests/__init__.py")))
    return {**files, path: files[path] + "# unchanged\n"}


def track(folder: Path, tasks: Sequence[Refactoring], provider: Provider) -> Iterator[str]:
    """A line for each task: how many of the places that are left are tracked, what else is, and how long it takes."""
    for task in tasks:
        repository = folder / "repositories" / task.project
        files = python_files(repository)
        half = task.half(files)
        base = provider.create(Workspace(repository))
        with provider.at(base) as box:
            for path in files.keys() - half.keys():
                box.remove(path)
            for path, text in half.items():
                if files.get(path) != text:
                    box.write(path, text.encode())
            state = box.snapshot()
        began = time.monotonic()
        found = {(site.path, site.line) for site in tracked(provider, base, state).sites}
        seconds = time.monotonic() - began
        rest = task.rest(half)
        yield f"{task.name} | {len(rest)} | {len(found & rest)} | {len(found - rest)} | {seconds:.2f} s"


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the folder, and print what is asked for."""
    parser = ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--check", action="store_true", help="grade the base state, half of each change, and all of it")
    parser.add_argument("--track", action="store_true", help="compare what is tracked after half of it with the rest")
    parser.add_argument("--only", default="", metavar="TEXT", help="only tasks with this in their names")
    given = parser.parse_args(arguments)
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    projects, tasks = read()
    tasks = [task for task in tasks if given.only in task.name]
    write(given.folder, projects, tasks)
    asked: list[Callable[..., Iterator[str]]] = [check] * given.check + [track] * given.track
    with TemporaryDirectory() as place, namespace_provider(Path(place, "store")) as provider:
        for each in asked:
            for line in each(given.folder, tasks, provider):
                print(line, flush=True)


if __name__ == "__main__":
    main()
