"""What `ramify bench check` shows: a table on a terminal, else a line an instance."""

from __future__ import annotations

import io

import pytest

from benchmarks.cli import check as cli_check
from benchmarks.grading.validation import Check

CHECKS = [Check("calc-[/1]", "", ""), Check("calc-2", None, "1 test of FAIL_TO_PASS passes without a patch")]


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("screen", [io.StringIO, _Terminal])
def test_every_instance_is_shown_with_what_is_wrong(screen: type[io.StringIO], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", out := screen())
    monkeypatch.setenv("COLUMNS", "160")
    assert list(cli_check._show(CHECKS, 2, as_json=False)) == CHECKS
    shown = out.getvalue()
    assert "calc-[/1]" in shown
    assert "fails as it should" in shown
    assert "not in the set" in shown
    assert "passes without a patch" in shown
    assert ("2 of 2" in shown) is out.isatty()


def test_nothing_but_the_object_is_shown_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", out := _Terminal())
    assert list(cli_check._show(CHECKS, 2, as_json=True)) == CHECKS
    assert out.getvalue() == ""
