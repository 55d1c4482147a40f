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

ADAPTERS: Mapping[str, Adapter] = {
    each.name: each for each in (UNITTEST, DJANGO, SYMPY, GO, CARGO, MAVEN, GRADLE, NODE, JEST, VITEST, JUNIT)
}
FRAMEWORKS = ("pytest", *ADAPTERS, "exit-code")
"""The frameworks that can be named. pytest is measured by its own plugin (`agent.measure.warm.plugins`); `exit-code`,
the weakest, treats any command as one test. `LOGS` adds commands whose output a parser reads."""
OF_PYTHON = ("pytest", "unittest", "django", "sympy")
"""Frameworks whose ids are `file::Class::test` or `file::test` with Python files."""
PYTEST_COMMAND = "python3 -m pytest -q"
PYTEST = re.compile(r"\bpy\.?test\b")
PYTHON_FILES = ("pyproject.toml", "setup.py", "setup.cfg", "pytest.ini", "tox.ini", "conftest.py")
BUILD_FILES = {
    "go.mod": "go",
    "Cargo.toml": "cargo",
    "pom.xml": "maven",
    "build.gradle": "gradle",
    "build.gradle.kts": "gradle",
}
PYTHON = re.compile(r"(^|[\s;&|(/])(python[\d.]*|tox|nox)(?=\s|$)")
SCRIPTED = re.compile(r"\b(npm|yarn|pnpm|bun)\b")
"""Commands that run the scripts of package.json."""


def choose(repo: Path | None, command: str | None, framework: str | None) -> tuple[str, str]:
    """Return the framework of a task and its test command; either may be given. The framework is empty if pytest is
    only assumed. `repo`: None if the files are in an image.

    Raises:
        agent.errors.UsageError: the framework is unknown, none is recognised, or it has no default command.
    """
    if framework is None:
        found = named_in(command or "", repo) or (_detect(repo, command or "") if repo else "pytest")
        return ("" if found == "pytest" else found), command or _command(found)
    if framework not in (*FRAMEWORKS, *LOGS):
        near = get_close_matches(framework, [*FRAMEWORKS, *LOGS], n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        parsers = ", ".join(name.removeprefix(LOG) for name in LOGS)
        known = parsers if framework.startswith(LOG) else f"{', '.join(FRAMEWORKS)}, {LOG}PARSER"
        raise UsageError(f"--test-framework {framework}: {hint}choose one of {known}")
    if not command and not _command(framework):
        raise UsageError(f"--test-framework {framework} has no default command: give one with --test")
    return framework, command or _command(framework)


def adapter_of(framework: str) -> Adapter | None:
    """The adapter of a framework; None for pytest and `exit-code`."""
    return ADAPTERS.get(framework) or LOGS.get(framework)


def named_in(command: str, repo: Path | None = None) -> str | None:
    """Return the framework that a command names, preferably pytest; None if it names none, or several others. `repo`:
    as in `choose`."""
    if PYTEST.search(command):
        return "pytest"
    found = (each for each in (*ADAPTERS.values(), *LOGS.values()) if each.named.search(command))
    named = [adapter.name for adapter in found if adapter.fits(repo, command)]
    return named[0] if len(named) == 1 else None


def framework_of(framework: str, command: str) -> str:
    """The framework of a task: the one recorded in it, else the one that its command names, else pytest."""
    return framework or named_in(command) or "pytest"


def _command(framework: str) -> str:
    """The default command to run all tests; "" if there is none."""
    if framework == "pytest":
        return PYTEST_COMMAND
    return ADAPTERS[framework].command if framework in ADAPTERS else ""


def _detect(repo: Path, command: str) -> str:
    """Detect the framework by files in the root, Python's first unless the command runs package.json scripts. A command
    that runs Python implies pytest, too."""
    package = _of_package(repo / "package.json")
    if package and SCRIPTED.search(command):
        return package
    if PYTHON.search(command) or any((repo / name).is_file() for name in PYTHON_FILES):
        return "pytest"
    marked = next((framework for name, framework in BUILD_FILES.items() if (repo / name).is_file()), package)
    if marked:
        return marked
    if command or _has_python_tests(repo):
        return "pytest"
    raise UsageError(
        f"no test framework is recognised in {repo}: give the command that runs its tests with --test, and the "
        f"framework with --test-framework ({', '.join(FRAMEWORKS)})"
    )


def _of_package(file: Path) -> str | None:
    """Return the runner that a package.json names in its test script, else in its dependencies; node's own runner only
    if no other is named."""
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
