"""The rows that an ordinary run of a chat model leaves, without any option.

The runs are real, in a real sandbox; a scripted server takes right and wrong ways.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agent.actions import Observation, RunTests, Shell, Submit, apply, parse
from agent.cli.app import app
from agent.run.run import Run
from sandboxes import Provider, Workspace
from sandboxes.namespace.provider import namespace_provider
from tests.commands import ramify
from tests.exporting import rows, said
from tests.projects import BUG, FIX, SOURCE, TESTS, commit
from tests.scripted_server import Reply, ScriptedServer, says

pytestmark = pytest.mark.namespace

LOGPROBS = (-0.5, -0.25)
LOOK = ("bash", {"command": "cat means.py"})
TRY = ("bash", {"command": "python - <<'EOF'\nfrom means import mean\nprint(mean([2]))\nEOF"})
GREEN = TESTS.replace("mean([]) == 0.0", "mean([4]) == 4")
BREAKING = "    if len(numbers) < 4:\n"
TEST: tuple[str, dict[str, Any]] = ("run_tests", {})
SUBMIT: tuple[str, dict[str, Any]] = ("submit", {})


def edit(old: str, new: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return "edit", {"path": "means.py", "old_str": old, "new_str": new, **more}


def words(text: str, *calls: Any) -> Reply:
    return says(text, *calls, logprobs=LOGPROBS)


WRONG = [words("Looking.", LOOK), words("wrong", edit(BUG, BREAKING), TEST), words("So.", TRY, SUBMIT)]
RIGHT = [words("Looking.", LOOK), words("right", edit(BUG, FIX), TEST)]
MANY = [
    words("Trying.", TRY),
    words(
        "many",
        ("create", {"path": "notes/more.txt", "file_text": "a\n"}),
        ("insert", {"path": "means.py", "insert_line": 2, "insert_text": "LEAST = 4"}),
        edit("    total = 0\n", ""),
        edit("number", "each", replace_all=True),
        TRY,
        TEST,
    ),
]
OTHER = [words("Thinking.", TRY), words("right", edit(BUG, FIX), TEST)]


class Lines:
    """A model that takes these ways, one after the other, and submits at the end of each."""

    def __init__(self, *lines: list[Reply]) -> None:
        self._lines = iter(lines)
        self._now: Iterator[Reply] = iter(())

    def __call__(self, body: Mapping[str, Any]) -> Reply:
        if not body.get("tools"):
            return says("A summary.")
        if not any(message["role"] == "assistant" for message in body["messages"]):
            self._now = iter(next(self._lines))
        return next(self._now, words("Done.", SUBMIT))


def solved_by(folder: Path, lines: Lines, *options: str, tests: str = TESTS) -> list[dict[str, Any]]:
    """Run `ramify solve --rollouts 4` in the folder, and return its requests."""
    repo = commit(folder / "repo", {"means.py": SOURCE, "test_means.py": tests, ".gitignore": "__pycache__/\n"})
    with ScriptedServer(lines) as server:
        argv = ["solve", "--repo", repo, "--issue", "mean([]) divides by zero", "--test", "python -m pytest -q"]
        argv += ["--policy", "openai/tiny", "-c", f"model.base_url={server.url}", "-c", "sandbox.kind=namespace"]
        argv += ["-c", "measure.baseline_runs=1"]
        argv += ["--rollouts", "4", "--out", folder / "run", *options]
        done = ramify(argv, cwd=folder, env={**os.environ, "OPENAI_API_KEY": "none"})
    assert done.returncode == 0, done.stderr
    return server.requests


@pytest.fixture(scope="module")
def goals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose goal is known: two lines are wrong, two are right."""
    folder = tmp_path_factory.mktemp("goals")
    asked = solved_by(folder, Lines(WRONG, RIGHT, MANY, OTHER), "--goal-failing")
    (folder / "asked.json").write_text(json.dumps([request for request in asked if request.get("tools")]))
    return folder


@pytest.fixture(scope="module")
def known(goals: Path) -> Iterator[Run]:
    with Run.read(goals / "run") as run:
        yield run


@pytest.fixture(scope="module")
def free(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """A run of which no goal is known: one line breaks what passed, three are submitted and break nothing."""
    folder = tmp_path_factory.mktemp("free")
    solved_by(folder, Lines(WRONG, RIGHT, RIGHT, OTHER), tests=GREEN)
    with Run.read(folder / "run") as run:
        yield run


def counted(run: Run, form: str) -> list[dict[str, Any]]:
    found = rows(run, form)
    assert not [row for row in found if "skipped" in row]
    return found


@pytest.mark.slow
class TestAKnownGoal:
    def test_leaves_every_rollout_the_same_first_request(self, goals: Path) -> None:
        asked = json.loads((goals / "asked.json").read_text())
        first = [request["messages"] for request in asked if len(request["messages"]) == 2]
        assert len(first) == 4
        assert all(messages == first[0] for messages in first)

    def test_leaves_pairs_of_answers_to_the_very_same_prompt_with_their_log_probabilities(self, known: Run) -> None:
        found = counted(known, "preference")
        told = [(said(row["chosen"][0]), said(row["rejected"][0])) for row in found]
        assert told == [
            ("Looking.", "Trying."),  # one wrong line passes the goal and breaks a test, the other breaks all
            (FIX, BREAKING),
            ("Looking.", "Trying."),
            ("Thinking.", "Looking."),
            ("Thinking.", "Trying."),
        ]
        for row in found:
            assert row["provenance"]["exact"]
            assert row["provenance"]["logprobs"] == [list(LOGPROBS)] * 2
            assert row["provenance"]["prompts"][0] == row["provenance"]["prompts"][1]

    def test_leaves_pairs_of_whole_lines(self, known: Run) -> None:
        found = counted(known, "line-preference")
        assert len(found) == 2
        for row in found:
            assert row["chosen"][0]["role"] == row["rejected"][0]["role"] == "assistant"
            assert FIX in map(said, row["chosen"])
            assert FIX not in map(said, row["rejected"])
        assert said(found[0]["prompt"][2]) == "Looking."
        assert len(found[1]["prompt"]) in (2, 4)

    def test_leaves_revisions_that_lead_to_the_right_files_when_they_are_carried_out(
        self, goals: Path, known: Run
    ) -> None:
        """Through commands that only read, a new file, an insertion, a deletion and a replacement of all."""
        found = counted(known, "revision")
        assert len(found) == 2
        right = {".gitignore": "__pycache__/\n", "means.py": SOURCE.replace(BUG, FIX), "test_means.py": TESTS}
        with closing(namespace_provider(goals / "again")) as provider:
            for row in found:
                assert repeated(provider, goals / "repo", row["messages"]) == right

    def test_leaves_values_of_steps_and_groups_for_grpo(self, known: Run) -> None:
        values = {row["provenance"]["node"]: row["value"] for row in counted(known, "prm")}
        assert set(values.values()) == {0.0, 1.0}
        first = [
            row
            for row in counted(known, "grpo-tree")
            if row["provenance"]["nodes"][0] == 0 and row["group"][-2:] == "/0"
        ]
        assert len(first) == 4
        assert sorted(row["advantage"] > 0 for row in first) == [False, False, True, True]

    def test_leaves_the_right_lines_to_imitate(self, known: Run) -> None:
        assert len(counted(known, "sft-masked")) == 2
        assert {row["provenance"]["outcome"] for row in rows(known, "sft")} == {"solved"}


class TestNoKnownGoal:
    """What was submitted and broke nothing is preferred to what broke something."""

    @pytest.mark.parametrize("form", ["sft-masked", "preference", "line-preference", "revision"])
    @pytest.mark.slow
    def test_leaves_rows_all_the_same(self, free: Run, form: str) -> None:
        found = [row for row in rows(free, form) if "skipped" not in row]
        assert found
        assert {row["provenance"]["outcome"] for row in found} <= {"submitted", ""}

    def test_tells_the_lines_apart_by_what_they_broke(self, free: Run) -> None:
        assert {said(row["rejected"][0]) for row in counted(free, "line-preference")} == {BREAKING}
        advantages = [row["trajectory_advantage"] for row in counted(free, "grpo-tree")]
        assert min(advantages) < 0 < max(advantages)

    def test_says_of_no_attempt_that_it_solved_the_task(self, free: Run) -> None:
        reasons = {row.get("skipped") for row in rows(free, "critique")}
        assert reasons == {"no test is known that has to pass, so that nothing says whether the task is solved"}


class TestTheReport:
    def report(self, *arguments: object) -> str:
        done = CliRunner().invoke(app, ["export", *map(str, arguments), "--report"], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.stdout

    def test_counts_the_rows_of_each_format_and_why_there_are_no_more(self, free: Run) -> None:
        told = self.report(free.journal.directory)
        assert told.startswith("1 run would yield these rows:\n")
        assert "       1  line-preference (ramify train reward), 1 of which rest on `submitted`\n" in told
        assert "       0  critique\n                 4  refused: no test is known that has to pass" in told
        assert (
            "       0  edit: no run has such rows (right edits of functions, which searches with --model edit " in told
        )
        assert not [
            path for path in free.journal.directory.iterdir() if path.suffix == ".jsonl" and "train" in path.name
        ]

    def test_is_the_same_as_json(self, free: Run) -> None:
        told = json.loads(self.report(free.journal.directory.parent, "--json"))
        assert told["runs"] == 1
        assert told["formats"]["line-preference"] == {"rows": 1, "outcomes": {"submitted": 1}, "refused": {}}
        assert "openai" not in told["formats"]

    @pytest.mark.slow
    def test_says_of_each_kind_of_row_of_a_chat_policy_what_trains_on_it(self, known: Run, free: Run) -> None:
        told = self.report(known.journal.directory, free.journal.directory)
        for line in (
            "sft-masked (ramify train sft), ",
            "preference (ramify train dpo or reward)",
            "line-preference (ramify train reward)",
            "revision (ramify train sft)",
            "grpo-tree (ramify train grpo)",
            "prm, ",
            "verifier (ramify train prm)",
        ):
            assert line in told

    def test_may_be_of_one_format_with_its_options(self, free: Run) -> None:
        told = self.report(free.journal.directory, "--format", "preference", "--set", "most=1")
        assert told.splitlines()[1].endswith("preference (ramify train dpo or reward), 1 of which rest on `submitted`")
        assert "refused: its tree has enough pairs" in told


def repeated(provider: Provider, repo: Path, messages: list[dict[str, Any]]) -> dict[str, str]:
    """The files after all calls of a conversation."""
    with provider.at(provider.create(Workspace(path=repo))) as box:
        for message in messages:
            for call in message.get("tool_calls", ()):
                action = parse(call["function"]["name"], json.dumps(call["function"]["arguments"]))
                if not isinstance(action, (RunTests, Submit)):
                    assert apply(action, box, _unasked).ok or isinstance(action, Shell), call
        done = box.exec(["git", "ls-files", "--cached", "--others", "--exclude-standard"], timeout_s=30)
        return {name: box.read(name).decode() for name in done.stdout.decode().split()}


def _unasked(tests: tuple[str, ...]) -> Observation:
    raise AssertionError(tests)
