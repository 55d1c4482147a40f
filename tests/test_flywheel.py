"""The parts of the flywheel that need neither a sandbox nor a model: its material, and the check for leaks."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agent.actions import Edit
from agent.policy.edit.context import Context, contexts
from agent.policy.edit.record import Entry, Ranked, key
from agent.run.events import Noted
from benchmarks.data.synthetic.functions import functions, unnamed
from benchmarks.flywheel import arbitrary, idioms
from benchmarks.flywheel.leaks import apart, leaks, shown
from tests.histories import History, P, turn

HELD = "def held(a, b):\n    total = a * b + 1\n    for n in range(total):\n        total -= n * a\n    return total\n"
OTHER = (
    "def other(x):\n    while x > 10:\n        x = x // 3 - 1\n        print(x, end='')\n    return [x, x + 1, x + 2]\n"
)

PRINTED_OTHERWISE = "<printed>test_f: assert 1 == 2\n<printed>  def f(): return <L3>\n" + "<printed>x = y\n" * 20
"""What tests printed does not make a copy another function, and is no function itself."""


def code(text: str) -> str:
    return next(functions("m.py", text.encode())).text


def bug(name: str, repo: str, split: str, text: str, function: str = "f") -> dict[str, Any]:
    where = {"repo": repo, "path": "m.py", "function": function, "split": split}
    return {"instance_id": name, "code": code(text), **where}


def row(task: str, text: str) -> dict[str, Any]:
    source, _, printed = text.partition("<printed>")
    shown = "".join(f"<L{n}>{line}\n" for n, line in enumerate(source.splitlines(), 1))
    shown += (f"<printed>{printed}" if printed else "") + "<fix>\n"
    return {"prompt": [{"role": "user", "content": shown}], "provenance": {"task": task}}


@pytest.mark.parametrize(
    ("trained", "shown", "said"),
    [
        (bug("t", "mine", "train", OTHER, "other"), OTHER, ""),
        (bug("t", "theirs", "train", OTHER, "other"), OTHER, "the repository theirs is held out"),
        (bug("t", "mine", "train", OTHER, "held"), OTHER, "m.py held is held out"),
        (bug("t", "mine", "train", HELD.replace("held", "copy"), "copy"), OTHER, "a near copy"),
        (bug("t", "mine", "train", OTHER, "other"), HELD.replace("+ 1", "+ 2"), "a near copy"),
        (bug("t", "mine", "train", OTHER, "other"), HELD + PRINTED_OTHERWISE, "a near copy"),
        (bug("t", "mine", "train", OTHER, "other"), OTHER + PRINTED_OTHERWISE, ""),
        (bug("t", "mine", "train", OTHER, "other"), HELD.replace("total", "<V3>"), "a near copy"),
        (bug("t", "mine", "train", HELD.replace("total", "left"), "other"), OTHER, "a near copy"),
        (bug("another", "mine", "train", OTHER, "other"), OTHER, "the row is not from a bug that may be trained on"),
    ],
)
def test_a_row_that_comes_from_what_is_held_out_is_a_leak(
    tmp_path: Path, trained: dict[str, Any], shown: str, said: str
) -> None:
    held = {
        "train": [trained],
        "lines": [bug("a", "mine", "lines", HELD, "held")],
        "repositories": [bug("b", "theirs", "repositories", "def g(q):\n    return q\n", "g")],
    }
    for name, bugs in held.items():
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(each) + "\n" for each in bugs))
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "train.jsonl").write_text(json.dumps(row("t", shown)) + "\n")
    found = leaks(tmp_path / "rows", tmp_path)
    assert len(found) == bool(said)
    assert said in "".join(found)


SOURCES = [path for folder in ("agent", "benchmarks", "sandboxes") for path in sorted(Path(folder).rglob("*.py"))]


@pytest.mark.slow
def test_what_a_row_shows_is_told_for_every_function_of_a_third_of_this_projects_files() -> None:
    """However its strings, comments and layout are."""
    told = 0
    for path in SOURCES[::3]:
        data = path.read_bytes()
        whole = list(functions(str(path), data))
        for function, context in zip(whole, contexts(str(path), data, [each.first for each in whole]), strict=True):
            if context.last == function.last:
                said = {"prompt": [{"role": "user", "content": context.prompt}]}
                assert shown(said) == unnamed(function.text), f"{path}: {function.name}"
                told += 1
    assert told > 1000


@pytest.mark.parametrize(("right", "wrong", "kept"), [(OTHER, OTHER.replace("10", "11"), True), (HELD, OTHER, False)])
def test_trees_of_copies_of_what_is_held_out_are_not_learned_from(
    tmp_path: Path, right: str, wrong: str, kept: bool
) -> None:
    bugs = {"train": bug("hand", "mine", "train", right, "g"), "lines": bug("b", "mine", "lines", HELD)}
    for name, each in bugs.items():
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(each) + "\n")
    told = History(tmp_path / "run")
    told.run.record(Noted(0, key(0), Ranked([Entry(0, 0.5, 0.5)], [Context("m.py", 1, wrong)]).to_json()))
    told.add(0, turn(Edit("m.py", "    return x\n", "    return y\n", 2)), a=P, b=P)
    told.run.close()
    assert apart([tmp_path / "run"], tmp_path) == [tmp_path / "run"] * kept


def passes_its_tests(folder: Path) -> bool:
    tests = "".join(path.read_text() for path in sorted(folder.glob("test_*.py")))
    calls = "".join(f"{name}()\n" for name in sorted({line[4:-3] for line in tests.splitlines() if line[:4] == "def "}))
    return subprocess.run([sys.executable, "-c", tests + calls], cwd=folder).returncode == 0


def test_generated_functions_pass_their_own_tests_and_their_names_recur_nowhere(tmp_path: Path) -> None:
    assert all(map(passes_its_tests, idioms.write(tmp_path, 12, Random(3))))
    seen, combined, unseen = (
        {each.text for path in place.glob("m?.py") for each in functions(path.name, path.read_bytes())}
        for place in (tmp_path / "seen", tmp_path / "combined", tmp_path / "unseen")
    )
    assert (len(seen), len(combined), len(unseen)) == (12, 6, 6)
    assert not seen & combined


def test_the_same_seed_writes_the_same_functions(tmp_path: Path) -> None:
    first, again = (idioms.write(tmp_path / name, 4, Random(5))[0] for name in ("a", "b"))
    assert (first / "m0.py").read_bytes() == (again / "m0.py").read_bytes()


def test_arbitrary_functions_pass_their_own_tests_and_only_these_say_what_is_right(tmp_path: Path) -> None:
    """Each operator, variable and number that is drawn is as likely as the others."""
    folders = arbitrary.write(tmp_path, 60, 8, Random(3))
    assert all(map(passes_its_tests, folders))
    lines = [line for path in folders[0].glob("m*.py") for line in path.read_text().splitlines() if " = " in line]
    signs = Counter(sign for line in lines for sign in "+-*" if f" {sign} " in line and len(line.split()) == 5)
    numbers = Counter(line.split()[-1] for line in lines)
    assert max(signs.values()) < 2 * min(signs.values())
    assert max(numbers.values()) < 3 * min(numbers.values())
    assert set(numbers) == set("23456789")
