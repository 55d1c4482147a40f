"""The official harness in its two versions, each in an environment of its own (`scripts/swebench-env`)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.grading.harness.official import Harness, find

ROOT = Path(__file__).parent.parent.parent
VERSIONS = ("4.1.0", "5.0.2")


@pytest.fixture(scope="session", params=VERSIONS)
def harness(request: pytest.FixtureRequest) -> Harness:
    """Without its environment tests fail, and say how to make it."""
    python = Path(os.environ.get("RAMIFY_SWEBENCH", ROOT / ".swebench")) / request.param / "bin" / "python"
    if not python.exists():
        pytest.fail(f"{python} is missing: make the environments with scripts/swebench-env")
    found = find(str(python))
    assert found.version == request.param
    return found
