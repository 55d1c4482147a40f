"""Python that is nested so deeply that Python gives up is left alone, and never believed."""

from __future__ import annotations

import pytest

from agent.evaluate.process_exits import suspicions
from agent.policy.edit.context import contexts
from agent.policy.edit.numbering import numbers
from agent.policy.mutate.candidates import compiles
from agent.policy.mutate.source import Source, Unsupported

pytestmark = pytest.mark.parametrize(
    "text", ["x = " + "-" * 30_000 + "1\n", "x = " + "+".join(["1"] * 50_000) + "\n"], ids=["parser", "compiler"]
)


def test_it_is_not_edited(text: str) -> None:
    assert not compiles(text.encode())
    assert numbers(text) == {}
    assert contexts("a.py", text.encode(), [1]) == []
    with pytest.raises(Unsupported, match=r"a\.py"):
        Source("a.py", text.encode())


def test_tests_that_cannot_be_looked_at_are_suspected(text: str) -> None:
    assert [line for line, _ in suspicions("import os\n" + text, {2})] == [2]
