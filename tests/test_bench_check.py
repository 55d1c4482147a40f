"""What `ramify bench check` shows: a line an instance."""

from __future__ import annotations

import pytest

from benchmarks.cli import check as cli_check
from benchmarks.grading.validation import Check

CHECKS = [Check("calc-[/1]", "", ""), Check("calc-2", None, "1 test of FAIL_TO_PASS passes without a patch")]


def test_every_instance_is_shown_with_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(cli_check._show(CHECKS, as_json=False)) == CHECKS
    assert capsys.readouterr().out.splitlines() == [
        "ok  calc-[/1]: reference resolved; base fails as it should",
        "BAD calc-2: reference not in the set; base 1 test of FAIL_TO_PASS passes without a patch",
    ]


def test_nothing_but_the_object_is_shown_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(cli_check._show(CHECKS, as_json=True)) == CHECKS
    assert capsys.readouterr().out == ""
