"""The program of the pages is what its sources and the locked libraries make."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.web


@pytest.fixture
def copy(tmp_path):
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    kept = shutil.ignore_patterns("node_modules", "__pycache__")
    shutil.copytree(ROOT / "agent/analysis/report/web", tmp_path / "agent/analysis/report/web", ignore=kept)
    return tmp_path


def check(copy):
    return subprocess.run([copy / "scripts/vendor-web", "--check"], capture_output=True, text=True, timeout=500)


def test_what_is_committed_is_what_the_build_makes(copy):
    done = check(copy)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_source_that_was_changed_without_building_is_found(copy):
    with (copy / "agent/analysis/report/web/src/main.js").open("a") as source:
        source.write('console.log("changed");\n')
    done = check(copy)
    assert done.returncode != 0
    assert "run scripts/vendor-web" in done.stderr
