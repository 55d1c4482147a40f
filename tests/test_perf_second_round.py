"""What a second round changes, measured: the simulated developer, and the table. A whole run is no test."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from agent.actions import Edit, Submit, parse
from agent.actions.replacing import edited
from agent.prompts import render
from benchmarks.data.instances import Instance
from benchmarks.perf.developer import SAYS_IT, Developer, parts
from benchmarks.perf.second_round import cells
from tests.instances import bare_instance

BEFORE = {"a.py": "one = 1\ntwo = 2\n\n\nthree = 3\nfour = 4\nfive = 5\nsix = 6\n"}
PATCH = b"""diff --git a/a.py b/a.py
index 1..2 100644
--- a/a.py
+++ b/a.py
@@ -1,3 +1,4 @@
 one = 1
+one_and_a_half = 1.5
 two = 2

@@ -6,3 +7,3 @@ three = 3
 four = 4
-five = 5
+five = 5.0
 six = 6
diff --git a/b.py b/b.py
new file mode 100644
--- /dev/null
+++ b/b.py
@@ -0,0 +1 @@
+SEVEN = 7
"""
AFTER = BEFORE["a.py"].replace("two", "one_and_a_half = 1.5\ntwo").replace("= 5", "= 5.0")


@pytest.fixture
def instance() -> Instance:
    bare = bare_instance("calc")
    return replace(bare, task=replace(bare.task, statement="It is wrong."), hidden=replace(bare.hidden, patch=PATCH))


def said(developer: Developer, role: str, *texts: str, seed: int = 0) -> Any:
    """The answer to somebody in a role who is told of the issue and of these texts."""
    messages = [{"role": "system", "content": render(f"{role}_system")}]
    messages += [{"role": "user", "content": text} for text in ("It is wrong.", *texts)]
    answer = developer({"messages": messages, "seed": seed})
    calls = [(call["function"]["name"], call["function"]["arguments"]) for call in answer.get("tool_calls", ())]
    return [parse(*call) for call in calls] if calls else json.loads(answer["content"])


def made(developer: Developer, *texts: str, seed: int = 0) -> set[int]:
    """The parts of the change that an attempt makes."""
    *edits, last = said(developer, "chat", *texts, seed=seed)
    assert last == Submit()
    return {number for number, part in enumerate(parts(PATCH)) if Edit(**{"line": None, **part.call}) in edits}


class TestTheDeveloper:
    def test_who_finds_every_part_makes_the_reference_solution(self, instance: Instance) -> None:
        files = dict(BEFORE)
        for edit in said(Developer([instance], finds=1.0), "chat")[:-1]:
            files[edit.path] = edited(files.get(edit.path), edit.old, edit.new, edit.line).text
        assert files == {"a.py": AFTER, "b.py": "SEVEN = 7"}

    def test_finds_by_lot_and_takes_up_what_it_is_told_of(self, instance: Instance) -> None:
        alone = [made(Developer([instance], finds=0.5), seed=seed) for seed in range(40)]
        assert 0 < sum(map(len, alone)) < 3 * 40
        told = [made(Developer([instance], finds=0.0, takes=1.0), SAYS_IT.format(1), seed=seed) for seed in range(5)]
        assert told == [{1}] * 5

    def test_sums_up_the_parts_that_an_attempt_has(self, instance: Instance) -> None:
        summary = said(Developer([instance]), "summary", "+one_and_a_half = 1.5\n+SEVEN = 7")
        assert summary["insights"] == [SAYS_IT.format(0), SAYS_IT.format(2)]

    def test_votes_for_the_attempt_with_the_most_parts_as_often_as_it_is_right(self, instance: Instance) -> None:
        question = "## Attempt A\n\n+SEVEN = 7\n\n## Attempt B\n\n+SEVEN = 7\n+five = 5.0\n"
        votes = {
            right: [
                said(Developer([instance], right=right), "tournament", question, seed=n)["winner"] for n in range(40)
            ]
            for right in (0.0, 0.8, 1.0)
        }
        assert set(votes[1.0]) == {"B"}
        assert set(votes[0.0]) == {"A"}
        assert 20 < votes[0.8].count("B") < 40


def test_the_table_has_the_rates_of_what_was_right_and_wrong_before() -> None:
    counts = {"kept": 3, "lost": 1, "fixed": 2, "missed": 4}
    rounds = [{"measurements": 40, "instances": 12}, {"measurements": 25, "instances": 10}]
    line = cells("mutate", {"hidden": counts, "visible": {**counts, "lost": 0}, "rounds": rounds})
    assert line == ("`mutate`", "10", "3 of 4", "2 of 6", "3 of 3", "2 of 6", "40, 25")
    assert cells("mutate", None)[1] == "0"
