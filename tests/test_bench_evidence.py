"""Evidence: a verdict can be had again from what was kept of grading, and who changed that is found out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.errors import UsageError
from agent.measure import Outcome, SuiteReport
from agent.task import Task
from benchmarks.cli import regrade as cli_regrade
from benchmarks.cli.options import say
from benchmarks.data.harness_logs import END, LOG, START
from benchmarks.data.instances import Hidden, Instance
from benchmarks.grading.evidence import CHAIN, Archive, chain_head, line_digest
from benchmarks.grading.regrading import Regraded, regrade_all
from benchmarks.grading.verdicts import Finding, Verdict, decide
from sandboxes import Workspace

HIDDEN_TESTS = (("t.py::new",), ("t.py::old",))
HIDDEN = Hidden(*HIDDEN_TESTS, b"gold\n", b"tests\n")
PASSED, FAILED = Outcome.PASSED, Outcome.FAILED


def seen(**outcomes: Outcome) -> Finding:
    report = SuiteReport({f"t.py::{name}": outcome for name, outcome in outcomes.items()}, collected=len(outcomes))
    return Finding(report, state="abc")


FINDINGS = {
    "fixed": (b"caf\xe9\r\n", seen(new=PASSED, old=PASSED)),
    "broken": (b"b\n", seen(new=PASSED, old=FAILED)),
    "refused": (b"r\n", Finding(refused="does not apply")),
    "silent": (b"", Finding()),
    "lost": (b"l\n", Finding(fault="SandboxLost: gone")),
    "invalid": (b"i\n", Finding(SuiteReport(valid=False, problem="no test ran"), log=b"\xff")),
}


@pytest.fixture
def graded(tmp_path: Path) -> dict[str, Verdict]:
    """A folder of evidence; the verdicts by instance."""
    archive, verdicts = Archive(tmp_path), {}
    for name, (patch, finding) in FINDINGS.items():
        instance = Instance(Task(name, "it is wrong", Workspace(), "pytest", base="c0ffee"), HIDDEN)
        verdicts[name] = decide(name, patch, HIDDEN, finding)
        archive.keep(instance, patch, finding, verdicts[name])
    archive.close()
    assert archive.head == chain_head(tmp_path)
    return verdicts


def regraded(folder: Path, *verdicts: Verdict) -> dict[str, Regraded]:
    known = {(verdict.instance_id, verdict.patch_sha256): verdict for verdict in verdicts}
    return {each.bundle: each for each in regrade_all(folder, known)}


def change(path: Path, change: Callable[[str], str]) -> None:
    path.write_text(change(path.read_text()))


def test_every_verdict_follows_from_its_evidence(tmp_path: Path, graded: dict[str, Verdict]) -> None:
    found = regraded(tmp_path, *graded.values())
    del graded["lost"]  # a fault of the world is evidence of nothing
    assert {name: each.verdict for name, each in found.items() if not each.fault} == {
        f"{name}/1": verdict for name, verdict in graded.items()
    }
    assert {name: found[f"{name}/1"].verdict.status for name in graded} == {  # type: ignore[union-attr]  # they hold
        "fixed": "resolved", "broken": "unresolved", "refused": "apply_failed", "silent": "empty_patch",
        "invalid": "unresolved",
    }  # fmt: skip


def test_a_bundle_says_what_was_graded_and_with_what(tmp_path: Path, graded: dict[str, Verdict]) -> None:
    facts = json.loads((tmp_path / "fixed" / "1" / "bundle.json").read_text())
    assert (facts["base_commit"], facts["command"], facts["state"]) == ("c0ffee", "pytest", "abc")
    assert sorted(facts["files"]) == ["patch.diff", "report.json"]
    assert (tmp_path / "fixed" / "1" / "patch.diff").read_bytes() == b"caf\xe9\r\n"
    assert sorted(facts["versions"]) == ["machine", "python", "ramify"]
    assert (tmp_path / "invalid" / "1" / "log.txt").read_bytes() == b"\xff"


def test_a_file_that_was_changed_or_removed_is_named_with_its_bundle(
    tmp_path: Path, graded: dict[str, Verdict]
) -> None:
    change(tmp_path / "broken" / "1" / "report.json", lambda text: text.replace("failed", "passed"))
    change(tmp_path / "refused" / "1" / "bundle.json", lambda text: text.replace("apply_failed", "resolved"))
    (tmp_path / "silent" / "1" / "patch.diff").unlink()
    (tmp_path / "invalid" / "2").mkdir()
    change(tmp_path / "invalid" / "1" / "bundle.json", lambda text: text[:9])
    (tmp_path / "invalid" / "2" / "bundle.json").write_text("{}")
    faults = {name: each.fault for name, each in regraded(tmp_path).items() if each.fault}
    assert faults.pop("silent/1").endswith("patch.diff cannot be read: No such file or directory")
    assert faults == {
        "broken/1": "report.json is not what was graded",
        "refused/1": "bundle.json is not what the chain says was written",
        "invalid/1": "bundle.json is not what the chain says was written",
        "invalid/2": "the chain does not have it; remove its folder if grading was killed",
    }


def test_a_verdict_that_does_not_follow_is_named_though_its_digests_agree(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    patch, finding = FINDINGS["broken"]
    claimed = decide("x", patch, HIDDEN, seen(new=PASSED, old=PASSED))
    archive.keep(Instance(Task("x", "", Workspace(), ""), HIDDEN), patch, finding, claimed)
    archive.close()
    fault = regraded(tmp_path)["x/1"].fault
    assert fault.startswith("the verdict resolved does not follow from it: unresolved (1 test of PASS_TO_PASS")


@pytest.mark.parametrize(
    ("lacks", "says"), [("", "the verdict resolved does not follow"), ("refused", "it cannot be read: 'refused'")]
)
def test_a_bundle_of_another_version_that_does_not_hold_is_said_to_be_of_that_version(
    tmp_path: Path, graded: dict[str, Verdict], lacks: str, says: str
) -> None:
    path = tmp_path / "broken" / "1" / "bundle.json"
    facts = json.loads(path.read_text())
    facts |= {"versions": {"ramify": "0.0.7"}, "rules": 0, "verdict": facts["verdict"] | {"status": "resolved"}}
    facts.pop(lacks, None)
    path.write_text(json.dumps(facts))
    rewrite_chain(tmp_path)
    fault = regraded(tmp_path)["broken/1"].fault
    assert fault.startswith("Ramify 0.0.7 graded it, by rules 0; this is Ramify ")
    assert f"has to be graded again: {says}" in fault


def test_what_a_bundle_says_of_itself_orders_no_terminal_about(capsys: pytest.CaptureFixture[str]) -> None:
    said = cli_regrade._line(Regraded("x\x1b[2J/1", None, "Ramify \x1b]0;own\x07 graded it\nok  y/1: resolved"))
    assert said == "BAD x/1: Ramify graded it ok y/1: resolved"
    say("\x1b[2Jall is well\nand so on")
    assert capsys.readouterr().err == "\\x1b[2Jall is well\nand so on\n"


def rewrite_chain(folder: Path) -> None:
    """As if its bundles had been written as they are now."""
    head, lines = "", []
    for line in (json.loads(text) for text in (folder / CHAIN).read_text().splitlines()):
        data = (folder / line["bundle"] / "bundle.json").read_bytes()
        lines.append(line | {"sha256": hashlib.sha256(data).hexdigest(), "previous": head})
        head = line_digest(lines[-1])
    (folder / CHAIN).write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_the_log_of_an_eval_script_is_read_again(tmp_path: Path) -> None:
    log = f"{START}\nPASSED t.py::new\nFAILED t.py::old\n{END}\n"
    hidden = Hidden(*HIDDEN_TESTS, b"", b"", eval_script="true", log_parser="parse_log_pytest")
    archive = Archive(tmp_path)
    for name, believed in (("told", FAILED), ("forged", PASSED)):
        report = SuiteReport({"t.py::new": PASSED, "t.py::old": believed}, collected=2, adapter=LOG)
        finding = Finding(report, log=log.encode())
        instance = Instance(Task(name, "", Workspace(), ""), hidden)
        archive.keep(instance, b"x", finding, decide(name, b"x", hidden, finding))
    archive.close()
    found = regraded(tmp_path)
    assert (found["told/1"].fault, found["forged/1"].fault) == (
        "", "the report does not follow from the log of the eval script"
    )  # fmt: skip


def test_what_reports_go_by_has_to_be_what_the_evidence_says(tmp_path: Path, graded: dict[str, Verdict]) -> None:
    better = decide("broken", FINDINGS["broken"][0], HIDDEN, seen(new=PASSED, old=PASSED))
    unseen = decide("another", b"x", HIDDEN, seen(new=PASSED, old=PASSED))
    slipped_in = decide("refused", b"x", HIDDEN, seen(new=PASSED, old=PASSED))
    faults = {name: each.fault for name, each in regraded(tmp_path, better, unseen, slipped_in).items() if each.fault}
    assert faults == {
        "broken/1": "reports use another verdict: resolved",
        "another": "there is no evidence of its verdict resolved",
        "refused": "there is no evidence of its verdict resolved",
    }


def test_evidence_from_elsewhere_leads_to_no_file_but_its_own(tmp_path: Path) -> None:
    folder, lines = tmp_path / "evidence", []
    for name, files in (("x/1", {"../../secret": ""}), ("x/2", ["patch.diff"]), ("../x/1", {})):
        (folder / name).mkdir(parents=True)
        (folder / name / "bundle.json").write_text(data := json.dumps({"files": files}))
        previous = line_digest(lines[-1]) if lines else ""
        lines.append({"bundle": name, "sha256": hashlib.sha256(data.encode()).hexdigest(), "previous": previous})
    (folder / CHAIN).write_text("".join(json.dumps(line) + "\n" for line in lines))
    faults = {name: each.fault for name, each in regraded(folder).items()}
    assert faults["x/1"] == "no grading leaves a file '../../secret'"
    assert faults["x/2"].startswith("it cannot be read")
    assert faults["../x/1"] == "the chain has a name that no bundle of this folder can have"


def test_a_line_that_was_taken_out_of_the_chain_breaks_it(tmp_path: Path, graded: dict[str, Verdict]) -> None:
    head = chain_head(tmp_path)
    lines = (tmp_path / CHAIN).read_text().splitlines(keepends=True)
    (tmp_path / CHAIN).write_text("".join(lines[:1] + lines[2:]))
    faults = {name: each.fault for name, each in regraded(tmp_path).items() if each.fault}
    assert faults == {
        "refused/1": "the chain is broken before it: a line was changed or removed",
        "broken/1": "the chain does not have it; remove its folder if grading was killed",
    }
    assert chain_head(tmp_path) == head  # which names what was there before, and so the gap
    (tmp_path / CHAIN).write_text("".join(lines[:-1]))
    assert chain_head(tmp_path) == line_digest(json.loads(lines[-2])) != head


def test_evidence_is_added_to_by_a_later_grading(tmp_path: Path, graded: dict[str, Verdict]) -> None:
    archive = Archive(tmp_path)
    with pytest.raises(UsageError, match="in use"):
        Archive(tmp_path)
    patch, finding = FINDINGS["fixed"]
    instance = Instance(Task("fixed", "", Workspace(), ""), HIDDEN)
    archive.keep(instance, patch, finding, graded["fixed"])
    archive.close()
    assert {"fixed/1", "fixed/2"} <= {name for name, each in regraded(tmp_path).items() if not each.fault}


def test_a_folder_without_evidence_is_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no evidence"):
        regrade_all(tmp_path, {})
