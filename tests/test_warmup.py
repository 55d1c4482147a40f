"""Rows from plain source: what they teach, and what they are kept away from."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agent.learning.training import Data
from agent.policy.edit.numbering import as_python
from benchmarks.data.synthetic.copies import Copies
from benchmarks.data.synthetic.functions import functions, unnamed
from benchmarks.flywheel import warmup
from benchmarks.flywheel.leaks import shown
from tests.projects import commit

COUNT = '''def count(words, least):
    """How many words are long enough."""
    found = 0
    for word in words:
        if len(word) >= least and not word.isdigit():
            found = found + 1
    return found
'''
SHELF = f"import os\n\n\nclass Shelf:\n    size = 3\n\n{''.join(f'    {line}' for line in COUNT.splitlines(True))}"
OTHER = (
    "def other(rows):\n    total = sum(rows) * 2\n    while total > 100:\n        total -= rows[0]\n    return total\n"
)


def made(out: Path, source: Path, apart: Sequence[Path] = (), a_function: int = 5) -> list[dict[str, Any]]:
    warmup.write(out, [source], apart, (), most=1000, a_function=a_function, workers=1, seed=0)
    return [json.loads(line) for line in (out / "train.jsonl").read_text().splitlines()]


def mended(row: dict[str, Any]) -> str:
    """The function that a row's prompt shows, with the row's edit in it, under whatever names."""
    shown = re.split(r"^<L\d+>", row["prompt"][0]["content"].removesuffix("<fix>\n"), flags=re.MULTILINE)[1:]
    said = re.fullmatch(r"<L(\d+)>(?:<(\d)>)?(.*)<end>", row["completion"][0]["content"], re.DOTALL)
    assert said is not None
    first = int(said[1]) - 1
    return nameless("".join([*shown[:first], said[3], *shown[first + int(said[2] or 1) :]]))


def nameless(text: str) -> str:
    [function] = functions("m.py", textwrap.dedent(as_python(text)).encode())
    return unnamed(function.text)


@pytest.mark.parametrize("text", [COUNT, SHELF])
def test_each_row_gives_a_broken_function_back_as_it_was(tmp_path: Path, text: str) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "m.py").write_text(text)
    found = made(tmp_path / "rows", tmp_path / "source", a_function=20)
    assert len(found) == 20
    assert {mended(row) for row in found} == {nameless(COUNT)}
    assert len({row["prompt"][0]["content"] for row in found}) == len(found)
    assert len({row["provenance"]["operator"] for row in found}) > 3
    assert Data.read(tmp_path / "rows").policies == ("warm-up",)


@pytest.mark.parametrize("names", [{}, {"words": "rows", "found": "total", "word": "each"}])
def test_nothing_is_learned_from_a_repository_that_is_kept_apart_nor_from_copies_of_it(
    tmp_path: Path, names: dict[str, str]
) -> None:
    commit(tmp_path / "apart", {"m.py": COUNT})
    near = re.sub(r"\w+", lambda word: names.get(word[0], word[0]), COUNT.replace("found + 1", "found + 2"))
    files = {"a.py": near, "apart/b.py": OTHER.replace("2", "5"), "bad.py": "def f(:\n", "c.py": OTHER}
    for name, text in files.items():
        (tmp_path / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "source" / name).write_text(text)
    found = made(tmp_path / "rows", tmp_path / "source", [tmp_path / "apart"])
    assert {mended(row) for row in found} == {nameless(OTHER)}


def test_no_row_shows_what_is_a_copy_only_once_it_is_broken(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(OTHER)

    def learned(copies: Copies) -> list[str]:
        return [line for _, lines in warmup.rows(tmp_path / "m.py", copies, 50, 0) for line in lines]

    first, *others = learned(Copies())
    assert learned(Copies([shown(json.loads(first))], near=1.0)) == others


def test_a_function_that_recurs_is_learned_from_once(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    for name in ("a.py", "b.py"):
        (tmp_path / "source" / name).write_text(COUNT)
    assert len(made(tmp_path / "rows", tmp_path / "source", a_function=3)) == 3


def test_what_does_not_compile_once_broken_is_no_row() -> None:
    [function] = functions("m.py", COUNT.encode())
    for row in warmup.broken(function, COUNT, 50, Random(0)):
        shown = re.sub(r"^<L\d+>", "", row["prompt"][0]["content"].removesuffix("<fix>\n"), flags=re.MULTILINE)
        compile(as_python(shown), "m.py", "exec")


def test_a_copy_is_a_function_that_is_alike_and_a_short_one_only_the_same() -> None:
    short, long = "x\nreturn x", next(functions("m.py", COUNT.encode())).text
    known = Copies([short, long])
    assert [known.hold(text) for text in (short, long, long.replace("found", "total", 1), "y\nreturn y")] == [
        True, True, True, False
    ]  # fmt: skip
    assert not known.hold(next(functions("m.py", OTHER.encode())).text)
