"""A small project with one bug, for tests that run a real search in a real sandbox."""

from __future__ import annotations

import io
import subprocess
import zipfile
from pathlib import Path

from agent.task import Task
from sandboxes import Workspace

SOURCE = '''"""Means."""


def mean(numbers):
    """The arithmetic mean; 0.0 of nothing."""
    total = 0
    for number in numbers:
        total += number
    if len(numbers) < 0:
        return 0.0
    return total / len(numbers)


def spread(numbers):
    return max(numbers) - min(numbers)
'''

TESTS = """import pytest

from means import mean, spread


def test_mean_of_some():
    assert mean([1, 2, 3]) == 2


def test_mean_of_nothing():
    assert mean([]) == 0.0


@pytest.mark.parametrize("numbers", [[1], [1, 1]])
def test_spread(numbers):
    assert spread(numbers) == 0
"""

QUICK = "python run.py"
"""Runs the tests in a tenth of the time that pytest takes to start: for tests of what a search does with results."""
RUNNER = """import glob
import importlib

found = []
for file in sorted(glob.glob("test_*.py")):
    module = importlib.import_module(file[:-3])
    found += [(f"{file}::{name}", test) for name, test in vars(module).items() if name.startswith("test_")]
failed = False
print(f"1..{len(found)}")
for number, (name, test) in enumerate(found, 1):
    try:
        test()
        print(f"ok {number} - {name}")
    except BaseException as error:
        failed = True
        print(f"not ok {number} - {name}")
        print(f"# {type(error).__name__}: {error}")
raise SystemExit(failed)
"""
QUICK_TESTS = """from means import mean, spread


def test_mean_of_some():
    assert mean([1, 2, 3]) == 2


def test_mean_of_nothing():
    assert mean([]) == 0.0


def test_spread_of_one():
    assert spread([1]) == 0


def test_spread_of_two():
    assert spread([1, 1]) == 0
"""

BUG = "    if len(numbers) < 0:\n"
FIX = "    if len(numbers) <= 0:\n"
GOAL = "test_means.py::test_mean_of_nothing"


def git(repo: Path, *arguments: str) -> str:
    """Run git as a fixed author, without the machine's settings."""
    settings = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *settings, *arguments], cwd=repo, capture_output=True, text=True, check=True)
    return done.stdout


def commit(repo: Path, files: dict[str, str]) -> Path:
    """A repository at `repo` with these files in one commit."""
    repo.mkdir(parents=True)
    for name, text in files.items():
        path = repo / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    git(repo, "init", "-q")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "all")
    return repo


def means(repo: Path) -> Path:
    """The project above."""
    return commit(repo, {"means.py": SOURCE, "test_means.py": TESTS, ".gitignore": "__pycache__/\n"})


def quick_means(repo: Path) -> Path:
    """The project, with tests that `QUICK` runs."""
    files = {"means.py": SOURCE, "test_means.py": QUICK_TESTS, "run.py": RUNNER}
    return commit(repo, {**files, ".gitignore": "__pycache__/\n"})


def quick_task(repo: Path, **changes: object) -> Task:
    """The task of repairing what `quick_means` makes."""
    return task(repo, **{"test_command": QUICK, "framework": "log:tap", **changes})


def task(repo: Path, **changes: object) -> Task:
    """The task of repairing it."""
    given = {"id": "means", "statement": "mean([]) divides by zero", "test_command": "python -m pytest -q"}
    given |= {"goal_failing": True} | changes
    env = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # the tools of development are slow plugins
    return Task(workspace=Workspace(path=repo, mount="/workspace", env=env), **given)


def wheel() -> bytes:
    """A small package `planted` to be installed."""
    about = "planted-1.0.dist-info"
    files = {
        "planted/__init__.py": "x = 1\n",
        f"{about}/METADATA": "Metadata-Version: 2.1\nName: planted\nVersion: 1.0\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in (*files, f"{about}/RECORD"))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, text in {**files, f"{about}/RECORD": record}.items():
            archive.writestr(name, text)
    return packed.getvalue()
