"""Rules of a repository that keep git busy for ever cost a moment, and no state."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.cli import checkout
from sandboxes import Provider, Workspace
from sandboxes.git import diff, foreign
from tests.projects import commit

pytestmark = pytest.mark.namespace

ENDLESS = "*a*a*a*a*a*a*a*a*b\n"
NAME = "a" * 240 + "0"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return commit(tmp_path / "repo", {"calc.py": "x = 1\n", ".gitignore": f"{ENDLESS}*.log\n"})


def test_a_state_is_compared_although_a_rule_keeps_git_busy(
    provider: Provider, repo: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    base = provider.create(Workspace(path=repo))
    with provider.at(base) as box:
        box.write("calc.py", b"x = 2\n")
        box.write("noise.log", b"\n")
        quick = box.snapshot()
        box.write(NAME, b"\n")
        slow = box.snapshot()
    monkeypatch.setattr(diff, "IGNORING_S", 0.5)
    assert b"+x = 2" in provider.diff(base, slow)
    assert "the .gitignore files keep git busy" in caplog.text
    assert b"noise.log" not in provider.diff(base, quick)


def test_a_checkout_is_taken_for_changed_where_git_cannot_say(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not checkout.inspect(repo).dirty
    (repo / NAME).touch()
    monkeypatch.setattr(foreign, "STATUS_S", 0.5)
    assert checkout.inspect(repo).dirty
