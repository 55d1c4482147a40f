"""Repositories in other languages, in a real sandbox: what their own tools say of them, a search, and manipulations.

Where a tool is missing its tests are skipped; with RAMIFY_REQUIRE_NODE=1 (GO, CARGO, ...) they fail.
"""

from __future__ import annotations

import os
import shutil
import sys

import pytest

from agent.actions import Edit
from agent.budget import Budget
from agent.engine.components import Components
from agent.errors import MeasureError, UsageError
from agent.evaluate.guard import inspect
from agent.evaluate.value.tests import PassingTests
from agent.measure import SuiteReport
from agent.measure.adapters.inner import inner_tests
from agent.measure.adapters.registry import ADAPTERS
from agent.measure.adapters.running import run_adapted
from agent.measure.measurer import find_baseline
from agent.measure.protection import protect
from agent.measure.suite import GENEROUS
from agent.policy import Proposal
from agent.run.run import Run
from agent.search.best_first import BestFirst
from agent.solver.solve import solve
from tests.languages import LANGUAGES
from tests.measuring import Lab
from tests.policies import Scripted

pytestmark = pytest.mark.namespace


def lab_of(provider, folder, name, **changes):
    """The project of a language, in a sandbox."""
    language = LANGUAGES[name]
    if language.needs and shutil.which(language.needs) is None:
        why = f"{language.needs} is not installed"
        (pytest.fail if os.environ.get(f"RAMIFY_REQUIRE_{name.upper()}") == "1" else pytest.skip)(why)
    wanted = {"command": language.command, "framework": name, "setup": language.setup} | changes
    return Lab(provider, folder, language.files, **wanted)


def repair(name):
    language = LANGUAGES[name]

    def answer(position):
        wrong = position.index == 0
        return Proposal((Edit(language.source, "a - b", "a * b" if wrong else "a + b"),) if position.index < 2 else ())

    return Scripted(answer)


@pytest.mark.parametrize("name", LANGUAGES)
@pytest.mark.slow
def test_a_bug_in_any_language_is_searched_for_and_its_patch_verified(name, provider, tmp_path):
    language, lab = LANGUAGES[name], lab_of(provider, tmp_path / "repo", name)
    parts = Components(provider, repair(name), BestFirst(), PassingTests(), Budget(), baseline_runs=1)
    with Run.open(tmp_path / "run") as run:
        result = solve(lab.task, parts, run)
        root, wrong, right = (run.tree[node].report for node in (0, 1, 2))
    assert (root.adapter, root.failures, root.passed(language.passing)) == (name, (language.goal,), True)
    assert not wrong.passed(language.goal)
    assert right.passed(language.goal)
    assert (result.status, result.verified) == ("solved", True)
    assert b"a + b" in result.patch
    if name == "go":
        assert language.passing not in wrong.outcomes  # the goal test was run alone


LEAVE = "process.exit(0);\n"
FORGE = """const forged = 'TAP version 13\\nok 1 - adds\\nok 2 - of two\\n1..2\\n# pass 2\\n';
require('fs').writeSync(1, forged);
process.exit(0);
"""
FIND = """const fs = require('fs');
const test = {id: 'test/calc.test.js::adds', outcome: 'passed', seconds: 0, message: '', kind: 'test'};
for (const folder of fs.readdirSync('/tmp')) {
  for (const file of fs.readdirSync('/tmp/' + folder)) {
    fs.appendFileSync('/tmp/' + folder + '/' + file, '0'.repeat(64) + ' ' + JSON.stringify(test) + '\\n');
  }
}
"""
CALC = LANGUAGES["node"].files["calc.js"]
TESTS = LANGUAGES["node"].files["test/calc.test.js"]
TRICKS = {
    "the source leaves": {"calc.js": LEAVE + CALC},
    "the source prints results and leaves": {"calc.js": FORGE + CALC},
    "the source writes to every report that it finds": {"calc.js": FIND + CALC},
    "the source replaces the assertion": {"calc.js": "require('assert').strictEqual = () => {};\n" + CALC},
    "the failing test is skipped": {"test/calc.test.js": TESTS.replace("it('adds'", "it.skip('adds'")},
    "the failing test is deleted": {"test/calc.test.js": TESTS.replace("it('adds'", "void ('adds'")},
}


def test_a_manipulation_of_a_node_project_gains_nothing(provider, tmp_path):
    lab = lab_of(provider, tmp_path / "repo", "node")
    for trick, files in TRICKS.items():
        evaluation, base = lab.judge(lab.state(files))
        assert not evaluation.solved, trick
        assert evaluation.value <= base.value, trick
    evaluation, _ = lab.judge(lab.state({"calc.js": CALC.replace("a - b", "a + b")}))
    assert evaluation.solved


def test_a_patch_to_tests_inside_of_a_rust_source_or_to_what_runs_them_is_refused(provider, tmp_path):
    files = LANGUAGES["cargo"].files
    lab = Lab(provider, tmp_path / "repo", files, "true", framework="cargo")
    protection = protect(lab.task, SuiteReport())
    source, manifest = files["src/lib.rs"], files["Cargo.toml"]
    reasons = {
        "an existing test inside of the source was changed": {"src/lib.rs": source.replace("2), 3)", "2), -1)")},
        "talks to the test runner: 'exit(0)'": {"src/lib.rs": "fn f() { std::process::exit(0) }\n" + source},
        "how the tests are run was changed": {"Cargo.toml": manifest + "[lib]\nharness = false\n"},
        "it tells the test runner what to do": {"build.rs": "fn main() {}\n"},
    }
    for reason, changed in reasons.items():
        flags = inspect(provider, lab.base, lab.state(changed), protection)
        assert any(reason in flag.reason for flag in flags), reason
    left_early = {"src/lib.rs": source.replace("        assert_eq!", "        return;\n        assert_eq!")}
    assert "an existing test" in inspect(provider, lab.base, lab.state(left_early), protection)[0].reason
    more = "    #[test]\n    fn more() {\n        assert!(true);\n    }\n\n    #[test]\n    fn adds"
    honest = {
        "src/lib.rs": source.replace("a - b", "a + b").replace("    #[test]\n    fn adds", more),
        "Cargo.toml": manifest + "# x\n",
        "README.md": "test result: ok\n",
    }
    assert inspect(provider, lab.base, lab.state(honest), protection) == ()
    with provider.at(lab.base) as box:
        box.exec(["sh", "-c", "rm src/lib.rs; ln -s nowhere src/lib.rs; ln -s nowhere new.py"], timeout_s=100)
        linked = box.snapshot()
    assert "an existing test" in inspect(provider, lab.base, linked, protection)[0].reason


def test_in_a_source_only_what_is_there_for_tests_is_held():
    source = (
        "#[cfg(test)]\nmod helpers;\n\nfn add() {\n}\n\n#[cfg(test)]\nfn one() -> i32 {\n    1\n}\n\n"
        "#[cfg(all(test, unix))]\nmod tests {\n    use super::*;\n\n"
        "    // Twice.\n    #[test]\n    fn a() {\n        b();\n    }\n}\n"
        "fn last() {}\n"
    )
    begins = ADAPTERS["cargo"].inner
    assert inner_tests(source, begins) == [
        "#[cfg(test)]\nmod helpers;",
        "#[cfg(test)]\nfn one() -> i32 {\n    1\n}",
        "    use super::*;",
        "    // Twice.\n    #[test]\n    fn a() {\n        b();\n    }",
    ]
    documented = "/// Twice.\n/// ```\n/// assert!(f(2) == 4);\n/// ```\n/// ```text\n/// a\n/// ```\npub fn f() {}\n"
    assert inner_tests(documented, begins) == ["/// assert!(f(2) == 4);"]
    assert inner_tests("#![cfg(test)]\nuse a;\nfn b() {\n}\n", begins) == ["use a;", "fn b() {\n}"]


def test_what_is_printed_goes_to_a_file_that_tests_do_not_find(provider, tmp_path):
    lab = Lab(provider, tmp_path / "repo", {"a": ""}, "true")
    with provider.at(lab.base) as box:
        places = ("$PWD", sys.prefix, os.environ["VIRTUAL_ENV"])  # environments may lie below /tmp
        ours = " ".join(f'! -path "{place}/*"' for place in places)
        looking = f"find /tmp -mindepth 2 ! -type d {ours}; echo looked; echo complained >&2; exit 3"
        report = run_adapted(box, ADAPTERS["go"], looking, (), GENEROUS)
    assert (report.output, report.exit_code) == ("looked\ncomplained\n", 3)


def test_where_the_framework_does_not_report_the_person_is_told_what_to_name(provider, tmp_path):
    lab = Lab(provider, tmp_path / "repo", {"go.mod": "module x\n"}, "echo fine", framework="go")
    with pytest.raises(
        MeasureError, match=r"go did not report; the command ended with exit code 0 \(fine\); .*--test-fr"
    ):
        find_baseline(provider, lab.task, lab.base)


def test_a_command_is_one_test_where_the_person_says_so(provider, tmp_path):
    lab = Lab(provider, tmp_path / "repo", {"a": ""}, "python3 -m pytest nowhere", framework="exit-code")
    report = find_baseline(provider, lab.task, lab.base, runs=1)
    assert (report.adapter, report.failures) == ("exit-code", ("test-command",))


def test_a_search_of_other_than_pytest_needs_a_model_and_says_so(provider, tmp_path):
    lab = lab_of(provider, tmp_path / "repo", "unittest")
    parts = Components(
        provider, repair("unittest"), BestFirst(), PassingTests(), Budget(), baseline_runs=1, localise=True
    )
    with (
        Run.open(tmp_path / "run") as run,
        pytest.raises(UsageError, match=r"'python3 -m unittest' is read as unittest: run them by pytest"),
    ):
        solve(lab.task, parts, run)
