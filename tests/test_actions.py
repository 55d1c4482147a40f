"""What actions do in a sandbox, how far they reach, and how a model's calls become actions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.actions import (
    Action,
    BadCall,
    Debug,
    Edit,
    Effect,
    Invalid,
    Observation,
    Replacement,
    RunTests,
    Search,
    Shell,
    Submit,
    View,
    Write,
    apply,
    as_call,
    effect,
    invalid,
    parse,
    schema,
)
from agent.actions.excerpt import OBSERVATION_BYTES, excerpt, printable
from agent.engine.feedback import Feedback
from agent.errors import MeasureError
from agent.measure import Outcome, SuiteReport
from agent.task import Task
from agent.untrusted import visible
from sandboxes import Provider, Sandbox, Snapshot, Workspace
from sandboxes.namespace.provider import namespace_provider
from tests.acting import do
from tests.tiers import slow_but

GREETING = "def greet(name):\n    text = 'hello ' + name\n    return text\n"


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    provider = namespace_provider(tmp_path_factory.mktemp("store"))
    yield provider
    provider.close()


@pytest.fixture(scope="module")
def base(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    repo = tmp_path_factory.mktemp("repo")
    (repo / "pkg").mkdir()
    (repo / "greet.py").write_text(GREETING)
    (repo / "pkg/dos.py").write_bytes(b"a = 1\r\nb = 2\r\n")
    (repo / "pkg/latin.txt").write_bytes(b"caf\xe9\nhello\n")
    (repo / "pkg/long.txt").write_text("".join(f"line {n} of many\n" for n in range(1, 5001)))
    (repo / "pkg/blob.bin").write_bytes(b"hello\0world")
    return provider.create(Workspace(path=repo))


@pytest.mark.namespace
class TestACommand:
    def test_shows_its_exit_code_and_both_streams_in_the_order_in_which_they_were_written(self, box: Sandbox) -> None:
        seen = do(Shell("echo out; echo err >&2; echo more; exit 3"), box)
        assert seen == Observation("exit code: 3\nout\nerr\nmore", ok=False)
        script = "import sys; print('a'); print('b', file=sys.stderr); print('c')"
        assert do(Shell(f'python3 -c "{script}"'), box).text == "exit code: 0\na\nb\nc"

    @pytest.mark.parametrize(
        "options", slow_but(["0.5s"], ["1", "0.5s", "-k 1 -s KILL .5", "--preserve-status 1", "--signal=TERM 1"])
    )
    def test_that_its_own_timeout_cut_says_so_past_a_pipe(self, box: Sandbox, options: str) -> None:
        seen = do(Shell(f"timeout {options} sh -c 'echo begun; sleep 30' 2>&1 | tail"), box)
        assert seen.ok
        assert "begun" in seen.text
        assert "[timeout: the command was cut, with status" in seen.text

    def test_with_a_timeout_that_does_not_cut_is_as_without(self, box: Sandbox) -> None:
        assert do(Shell("timeout 30 sh -c 'exit 7'"), box) == Observation("exit code: 7\n(no output)", ok=False)
        assert do(Shell("echo in | timeout 30 cat"), box) == Observation("exit code: 0\nin")
        assert do(Shell("set -e; timeout 1 sleep 30; echo on"), box).text.startswith("exit code: 124\n[timeout:")

    @pytest.mark.parametrize(
        ("command", "ok"),
        [
            ("grep -rnwE 'Output|visit_Output' .", True),
            ("echo on\nls | grep 'a;b'", True),
            ("echo on; git grep old", False),  # there is no repository, so it does not end with 1
            ("grep -c old absent.txt", False),
            ("false && grep old .", False),
            ("set -e; false; grep -r old .", False),
            ("grep -r old . ; false", False),
            ("sh -c 'exit 1'", False),
            ("false '", False),
        ],
    )
    def test_that_ends_with_a_search_which_finds_nothing_has_not_failed(
        self, box: Sandbox, command: str, ok: bool
    ) -> None:
        assert do(Shell(command), box).ok is ok

    def test_leaves_no_byte_code_behind(self, box: Sandbox) -> None:
        box.write("pkg/__init__.py", b"")
        assert do(Shell("python3 -c 'import pkg, greet'; ls -A . pkg | grep -c pycache"), box).text.endswith("\n0")

    def test_can_import_what_is_repaired_from_a_script_elsewhere(self, box: Sandbox) -> None:
        box.write("src/inner.py", b"x = 1\n")
        seen = do(Shell("cd /tmp; echo 'import greet, inner; print(inner.x)' > x.py; python3 x.py"), box)
        assert seen.text == "exit code: 0\n1"
        kept = do(Shell("echo $PYTHONPATH"), box).text.split("\n")[1]
        assert kept.endswith(f"{box.workdir}:{box.workdir}/src")

    def test_is_not_shown_modules_of_the_workspace_for_those_of_the_standard_library(self, box: Sandbox) -> None:
        box.write("calendar.py", b"raise SystemExit('the wrong one')\n")
        box.write("src/inner.py", b"x = 1\n")
        assert do(Shell("cd /tmp; python3 -c 'import calendar, inner'"), box).ok

    def test_that_prints_nothing_says_so(self, box: Sandbox) -> None:
        assert do(Shell("true"), box) == Observation("exit code: 0\n(no output)")

    def test_runs_in_bash_where_there_is_one(self, box: Sandbox) -> None:
        assert "two" in do(Shell("words=(one two); echo ${words[1]}"), box).text

    def test_keeps_what_it_changed(self, box: Sandbox) -> None:
        do(Shell("echo new > made.txt"), box)
        assert box.read("made.txt") == b"new\n"

    def test_that_takes_too_long_says_that_nothing_was_kept(self, box: Sandbox) -> None:
        seen = do(Shell("echo begun; sleep 30", timeout_s=0.5), box)
        assert (seen.ok, seen.fork_lost) == (False, True)
        assert "within 0.5 s" in seen.text
        assert "Nothing that it did was kept" in seen.text

    def test_with_long_output_shows_its_head_its_tail_and_how_much_is_missing(self, box: Sandbox) -> None:
        seen = do(Shell("seq 1 100000"), box)
        assert seen.text.startswith("exit code: 0\n1\n2\n")
        assert seen.text.endswith("\n100000")
        assert len(seen.text) < OBSERVATION_BYTES + 100
        assert 500_000 < seen.elided_bytes < 600_000

    def test_with_more_output_than_is_read_counts_that_too(self, box: Sandbox) -> None:
        seen = do(Shell("head -c 3000000 /dev/zero | tr '\\0' x"), box)
        assert "more bytes of output were not kept]" in seen.text
        assert 3_000_000 - OBSERVATION_BYTES <= seen.elided_bytes < 3_000_000

    def test_of_output_that_is_no_text_can_still_be_stored(self, box: Sandbox) -> None:
        seen = do(Shell(r"printf 'a\377\033[31mb\000'"), box)
        assert json.dumps(seen.text, ensure_ascii=False).encode()
        assert seen.text == "exit code: 0\na\ufffdb\ufffd"

    def test_that_hides_something_is_seen_through(self, box: Sandbox) -> None:
        seen = do(Shell(r"printf '\033[31mred\033[0m a\xe2\x80\x8bb'"), box)
        assert seen.text == "exit code: 0\nred a\\u200bb"

    def test_that_is_too_long_for_the_system_is_refused(self, box: Sandbox) -> None:
        seen = do(Shell("echo " + "x" * 200_000), box)
        assert not seen.ok
        assert "use create" in seen.text


@pytest.mark.namespace
class TestLooking:
    def test_at_a_file_numbers_its_lines(self, box: Sandbox) -> None:
        seen = do(View("greet.py", 2, 3), box)
        assert seen.text == "greet.py (3 lines)\n     2\t    text = 'hello ' + name\n     3\t    return text"

    def test_at_a_long_file_leaves_out_its_middle(self, box: Sandbox) -> None:
        seen = do(View("pkg/long.txt"), box)
        assert "     1\tline 1 of many" in seen.text
        assert "  5000\tline 5000 of many" in seen.text
        assert f"[... {seen.elided_bytes} bytes left out here; to see them, give a view_range ...]" in seen.text

    def test_at_a_directory_lists_it(self, box: Sandbox) -> None:
        assert do(View("."), box).text.splitlines()[1:] == ["greet.py", "pkg/"]

    @pytest.mark.parametrize(
        ("action", "why"),
        [
            (View("none.py"), "none.py does not exist"),
            (View("greet.py/x"), "a part of greet.py/x is a file"),
            (View("greet.py", 9), "greet.py has 3 lines only"),
        ],
    )
    def test_at_what_is_not_there_says_so(self, box: Sandbox, action: View, why: str) -> None:
        seen = do(action, box)
        assert not seen.ok
        assert why in seen.text

    def test_at_a_binary_file_tells_its_size_only(self, box: Sandbox) -> None:
        assert do(View("pkg/blob.bin"), box).text == "pkg/blob.bin is a binary file of 11 bytes."

    def test_for_a_pattern_names_file_and_line_of_every_match_in_order(self, box: Sandbox) -> None:
        box.write("d/b.txt", b"say hello\nbye\n")
        box.write("d/a.txt", b"hello\n" * 11)
        lines = do(Search("hel+o", "d"), box).text.splitlines()
        assert lines == ["12 lines match:", *(f"d/a.txt:{n}:hello" for n in range(1, 12)), "d/b.txt:1:say hello"]

    def test_in_one_file_names_it_too(self, box: Sandbox) -> None:
        assert do(Search("return", "greet.py"), box).text == "1 line matches:\ngreet.py:3:    return text"

    def test_for_what_is_everywhere_says_how_much_is_missing(self, box: Sandbox) -> None:
        box.write("d/many.txt", b"x" * 100 + b"\n" + b"match\n" * 100_000)
        seen = do(Search("match", "d"), box)
        assert " or more lines match:\nd/many.txt:2:match\n" in seen.text
        assert seen.elided_bytes > 100_000 * len("d/many.txt:2:match") - OBSERVATION_BYTES

    def test_for_what_is_nowhere_is_no_failure(self, box: Sandbox) -> None:
        assert do(Search("nowhere"), box) == Observation("No line below . matches.")

    @pytest.mark.parametrize("action", [Search("("), Search("x", "none")])
    def test_for_a_broken_pattern_or_in_no_place_is_one(self, box: Sandbox, action: Search) -> None:
        assert not do(action, box).ok

    def test_for_a_pattern_that_looks_like_an_option_searches(self, box: Sandbox) -> None:
        assert do(Search("-nope"), box).ok


class Suite:
    """A scorer that says the same of whatever is asked for."""

    task = Task("means", "It is wrong.", Workspace(), "pytest")

    def __init__(self, report: SuiteReport) -> None:
        self.report = report
        self.asked: list[tuple[str, ...]] = []

    def run_tests(self, snapshot: Snapshot, tests: tuple[str, ...]) -> tuple[SuiteReport, int]:
        self.asked.append(tests)
        return self.report, 1

    def put_back(self, snapshot: Snapshot) -> tuple[str, ...]:
        return ()

    def reproduction(self, snapshot: Snapshot, report: SuiteReport) -> tuple[None, int]:
        return None, 0


class TestRunningTests:
    BASE = Snapshot("base", "digest")
    SLOW = SuiteReport({"t.py::a": Outcome.PASSED}, duration_s=1000)
    QUICK = SuiteReport({"t.py::a": Outcome.PASSED})

    def show(self, report: SuiteReport, *tests: str, baseline: SuiteReport = SLOW) -> tuple[Observation, Suite]:
        suite = Suite(report)
        review = Feedback(suite.task, None, self.BASE, baseline, suite, lambda usage: None, ())  # type: ignore[arg-type]
        run = partial(review.tested, self.BASE)
        return apply(RunTests(tests), None, run), suite  # type: ignore[arg-type]  # no sandbox is looked at

    def test_counts_and_names_the_ones_that_failed_with_their_messages(self) -> None:
        outcomes = {"t.py::a": Outcome.PASSED, "t.py::b": Outcome.FAILED, "t.py::c": Outcome.SKIPPED}
        seen, suite = self.show(SuiteReport(outcomes, messages={"t.py::b": "assert 1 == 2"}), "t.py")
        assert suite.asked == [("t.py",)]
        assert not seen.ok
        assert seen.text.startswith("1 passed, 1 failed, 1 skipped in 0.0 s.\nFAILED t.py::b\nassert 1 == 2\n")

    def test_is_a_success_when_nothing_failed(self) -> None:
        seen, _ = self.show(self.QUICK, "t.py::a")
        assert seen.ok
        assert seen.text.startswith("1 passed in")

    def test_of_a_slow_suite_is_of_those_that_are_named_and_says_so(self) -> None:
        seen, suite = self.show(self.QUICK, "t.py::a")
        assert suite.asked == [("t.py::a",)]
        assert "Only these tests were run" in seen.text

    def test_says_in_one_line_that_none_was_run_as_no_source_has_changed(self) -> None:
        nothing = SuiteReport(complete=False, scope="0 of about 9 tests: no source file has changed")
        seen, _ = self.show(nothing)
        assert seen.text == (
            "None of the repository's own tests was run: no source file has changed.\n"
            "The repository is unchanged so far."
        )

    @pytest.mark.parametrize("tests", [("t.py::a",), ()])
    def test_of_a_quick_suite_is_of_all(self, tests: tuple[str, ...]) -> None:
        seen, suite = self.show(self.QUICK, *tests, baseline=self.QUICK)
        assert suite.asked[-1] == ()
        assert (seen.ok, "no test that passed fails now" in seen.text) == (True, True)

    def test_is_no_success_when_a_test_that_passed_is_newly_broken(self) -> None:
        broken = SuiteReport({"t.py::a": Outcome.FAILED}, messages={"t.py::a": "assert 0"})
        seen, _ = self.show(broken, baseline=self.QUICK)
        assert not seen.ok
        assert "Newly broken: t.py::a\n  assert 0" in seen.text

    def test_says_why_a_run_does_not_count_whatever_its_outcomes(self) -> None:
        report = SuiteReport({"t.py::a": Outcome.PASSED}, valid=False, problem="exit code 2", output="the end")
        seen, _ = self.show(report)
        assert not seen.ok
        assert "exit code 2" in seen.text
        assert "the end" in seen.text

    def test_shows_only_so_many_failures_and_says_how_many_more_there_are(self) -> None:
        seen, _ = self.show(SuiteReport({f"t.py::t{n}": Outcome.FAILED for n in range(50)}), "t.py")
        assert seen.text.count("FAILED") == 5
        assert "and 45 more: t.py::t5, " in seen.text

    def test_that_cannot_be_run_is_told_and_not_raised(self) -> None:
        def run(tests: tuple[str, ...]) -> Observation:
            raise MeasureError("nothing was collected")

        seen = apply(RunTests(("none",)), None, run)  # type: ignore[arg-type]  # no sandbox is looked at
        assert not seen.ok
        assert "nothing was collected" in seen.text


class TestTheReachOfAnAction:
    @pytest.mark.parametrize(
        ("action", "reach"),
        [
            (View("a"), Effect.READ_ONLY),
            (Search("a"), Effect.READ_ONLY),
            (RunTests(), Effect.READ_ONLY),
            (Debug("t.py::a"), Effect.READ_ONLY),
            (Submit(), Effect.READ_ONLY),
            (Invalid("look", "{}", "there is none"), Effect.READ_ONLY),
            (Edit("a", "b", "c"), Effect.WORKSPACE),
            (Write("a", "b"), Effect.WORKSPACE),
            (Shell("ls"), Effect.MACHINE),
        ],
    )
    def test_follows_its_kind(self, action: Action, reach: Effect) -> None:
        assert effect(action) is reach


class TestACall:
    @pytest.mark.parametrize(
        "action",
        [
            Shell("ls", 5.0),
            Shell("ls"),
            View("a", 2, 3),
            Search("a", "b"),
            Edit("a", "b\0", "c", line=3),
            Edit("a", "b", ""),
            Edit("a", "", "b", line=1),
            Edit("a", "b", "c", replace_all=True),
            Edit("a", "b", "c", more=(Replacement("d", "e", replace_all=True), Replacement("f", ""))),
            Edit("a", "", "b", line=4, more=(Replacement("d", "e"),)),
            Write("a", "\u00e9\n"),
            RunTests(("a", "b")),
            RunTests(),
            Debug("a", ("a.py:3: x", "f")),
            Debug("a"),
            Submit("done"),
            Submit("done", ("t.py::a: it asserts the old text",)),
        ],
    )
    def test_is_read_as_the_action_that_it_was_written_for(self, action: Action) -> None:
        assert parse(*as_call(action)) == action

    @pytest.mark.parametrize(
        ("name", "arguments", "why"),
        [
            ("look", "{}", "no tool 'look'; the tools are bash, view"),
            ("view", "{", "not JSON"),
            ("view", "[" * 100_000, "not JSON"),
            ("view", '"a"', "not an object"),
            ("view", "{}", "needs the parameter 'path'"),
            ("view", "", "needs the parameter 'path'"),
            ("view", '{"path": ' + "9" * 5_000 + "}", "not JSON"),
            ("view", '{"path": null}', "needs the parameter 'path'"),
            ("view", '{"path": 3}', "'path' of view has to be a string, not 3"),
            ("view", '{"path": "a", "view_range": "b"}', "'view_range' of view has to be [first, last], two integers"),
            ("view", '{"path": "a", "view_range": [1, 2, 3]}', "two integers"),
            ("view", '{"path": "a", "view_range": [1, true]}', "two integers"),
            ("view", '{"path": "a", "view_range": [9, 3]}', "ends before it begins: 9 to 3"),
            ("view", '{"path": "a", "start": 1.5}', "has to be an integer"),
            ("view", '{"path": "a", "lines": 3}', "no parameter 'lines'; it has path, view_range"),
            ("view", '{"path": "a", "file_path": "b"}', "'path' twice"),
            ("bash", '{"command": "ls", "timeout": NaN}', "at least 1"),
            ("bash", '{"command": "ls", "timeout": 0}', "at least 1, not 0"),
            ("bash", '{"command": "ls", "timeout": "soon"}', "a number"),
            ("bash", '{"command": "a\\u0000b"}', "NUL"),
            ("run_tests", '{"tests": ["a", 1]}', "an array of strings"),
            ("run_tests", '{"tests": "[\\"\\\\ud83d\\"]"}', "surrogate"),
            ("create", '{"path": "a", "file_text": "\\ud83d"}', "surrogate"),
            ("create", '{"path": "a", "file_text": {"b": 1}}', "a string"),
            ("edit", '{"path": "a"}', "needs old_str and new_str, or edits"),
            ("edit", '{"path": "a", "old_str": "b", "new_str": "c", "insert_line": 3}', "without old_str"),
            ("edit", '{"path": "a", "old_str": "b", "new_str": "c", "replace_all": 2}', "true or false"),
            ("edit", '{"path": "a", "edits": ["b"]}', "an array of objects"),
            (
                "edit",
                '{"path": "a", "edits": [{"old_str": "b"}]}',
                "each of the edits of edit needs the parameter 'new_str'",
            ),
            ("str_replace_editor", '{"command": "undo_edit", "path": "a"}', 'no command "undo_edit"'),
            ("str_replace_editor", '{"command": ["view"], "path": "a"}', "no command"),
        ],
    )
    def test_that_means_nothing_is_told_how_to_correct_it(self, name: str, arguments: str, why: str) -> None:
        with pytest.raises(BadCall) as caught:
            parse(name, arguments)
        assert why in str(caught.value)

    @pytest.mark.parametrize(
        ("name", "arguments", "action"),
        [
            ("shell", {"command": "ls", "timeout_s": 5}, Shell("ls", 5)),
            ("Bash", {"command": "ls", "description": "List files", "timeout": "120000"}, Shell("ls", 900)),
            ("execute_bash", {"command": "ls", "is_input": "false", "security_risk": "LOW"}, Shell("ls")),
            ("functions.bash", {"cmd": ["bash", "-lc", "ls | wc -l"]}, Shell("bash -lc 'ls | wc -l'")),
            ("view", {"path": "a", "start": 2, "end": 3}, View("a", 2, 3)),
            ("view", {"path": "a", "view_range": [40, -1]}, View("a", 40)),
            ("view", {"path": "a", "view_range": [0, 0]}, View("a")),
            ("view", {"path": "a", "view_range": ["2", 3.0]}, View("a", 2, 3)),
            ("view", {"path": "a", "view_range": "[2, 3]"}, View("a", 2, 3)),
            ("Read", {"file_path": "a", "offset": 11, "limit": 10}, View("a", 11, 20)),
            ("LS", {"path": "."}, View(".")),
            ("str_replace_editor", {"command": "view", "path": "a", "view_range": [2, 3]}, View("a", 2, 3)),
            ("str_replace_editor", {"command": "create", "path": "a", "file_text": "b"}, Write("a", "b")),
            (
                "str_replace_based_edit_tool",
                {"command": "str_replace", "path": "a", "old_str": "b", "new_str": "c", "insert_line": None},
                Edit("a", "b", "c"),
            ),
            (
                "str_replace_based_edit_tool",
                {"command": "insert", "path": "a", "insert_line": 0, "insert_text": "b"},
                Edit("a", "", "b", line=1),
            ),
            ("insert", {"path": "a", "insert_line": "3", "new_str": "b"}, Edit("a", "", "b", line=4)),
            ("edit", {"path": "a", "old": "b", "new": "c", "line": 3}, Edit("a", "b", "c", line=3)),
            ("edit", {"path": "a", "old_str": "b"}, Edit("a", "b", "")),
            ("Edit", {"file_path": "a", "old_string": "b", "new_string": "c"}, Edit("a", "b", "c")),
            (
                "MultiEdit",
                {"file_path": "a", "edits": [{"old_string": "b", "new_string": "c", "replace_all": "true"}]},
                Edit("a", "b", "c", replace_all=True),
            ),
            ("Write", {"file_path": "a", "content": "b"}, Write("a", "b")),
            ("write", {"path": "a", "content": "b"}, Write("a", "b")),
            (
                "Grep",
                {"pattern": "a", "path": "b", "output_mode": "content", "-n": True, "-i": False},
                Search("a", "b"),
            ),
            ("run_tests", {"tests": "t.py::a"}, RunTests(("t.py::a",))),
            ("run_tests", {"paths": ["t.py"]}, RunTests(("t.py",))),
            ("debug", {"test": ["t.py::a"], "probes": "f"}, Debug("t.py::a", ("f",))),
            ("finish", {"message": "done", "task_completed": "true"}, Submit("done")),
            ("submit", {"message": "done", "contradicted_tests": "a: why"}, Submit("done", ("a: why",))),
            ("bash", {"command": "ls", "timeout": None}, Shell("ls")),
        ],
    )
    def test_is_understood_as_models_have_learned_to_make_it(
        self, name: str, arguments: dict[str, object], action: Action
    ) -> None:
        assert parse(name, json.dumps(arguments)) == action

    def test_that_asks_for_what_is_not_done_is_not_taken_for_another(self) -> None:
        with pytest.raises(BadCall, match="search has no parameter '-i'; it has pattern, path"):
            parse("Grep", '{"pattern": "a", "-i": true}')

    def test_has_a_short_schema_that_names_what_is_required(self) -> None:
        parameters = {tool["function"]["name"]: tool["function"]["parameters"] for tool in schema()}
        assert list(parameters) == ["bash", "view", "edit", "create", "run_tests", "debug", "submit"]
        assert len(json.dumps(schema())) < 3_000
        assert parameters["create"]["required"] == ["path", "file_text"]
        assert "required" not in parameters["run_tests"]
        assert parameters["run_tests"]["properties"]["tests"]["items"] == {"type": "string"}
        assert list(parameters["view"]["properties"]) == ["path", "view_range"]
        assert parameters["edit"]["properties"]["edits"]["items"]["required"] == ["old_str", "new_str"]

    def test_of_a_debugger_is_offered_only_where_a_test_can_be_watched(self) -> None:
        names = [tool["function"]["name"] for tool in schema(debug=False)]
        assert names == [tool["function"]["name"] for tool in schema() if tool["function"]["name"] != "debug"]

    def test_that_cannot_be_read_keeps_what_can_be_shown_of_it(self) -> None:
        bad = invalid("look\udcff", '{"a": 1}', "there is none")
        assert as_call(bad) == ("look\\udcff", '{"a": 1}')
        assert as_call(invalid("look", "{", "there is none")) == ("look", "{}")
        assert do(bad, None) == Observation("Not done: there is none", ok=False)  # type: ignore[arg-type]  # not looked at


class TestAnExcerpt:
    @given(st.text(), st.integers(20, 100))
    def test_holds_the_ends_of_the_text_and_counts_the_rest(self, text: str, limit: int) -> None:
        shown, elided = excerpt(text, limit)
        size = len(text.encode("utf-8", "replace"))
        if size <= limit:
            assert (shown, elided) == (text, 0)
        else:
            assert size - limit <= elided < size
            assert f"[... {elided} bytes left out here ...]" in shown

    def test_ends_at_lines(self) -> None:
        shown, _ = excerpt("".join(f"line {n}\n" for n in range(100)), 100)
        assert all(line.startswith(("line ", "[...")) for line in shown.splitlines())

    @given(st.binary())
    def test_of_bytes_can_always_be_stored_and_printed(self, data: bytes) -> None:
        text = printable(data)
        text.encode()
        assert all(c in "\n\t" or c >= " " for c in text)
        assert visible(text) == text
