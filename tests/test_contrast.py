"""A model that compares the answers: what it is told, how it is heard, and that tests decide all the same."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from agent.models import directly
from agent.run.rollouts import Candidate
from agent.run.run import Run
from agent.solver.contrast import look, suspects, unsuspected
from agent.solver.warnings import remarks
from tests.candidates import TASK, candidate
from tests.exporting import Recorder
from tests.scripted import ScriptedModel, answer

HONEST, SPECIAL, TWIN, UNFINISHED = (
    candidate(1),
    candidate(2),
    candidate(3, source=candidate(2).source),
    candidate(4, solved=False, progress=0.5),
)


def says(*found: object) -> str:
    return json.dumps({"suspects": found})


def suspect(attempt: str, kind: str = "tests", reason: str = "It asks for 5.") -> dict[str, str]:
    return {"attempt": attempt, "kind": kind, "reason": reason}


def run_with(folder: Path, *nodes: int) -> Run:
    """A run of four states in which a model suspected some."""
    made = Recorder(folder)
    for node in range(1, 5):
        made.add(0, 0.1 * node, ())
    found = {str(node): {"kind": "tests", "reason": "It asks for 5."} for node in nodes}
    made.note(0, "suspects-1", {"nodes": [1, 2, 3, 4], "problem": "", "found": found})
    return made.close()


def left(run: Run, group: Sequence[Candidate]) -> list[int]:
    return [each.node for each in unsuspected(run, group)]


class TestASuspect:
    def test_loses_to_another_that_is_as_good_and_so_does_whoever_changes_the_same(self, tmp_path):
        with run_with(tmp_path, 2) as run:
            assert left(run, (HONEST, SPECIAL, TWIN)) == [1]

    def test_keeps_its_place_before_what_is_worse_by_the_tests(self, tmp_path):
        with run_with(tmp_path, 2) as run:
            assert left(run, (UNFINISHED, SPECIAL)) == [4, 2]

    def test_keeps_its_place_where_there_is_no_other(self, tmp_path):
        with run_with(tmp_path, 2) as run:
            assert left(run, (SPECIAL, TWIN)) == [2, 3]

    def test_is_named_in_the_result(self, tmp_path):
        with run_with(tmp_path, 2) as run:
            assert suspects(run) == {2: "It asks for 5."}
            said = "state 2 may only satisfy the tests, says a model that compared the answers: It asks for 5."
            assert remarks(run)[-1] == said

    def test_of_no_round_changes_nothing(self, tmp_path):
        with run_with(tmp_path) as run:
            assert left(run, (HONEST, SPECIAL, UNFINISHED)) == [1, 2, 4]


class TestTheQuestion:
    def test_shows_all_answers_together_and_what_a_program_found(self):
        model = ScriptedModel([answer(says(suspect("B")))])
        found = look(model, TASK, (HONEST, SPECIAL), ["- B: m.py:3: the input 5"], directly)
        assert found["found"] == {"2": {"kind": "tests", "reason": "It asks for 5."}}
        shown = model.heard[0][-1]["content"]
        assert all(
            text in shown for text in ("## Attempt A", "+ 1\n", "## Attempt B", "+ 2\n", "- B: m.py:3: the input 5")
        )

    def test_is_asked_again_until_each_suspect_has_a_letter_a_kind_and_a_reason(self):
        wrong = (suspect("C"), suspect("A", kind="odd"), suspect("A", reason=" "))
        for given, told in zip(wrong, ("`attempt` is 'C'", "`kind` of A is 'odd'", "`reason` for A"), strict=True):
            model = ScriptedModel([answer(says(given)), answer(says())])
            assert look(model, TASK, (HONEST, SPECIAL), (), directly)["found"] == {}
            assert told in model.heard[1][-1]["content"]

    def test_that_has_no_readable_answer_leaves_nobody_suspected(self):
        model = ScriptedModel(lambda messages: answer("?"))
        found = look(model, TASK, (HONEST, SPECIAL), (), directly)
        assert found["found"] == {}
        assert "cannot be read" in found["problem"]
