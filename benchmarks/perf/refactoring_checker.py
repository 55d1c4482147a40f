"""Checks a refactoring in the style of RefactorBench: what is defined, what is gone, what refers to it, and the tests.

`benchmarks.perf.refactorings` writes a copy for each task. It runs in a folder just below the repository's root, and
does not reveal which places are wrong.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path("..").resolve()
TASK: dict[str, Any] = {}


def names(tree: ast.AST, prefix: str = "") -> Iterator[str]:
    """The dotted names of everything that a module and its classes define, import or assign, and of parameters."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            given = node.args
            parameters = (*given.posonlyargs, *given.args, *given.kwonlyargs)
            yield from (prefix + node.name, *(f"{prefix}{node.name}.{each.arg}" for each in parameters))
        elif isinstance(node, ast.ClassDef):
            yield prefix + node.name
            yield from names(node, f"{prefix}{node.name}.")
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from (prefix + (alias.asname or alias.name) for alias in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield prefix + node.id
        elif isinstance(node, (ast.stmt, ast.expr)):
            yield from names(node, prefix)


def there(place: str) -> bool:
    """Whether this `FILE::NAME`, or this file, exists."""
    path, _, name = place.partition("::")
    file = ROOT / path
    return file.is_file() and (not name or name in names(ast.parse(file.read_bytes())))


@cache
def code(file: Path) -> str:
    """The code of a file in a uniform layout, without comments and docstrings."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    tree = ast.parse(file.read_bytes())
    for node in ast.walk(tree):
        if isinstance(node, documented) and ast.get_docstring(node) is not None:
            node.body[0] = ast.Pass()
    return ast.unparse(tree)


def files(glob: str, *, tests: bool) -> Iterator[Path]:
    """The source files that match: either test files, or all others."""
    for file in ROOT.rglob("*.py"):
        path = file.relative_to(ROOT)
        if fnmatch(str(path), glob) and ("tests" in path.parts) is tests and not file.is_relative_to(Path.cwd()):
            yield file


def adapt() -> None:
    """Change the tests as the task asks, since a grader has restored the original ones."""
    for glob, pattern, new in TASK["then"]:
        for file in files(glob, tests=True):
            file.write_text(re.sub(pattern, new, file.read_text("utf-8")), "utf-8")


def test_the_new_names_are_defined() -> None:
    assert all(there(place) for place in TASK["defined"])


def test_the_old_names_are_not_defined() -> None:
    assert not any(there(place) for place in TASK["gone"])


def test_what_has_nothing_to_do_with_it_is_left() -> None:
    assert all(there(place) for place in TASK["kept"])


def test_nothing_refers_to_the_old_names() -> None:
    for glob, pattern, *_ in (*TASK["then"], *TASK["forbidden"]):
        assert not any(re.search(pattern, code(file)) for file in files(glob, tests=False))


def test_the_tests_of_the_project_pass() -> None:
    adapt()
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    env = {**inherited, "PYTHONPATH": str(ROOT / TASK["source"])}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TASK["tests"]]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    print(done.stdout[-4000:])
    passed = re.search(r"(\d+) passed", done.stdout)
    assert done.returncode == 0, "they do not"
    assert passed, "none were run"
    assert int(passed[1]) >= TASK["passed"], "some are missing"
