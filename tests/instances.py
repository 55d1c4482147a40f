"""A small benchmark for tests: a repository with a wrong sign, and the instances.jsonl that describes it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from agent.task import Task
from benchmarks.data.instances import Hidden, Instance
from sandboxes import Workspace

GIT = ("git", "-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "init.defaultBranch=main")

FILES = {
    "calc.py": b"def add(a, b):\n    return a - b\n\n\ndef twice(a):\n    return 2 * a\n",
    "test_calc.py": b"from calc import twice\n\n\ndef test_twice():\n    assert twice(2) == 4\n",
}
FIXED = {"calc.py": FILES["calc.py"].replace(b"a - b", b"a + b")}
HIDDEN_TEST = b"\n\ndef test_add():\n    from calc import add\n\n    assert add(2, 3) == 5\n"
TESTED = {"test_calc.py": FILES["test_calc.py"] + HIDDEN_TEST}


def git(folder: Path, *argv: str) -> bytes:
    return subprocess.run([*GIT, *argv], cwd=folder, check=True, capture_output=True).stdout


def write(folder: Path, files: dict[str, bytes]) -> None:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def patch_of(folder: Path, files: dict[str, bytes]) -> bytes:
    """The git patch that writing `files` makes; the folder is left as it was."""
    write(folder, files)
    git(folder, "add", "-A")
    patch = git(folder, "diff", "--cached", "--binary")
    git(folder, "reset", "-q", "--hard")
    return patch


def make_benchmark(
    folder: Path, *, files: dict[str, bytes] = FILES, ids: tuple[str, ...] = ("calc-1",), **fields: Any
) -> Path:
    """A folder with instances.jsonl and a bundle; `fields` replace those of every row."""
    repository = folder / "upstream"
    repository.mkdir(parents=True)
    git(repository, "init", "-q")
    write(repository, files)
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "base")
    commit = git(repository, "rev-parse", "HEAD").decode().strip()
    patches = {"patch": patch_of(repository, FIXED), "test_patch": patch_of(repository, TESTED)}
    git(repository, "bundle", "create", "-q", str(folder / "calc.bundle"), "HEAD", "main")
    row = {
        "repo": "example/calc",
        "base_commit": commit,
        "problem_statement": "add(2, 3) gives -1",
        **{name: patch.decode() for name, patch in patches.items()},
        "FAIL_TO_PASS": json.dumps(["test_calc.py::test_add"]),
        "PASS_TO_PASS": ["test_calc.py::test_twice"],
        "bundle": "calc.bundle",
        "test_cmd": "python3 -m pytest -q -p no:cacheprovider",
        "requirements": ["iniconfig==2.3.1", "packaging==26.3", "pluggy==1.7.0", "pytest==8.3.5"],
        "license": "MIT",
        **fields,
    }
    rows = [json.dumps({"instance_id": name, **row}) for name in ids]
    (folder / "instances.jsonl").write_text("\n".join(rows) + "\n")
    return folder


def bare_instance(name: str) -> Instance:
    """An instance without a repository behind it."""
    return Instance(Task(name, "it is wrong", Workspace(), "pytest"), Hidden((), (), b"", b""))
