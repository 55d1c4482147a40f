"""What a batch would have resolved by other ways to choose among its candidates."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from agent.errors import JournalError
from agent.run.events import Added, Noted, Started
from agent.run.run import Run
from agent.solver.tournament import rank
from agent.solver.tournament.note import key, note
from benchmarks.batch.batch import Attempt, Batch, Identity, read_attempts, read_identity
from benchmarks.cli.app import app
from benchmarks.grading.verdicts import Verdict, VerdictCache, patch_digest, read_verdicts
from benchmarks.reports.report import verdicts_file
from benchmarks.reports.selectors import Standing, candidates, read_choices, standings, summary
from sandboxes import Snapshot
from tests import trees
from tests.candidates import TASK, FixedJudge, candidate
from tests.instances import bare_instance


def attempt(out, name, some):
    """An instance with these candidates; the first of the ranking is its answer."""
    found = rank(TASK, some, FixedJudge(), votes=1)
    with Run.open(out / name) as run:
        run.record(Started({}, {}, Snapshot("0", "0")))
        run.record(Added(trees.node(0)))
        for each in some:
            run.journal.put_blob(each.patch)
        run.record(Noted(0, key(1), note(found, some)))
    return Attempt(name, "done", "hidden", found.winner.patch)


@pytest.fixture
def batch(tmp_path):
    """Two instances with candidates, and one whose search came to nothing."""
    made = Batch(tmp_path, Identity("set", "hidden", "tiny"))
    made.record(attempt(tmp_path, "a", [candidate(1), candidate(2), candidate(3, judge=0.9)]))
    made.record(attempt(tmp_path, "b", [candidate(1), candidate(4)]))
    made.record(Attempt("c", "done", "hidden"))
    made.close()
    return tmp_path


def graded(out, resolved):
    """The verdicts of the patches that these candidates have."""
    cache = VerdictCache(verdicts_file(out / "preds.json"))
    for name, nodes in resolved.items():
        for node, right in nodes.items():
            patch = b"+ %d\n" % node
            status = "resolved" if right else "unresolved"
            cache.put(bare_instance(name), patch, Verdict(name, status, patch_digest(patch)))
    cache.close()
    return read_verdicts(verdicts_file(out / "preds.json"))


def choices_of(batch):
    return read_choices(batch, read_attempts(batch).values())


def test_a_run_that_had_but_one_rollout_is_not_opened(batch):
    (batch / "a" / "journal.jsonl").write_text("damaged\n{}\n")
    one, two, _ = read_attempts(batch).values()
    alone = replace(one, facts={"rollouts": 1})
    assert [choice.instance_id for choice in read_choices(batch, [alone, two])] == ["b"]
    with pytest.raises(JournalError):
        read_choices(batch, [one])


def test_selectors_are_compared_on_instances_whose_candidates_are_all_graded(batch):
    choices = choices_of(batch)
    known = graded(batch, {"a": {1: True, 2: False, 3: False}, "b": {1: False}})
    lines = {line.selector: line for line in standings(choices, known)}
    assert lines["tournament"] == Standing("tournament", 0, 1)
    assert lines["oracle"] == Standing("oracle", 1, 1)
    known = graded(batch, {"b": {4: True}})
    lines = {line.selector: (line.resolved, line.of) for line in standings(choices, known)}
    picked = lines.pop("random")
    assert 0 <= picked[0] <= picked[1] == 2
    assert lines == {"tournament": (1, 2), "first": (1, 2), "tests": (1, 2), "majority": (1, 2), "judge": (0, 1),
                     "oracle": (2, 2)}  # fmt: skip


def test_what_was_not_chosen_can_be_graded_too(batch):
    left = [(each.instance_id, each.patch, each.mode) for each in candidates(batch)]
    assert sorted(left) == [("a", b"+ 1\n", "hidden"), ("a", b"+ 2\n", "hidden"), ("b", b"+ 1\n", "hidden")]


def test_what_a_round_came_to_is_graded_too_though_it_was_no_candidate(batch):
    attempt = read_attempts(batch)["a"]
    (batch / "a" / "blobs" / patch_digest(b"+ 9\n")).write_bytes(b"+ 9\n")
    waves = [{"patch_sha256": digest} for digest in (patch_digest(b"+ 9\n"), "", patch_digest(b""))]
    with closing(Batch(batch, read_identity(batch))) as again:
        again.record(replace(attempt, facts={**attempt.facts, "round_results": waves}))
    left = [each.patch for each in candidates(batch) if each.instance_id == "a"]
    assert sorted(left) == [b"+ 1\n", b"+ 2\n", b"+ 9\n"]


def test_the_report_has_a_line_for_each_selector(batch):
    graded(batch, {"a": {1: True, 2: False, 3: False}, "b": {1: False, 4: True}})
    shown = CliRunner().invoke(app, ["report", str(batch)])
    assert "of 2 instances whose candidates are all graded (2 had some), resolved by choosing\n" in shown.stdout
    assert "  tournament 1 of 2\n" in shown.stdout
    assert "  oracle     2 of 2\n" in shown.stdout
    data = json.loads(CliRunner().invoke(app, ["report", str(batch), "--json"]).stdout)
    assert data["selectors"][-1] == {"selector": "oracle", "resolved": 2, "of": 2}


def test_without_verdicts_the_report_says_how_to_get_them(batch):
    assert standings(choices_of(batch), {}) == []
    assert "grade again with --candidates" in CliRunner().invoke(app, ["report", str(batch)]).stdout
    assert summary([], []) == ""
