"""The adapters by name, and which of them fits a command or a repository."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path

from agent.errors import UsageError
from agent.measure.adapters import Adapter
from agent.measure.adapters.cargo import CARGO
from agent.measure.adapters.django import DJANGO
from agent.measure.adapters.go import GO
from agent.measure.adapters.javascript import JEST, NODE, VITEST
from agent.measure.adapters.junit import GRADLE, JUNIT, MAVEN
from agent.measure.adapters.logs import LOG, LOGS
from agent.measure.adapters.sympy import SYMPY
from agent.measure.adapters.unittests import UNITTEST
from agent.parsing import loads

__all__ = ["ADAPTERS", "FRAMEWORKS", "OF_PYTHON", "adapter_of", "choose", "meant", "named_in"]

ADAPTERS: Mapping[str, Adapter] = {
    each.name: each for each in (UNITTEST, DJANGO, SYMPY, GO, CARGO, MAVEN, GRADLE, NODE, JEST, VITEST, JUNIT)
}
FRAMEWORKS = ("pytest", *ADAPTERS, "exit-code")
"""What can be named. pytest is measured by a plugin of its own (`agent.measure.warm.planting`); `exit-code`, the
weakest, is any command as one test. There are besides `LOGS`, for commands whose output a parser reads."""
OF_PYTHON = ("pytest", "unittest", "django", "sympy")
"""Those whose ids are `file::Class::test` or `file::test`, of files of Python."""
PYTEST_COMMAND = "python3 -m pytest -q"
PYTEST = re.compile(r"\bpy\.?test\b")
PYTHON_FILES = ("pyproject.toml", "setup.py", "setup.cfg", "pytest.ini", "tox.ini", "conftest.py")
MARKS = {
    "go.mod": "go",
    "Cargo.toml": "cargo",
    "pom.xml": "maven",
    "build.gradle": "gradle",
    "build.gradle.kts": "gradle",
}
PYTHON = re.compile(r"(^|[\s;&|(/])(python[\d.]*|tox|nox)(?=\s|$)")
SCRIPTED = re.compile(r"\b(npm|yarn|pnpm|bun)\b")
"""Runs what package.json says."""


def choose(repo: Path | None, command: str | None, framework: str | None) -> tuple[str, str]:
    """The framework of a task and the command that runs its tests, either of which may be given; the framework is empty
    where it is pytest that is supposed and nobody named. `repo`: None where the files are in an image.

    Raises:
        agent.errors.UsageError: there is no such framework; none is recognised; or it has no command of its own.
    """
    if framework is None:
        found = named_in(command or "", repo) or (_detect(repo, command or "") if repo else "pytest")
        return ("" if found == "pytest" else found), command or _command(found)
    if framework not in (*FRAMEWORKS, *LOGS):
        near = get_close_matches(framework, [*FRAMEWORKS, *LOGS], n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        parsers = ", ".join(name.removeprefix(LOG) for name in LOGS)
        known = parsers if framework.startswith(LOG) else f"{', '.join(FRAMEWORKS)}, {LOG}PARSER"
        raise UsageError(f"--test-framework {framework}: {hint}it is one of {known}")
    if not command and not _command(framework):
        raise UsageError(f"--test-framework {framework} has no command of its own: name the one to run with --test")
    return framework, command or _command(framework)


def adapter_of(framework: str) -> Adapter | None:
    """None: it is pytest, or an exit code."""
    return ADAPTERS.get(framework) or LOGS.get(framework)


def named_in(command: str, repo: Path | None = None) -> str | None:
    """The framework that a command names, pytest before others; None where it names none, or several others. `repo`: as
    in `choose`."""
    if PYTEST.search(command):
        return "pytest"
    found = (each for each in (*ADAPTERS.values(), *LOGS.values()) if each.named.search(command))
    named = [adapter.name for adapter in found if adapter.fits(repo, command)]
    return named[0] if len(named) == 1 else None


def meant(framework: str, command: str) -> str:
    """The framework of a task: the one that was named or found when it was made, else the one that its command names,
    else pytest."""
    return framework or named_in(command) or "pytest"


def _command(framework: str) -> str:
    """What runs all tests where nobody says; empty where nobody can know."""
    if framework == "pytest":
        return PYTEST_COMMAND
    return ADAPTERS[framework].command if framework in ADAPTERS else ""


def _detect(repo: Path, command: str) -> str:
    """By the files in the root: Python's go first, unless the command runs what package.json says; by the command where
    it runs Python."""
    package = _of_package(repo / "package.json")
    if package and SCRIPTED.search(command):
        return package
    if PYTHON.search(command) or any((repo / name).is_file() for name in PYTHON_FILES):
        return "pytest"
    marked = next((framework for name, framework in MARKS.items() if (repo / name).is_file()), package)
    if marked:
        return marked
    if command or _has_python_tests(repo):
        return "pytest"
    raise UsageError(
        f"no test framework is recognised in {repo}: name the command that runs its tests with --test, and the "
        f"framework with --test-framework ({', '.join(FRAMEWORKS)})"
    )


def _of_package(file: Path) -> str | None:
    """What a package.json says: in its test script, else among what it depends on, else node's own runner."""
    try:
        package = loads(file.read_bytes())
    except (OSError, ValueError):
        return None
    if not isinstance(package, dict):
        return None
    scripts, wanted = package.get("scripts"), package.get("devDependencies")
    test = str(scripts.get("test", "")) if isinstance(scripts, dict) else ""
    depends = wanted if isinstance(wanted, dict) else {}
    runners = (JEST, VITEST, NODE)
    named = [runner.name for runner in runners if runner.named.search(test)]
    return next(iter([*named, *(runner.name for runner in runners if runner.name in depends)]), None)


def _has_python_tests(repo: Path) -> bool:
    return any(next(repo.glob(pattern), None) for pattern in ("test_*.py", "*_test.py", "test*/**/test_*.py"))
