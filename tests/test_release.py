"""What a release and the image of the program are made of."""

import subprocess
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
WORKFLOW = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())


def notes(root: Path, version: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([root / "scripts/release-notes", version], capture_output=True, text=True)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts/release-notes").write_bytes((ROOT / "scripts/release-notes").read_bytes())
    (tmp_path / "scripts/release-notes").chmod(0o755)
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 1.10.0 - today\n\n- New.\n\n## 1.1\n\n- Old.\n")
    return tmp_path


def test_the_notes_of_a_release_are_the_section_of_its_version(project):
    assert notes(project, "1.10.0").stdout.strip() == "- New."
    assert notes(project, "1.1").stdout.strip() == "- Old."


def test_a_version_without_a_section_is_no_release(project):
    refused = notes(project, "1.2")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert 'no section "## 1.2"' in refused.stderr


def test_only_what_was_built_and_tested_is_published_and_only_that_job_may_write():
    build, publish = WORKFLOW["jobs"]["build"], WORKFLOW["jobs"]["publish"]
    commands = [step["run"] for step in build["steps"] if "run" in step]
    assert commands[0] == "make test"
    assert publish["needs"] == "build"
    assert WORKFLOW["permissions"] == {}
    assert set(build["permissions"].values()) == {"read"}
    assert not any("checkout" in step.get("uses", "") for step in publish["steps"])


def test_the_image_is_made_of_what_a_wheel_needs_and_of_nothing_else():
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line]
    let_in = {rule[1:] for rule in rules if rule.startswith("!")}
    about = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed = {"pyproject.toml", about["project"]["readme"], *about["project"]["license-files"]}
    assert rules[0] == "*"
    assert let_in == needed | set(about["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"])
    assert not any(fnmatch(name, rule) for name in let_in for rule in rules[1:] if not rule.startswith("!"))
