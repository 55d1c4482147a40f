"""What a person may type: usual names of options, and help that tells enough."""

from __future__ import annotations

import shlex
from importlib import import_module

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from agent.cli.app import ELSEWHERE, app
from agent.cli.options import settings_of
from agent.config import load
from agent.run.events import Started
from agent.run.run import Run
from benchmarks.cli.app import app as bench
from sandboxes import Snapshot

USUAL = {
    "solve": ("-m", "--model", "--policy", "--test", "--test-cmd", "--goal", "--goal-test", "-l", "--cost-limit",
              "--max-usd", "-o", "--out", "-w", "--workers", "-q", "--quiet", "-v", "--verbose"),
    "fix": ("-m", "--model", "--policy", "--test-cmd", "-l", "--cost-limit", "-o", "-w", "-q", "-v"),
    "resume": ("-l", "--cost-limit", "-q", "-v"),
    "clean": ("-n", "--dry-run"),
    "export": ("-o", "--out", "--set", "--option"),
    "replay": ("-o", "--out"),
}  # fmt: skip
IN_BENCH = {
    "run": ("-m", "--model", "--policy", "-w", "--workers", "-o", "--out", "-l", "--cost-limit", "--max-usd"),
    "grade": ("-w",),
    "check": ("-w",),
    "report": ("-o",),
}


def options_of(group, name):
    return {word for each in get_command(group).commands[name].params for word in each.opts}


@pytest.mark.parametrize(("group", "name", "words"), [
    *((app, name, words) for name, words in USUAL.items()), *((bench, name, words) for name, words in IN_BENCH.items())
])  # fmt: skip
def test_options_have_the_names_that_other_programs_use(group, name, words):
    assert set(words) - options_of(group, name) == set()


@pytest.mark.parametrize("words", [["-h"], ["solve", "-h"], ["config", "show", "-h"], ["bench", "-h"],
                                   ["bench", "run", "-h"], ["round", "-h"], ["serve-report", "-h"]])  # fmt: skip
def test_a_short_h_asks_for_help(words):
    said = CliRunner().invoke(app, words)
    assert (said.exit_code, said.output.startswith("Usage: ")) == (0, True), said.output


@pytest.mark.parametrize(("asked", "usual"), [
    (["help"], ["-h"]), (["help", "solve"], ["solve", "-h"]), (["help", "bench", "run"], ["bench", "run", "-h"]),
    (["config", "help", "show"], ["config", "show", "-h"]),
])  # fmt: skip
def test_help_is_a_command_too(asked, usual):
    assert CliRunner().invoke(app, asked).output == CliRunner().invoke(app, usual).output


def test_a_short_v_in_capitals_asks_for_the_version():
    assert CliRunner().invoke(app, ["-V"]).output == CliRunner().invoke(app, ["--version"]).output


def commands(path=("ramify",), group=None):
    """All commands by their words, those of other packages too."""
    for name, each in get_command(group or app).commands.items() if group is None else group.commands.items():
        if name in ELSEWHERE and len(path) == 1:
            each = get_command(import_module(ELSEWHERE[name]).app)
        if hasattr(each, "commands"):
            yield from commands((*path, name), each)
        else:
            yield (*path, name), each


COMMANDS = dict(commands())


class TestHelp:
    def test_it_lists_the_commands_by_what_they_are_for_each_with_a_whole_sentence(self):
        said = CliRunner().invoke(app, ["--help"], terminal_width=100).output
        headings = [line for line in said.splitlines() if line.endswith(":") and not line.startswith(" ")]
        assert headings == ["Options:", "Solve:", "Look:", "Steer:", "Batches:", "Training:", "Set-up:"]
        listed = said[said.index("Solve:") : said.index("Exit codes:")].splitlines()
        rows = [line for line in listed if line.startswith("  ") and line.strip()]
        assert [row for row in rows if not row.endswith(".") or row.endswith("..")] == []

    def test_it_ends_with_the_exit_codes(self):
        said = CliRunner().invoke(app, ["--help"]).output
        assert said.splitlines()[-1].split() == ["130,", "143", "interrupted,", "terminated"]

    @pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
    def test_the_help_of_a_command_ends_with_an_example_that_can_be_typed(self, path, tmp_path, monkeypatch):
        (tmp_path / "ramify" / "runs" / "words").mkdir(parents=True)
        with Run.open(tmp_path / "ramify" / "runs" / "words") as run:
            run.record(Started({}, {}, Snapshot("s0", "d0")))
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
        monkeypatch.chdir(tmp_path)
        command = COMMANDS[path]
        context = command.make_context(" ".join(path), [], resilient_parsing=True, max_content_width=100)
        said = command.get_help(context).splitlines()
        (start,) = (number for number, line in enumerate(said) if line.strip() in ("Example:", "Examples:"))
        for line in said[start + 1 :]:
            words = shlex.split(line)
            assert tuple(words[: len(path)]) == path
            command.make_context(" ".join(path), words[len(path) :])


@pytest.mark.parametrize(("words", "says"), [
    (["solve", "--workers", "many"], "'-w' / '--workers': 'many' should be a valid integer"),
    (["solve", "--max-usd", "abc"], "'abc' should be a valid number"),
    (["solve", "--rollouts", "0"], "should be greater than or equal to 1"),
    (["bench", "grade", "x", "--workers", "many"], "'many' should be a valid integer"),
    (["solve", "--modl", "x"], "--model"), (["solv"], "'solve'"), (["config", "shw"], "'show'"),
])  # fmt: skip
def test_what_is_typed_wrongly_is_named_with_a_remedy(words, says):
    said = CliRunner().invoke(app, words)
    assert (said.exit_code, says in said.output) == (2, True), said.output


class TestSettingsOfACommand:
    def test_what_is_not_given_changes_nothing(self):
        assert settings_of({"workers": None, "paranoid": False, "setup": []}) == load()

    def test_a_zero_is_given(self, tmp_path):
        (tmp_path / "seven.toml").write_text("seed = 7\n[budget]\nmax_usd = 7.0\n")
        settings = settings_of({"config": [str(tmp_path / "seven.toml")], "seed": 0, "max_usd": 0.0})
        assert (settings.seed, settings.budget.max_usd) == (0, 0.0)

    def test_several_models_share_a_tree(self):
        settings = settings_of({"model": ["mutate", "openai/x"]})
        assert (settings.policy.name, [each.name for each in settings.panel]) == ("mutate", ["openai/x"])

    @pytest.mark.parametrize(("path", "before"), [
        (("ramify", "solve"), ["--setup", "make"]), (("ramify", "fix"), ["--setup", "make"]),
        (("ramify", "bench", "run"), ["tasks", "--out", "there"]),
    ])  # fmt: skip
    def test_what_is_typed_becomes_the_setting(self, path, before):
        words = [
            "-m",
            "mutate",
            "-m",
            "openai/x",
            "--image",
            "one",
            "--max-usd",
            "0",
            "--effort",
            "low",
            "-c",
            "seed=3",
        ]
        settings = settings_of(COMMANDS[path].make_context("it", [*before, *words]).params, "workers=2")
        assert (settings.policy.name, len(settings.panel), settings.sandbox.image) == ("mutate", 1, "one")
        assert (settings.budget.max_usd, settings.effort, settings.seed, settings.workers) == (0, "low", 3, 2)
        assert list(settings.sandbox.setup) == before[1:] * (before[0] == "--setup")
