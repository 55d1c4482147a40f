"""The base state holds byte code that no edit can make wrong."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sandboxes import Sandbox, Workspace
from sandboxes.namespace.provider import namespace_provider

HEADERS = """
import glob
for file in sorted(glob.glob("**/*.pyc", recursive=True)):
    print(file.split(".")[0], int.from_bytes(open(file, "rb").read(8)[4:], "little"))
"""
CHECKED_BY_CONTENT = 3


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in {"value.py": "x = 1\n", "pkg/__init__.py": "", "broken.py": "x = = 1\n", "notes.txt": ""}.items():
        path = tmp_path / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (10**9, 10**9))
    return tmp_path / "project"


def said(box: Sandbox, *argv: str) -> str:
    done = box.exec(argv, timeout_s=100)
    assert done.exit_code == 0, done
    return done.stdout.decode().strip()


def test_every_file_that_compiles_has_byte_code_that_is_checked_by_content(namespaces: Path, project: Path) -> None:
    with namespace_provider(namespaces / "byte-code") as provider:
        base = provider.create(Workspace(path=project, byte_code=True))
        with provider.at(base) as box:
            found = said(box, "python3", "-c", HEADERS).splitlines()
    assert found == [f"__pycache__/value {CHECKED_BY_CONTENT}", f"pkg/__pycache__/__init__ {CHECKED_BY_CONTENT}"]


def test_an_edit_that_leaves_size_and_time_is_seen(namespaces: Path, project: Path) -> None:
    with namespace_provider(namespaces / "byte-code") as provider:
        base = provider.create(Workspace(path=project, byte_code=True))
        with provider.at(base) as box:
            said(box, "sh", "-c", "echo 'x = 2' > value.py && touch -d @1000000000 value.py")
            assert said(box, "python3", "-c", "import value; print(value.x)") == "2"


def test_it_is_no_difference_between_states(namespaces: Path, project: Path) -> None:
    with namespace_provider(namespaces / "byte-code") as provider:
        plain, base = (provider.create(Workspace(path=project, byte_code=wanted)) for wanted in (False, True))
        with provider.at(base) as box:
            box.write("value.py", b"x = 2\n")
            edited = box.snapshot()
        assert plain.digest == base.digest
        assert [change.path for change in provider.changes(base, edited)] == ["value.py"]
        assert b"pyc" not in provider.diff(base, edited)


def test_nothing_of_the_workspace_runs_while_it_is_made(namespaces: Path, project: Path) -> None:
    for module in ("compileall", "py_compile", "signal", "struct", "concurrent", "sitecustomize"):
        (project / f"{module}.py").write_text("open('ran', 'w')\n")
    with namespace_provider(namespaces / "byte-code") as provider:
        base = provider.create(Workspace(path=project, byte_code=True))
        with provider.at(base) as box:
            assert "ran" not in said(box, "ls").split()
            assert "value" in said(box, "ls", "__pycache__")


def test_a_workspace_is_left_as_it_is_unless_asked(namespaces: Path, project: Path) -> None:
    with (
        namespace_provider(namespaces / "byte-code") as provider,
        provider.at(provider.create(Workspace(path=project))) as box,
    ):
        assert "__pycache__" not in said(box, "ls")
