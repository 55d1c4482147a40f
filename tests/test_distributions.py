"""Real repositories made of source distributions, so that their own tests run in them as they are."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from agent.errors import UsageError
from benchmarks.flywheel.distributions import Distribution, laid_out
from tests.projects import git, wheel

FILES = {
    "src/jars/__init__.py": "def lids(count):\n    return count + 1\n",
    "tests/test_jars.py": "import jars, planted\n\n\ndef test_lids():\n    assert jars.lids(planted.x) == 2\n",
    "tests/test_plugin.py": "import a_plugin_that_nobody_has\n",
    "pyproject.toml": '[tool.pytest.ini_options]\naddopts = "--an-option-of-a-plugin"\n',
}


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "jars-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as packed:
        for name, text in FILES.items():
            entry = tarfile.TarInfo(f"jars-1.0/{name}")
            entry.size = len(text)
            packed.addfile(entry, io.BytesIO(text.encode()))
    return path


def test_the_tests_of_a_distribution_run_in_the_repository_without_being_installed(
    tmp_path: Path, archive: Path
) -> None:
    package = tmp_path / "planted-1.0-py3-none-any.whl"
    package.write_bytes(wheel())
    known = Distribution("1.0", without=["tests/test_plugin.py"], needs=[str(package)])
    repository = tmp_path / "repositories" / "jars"
    laid_out(archive, known, repository)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], cwd=repository, capture_output=True, text=True
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr
    kept = git(repository, "ls-files").split()
    assert {"jars/__init__.py", "tests/test_jars.py"} < set(kept)
    assert "tests/test_plugin.py" not in kept
    assert list(repository.parent.iterdir()) == [repository]


def test_a_test_that_is_to_be_left_out_and_is_not_there_is_named(tmp_path: Path, archive: Path) -> None:
    with pytest.raises(UsageError, match=r"jars-1\.0\.tar\.gz has no tests/test_other\.py"):
        laid_out(archive, Distribution("1.0", without=["tests/test_other.py"]), tmp_path / "repositories" / "jars")
    assert not any((tmp_path / "repositories").iterdir())


def test_what_cannot_be_installed_for_the_tests_is_told_by_pip(tmp_path: Path, archive: Path) -> None:
    known = Distribution("1.0", needs=[str(tmp_path / "nothing-1.0-py3-none-any.whl")])
    with pytest.raises(UsageError, match=r"pip install .* failed: .*nothing-1\.0"):
        laid_out(archive, known, tmp_path / "jars")
