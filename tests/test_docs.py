"""The documentation says what is so: its commands are run, its programs too, and the site builds without a warning."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
from dataclasses import fields
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest
from markdown_it import MarkdownIt
from typer.main import get_command

from agent.cli.app import ELSEWHERE
from agent.run.events import Event

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").rglob("*.md"))
TITLE = re.compile(r'title="([^"]+)"')


def fences(page, *languages):
    """The language line and the text of each code block in one of the languages, in order."""
    tokens = MarkdownIt().parse(page.read_text())
    blocks = [(token.info, token.content) for token in tokens if token.type == "fence"]
    return [block for block in blocks if block[0].split(" ", 1)[0] in languages]


def steps(session):
    """The commands of a `console` block, each with what it is to print."""
    for step in session.removeprefix("$ ").split("\n$ "):
        command, _, said = step.rstrip("\n").partition("\n")
        yield command, said and f"{said}\n"


def names(pages):
    return [str(page.relative_to(ROOT / "docs")) for page in pages]


@pytest.fixture
def shell(tmp_path, monkeypatch, namespaces):
    """Runs a command in a folder for one page; what it prints, errors too."""
    place = tmp_path / "project"
    place.mkdir()
    monkeypatch.chdir(place)
    bin_first = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    settings = {"PATH": bin_first, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COLUMNS": "120"}
    settings["RAMIFY"] = str(ROOT)
    author = {f"GIT_{role}_{what}": f"a@{what}" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    for name, value in {**settings, **author, "XDG_STATE_HOME": str(tmp_path / "state")}.items():
        monkeypatch.setenv(name, value)

    def run(command):
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    return run


WITH_COMMANDS = [page for page in PAGES if fences(page, "console", "python")]


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=names(WITH_COMMANDS))
def test_what_a_page_tells_to_do_does_what_it_says(page, shell, monkeypatch):
    module = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    for language, text in fences(page, "console", "python"):
        if titled := TITLE.search(language):
            Path(titled[1]).write_text(text)
        elif language == "python":
            exec(compile(text, str(page), "exec", dont_inherit=True), module.__dict__)
        else:
            for command, said in steps(text):
                done = shell(command)
                assert done.returncode == 0, f"{command}\n{done.stdout}"
                met = doctest.OutputChecker().check_output(
                    said, done.stdout, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
                )
                assert met, f"{command}\n{done.stdout}\n-- is not --\n{said}"


SHOWN = [
    (page, line)
    for page in PAGES
    for _, text in fences(page, "sh")
    for line in text.replace("\\\n", " ").splitlines()
    if line.startswith("ramify ")
]


@cache
def commands(module="agent.cli.app"):
    """The command line of a module; a tenth of a second each to make."""
    return get_command(import_module(module).app)


def command_of(words):
    """The command that words begin with, and the rest of them."""
    module = ELSEWHERE.get(words[0])
    command = commands(module) if module else commands()
    words = words[module is not None :]
    while words and words[0] in getattr(command, "commands", ()):
        command, words = command.commands[words[0]], words[1:]
    return command, words


@pytest.mark.parametrize(("page", "line"), SHOWN, ids=[line for _, line in SHOWN])
def test_a_command_that_needs_a_key_or_a_network_is_one_that_exists(page, line):
    command, words = command_of(shlex.split(line, comments=True)[1:])
    assert not hasattr(command, "commands"), f"{words[0]} is no command"
    context = command.make_context("ramify", [], resilient_parsing=True)
    command.make_parser(context).parse_args(words)


def test_the_readme_names_commands_and_options_that_exist():
    blocks = [
        each.content for each in MarkdownIt().parse((ROOT / "README.md").read_text()) if each.type == "code_block"
    ]
    text = re.sub(r"\n +", " ", re.sub(r" +#.*", "", "\n".join(blocks)))  # an indented line goes on with the one before
    lines = [line for line in text.splitlines() if line.startswith("ramify ")]
    assert len(lines) > 30
    for line in lines:
        words = line.split()[1:]
        assert words[0] in commands().commands, line
        command, _ = command_of(words)
        known = {name for each in command.params for name in each.opts}
        assert set(re.findall(r"(?<!\S)\[?(--[a-z-]+)", line)) <= known, line


def test_the_page_on_the_library_names_every_event_and_fields_that_it_has():
    page = (ROOT / "docs" / "tutorials" / "library.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \|.*\| (`.*`) \|$", page, re.MULTILINE))
    kinds = {kind.__name__: kind for kind in get_args(Event)}
    assert set(rows) == set(kinds)
    for name, told in rows.items():
        named = {field.split(".")[0] for field in re.findall(r"`([\w.]+)`", told)}
        assert named - {field.name for field in fields(kinds[name])} == set(), name


def test_the_site_builds_without_a_warning(tmp_path):
    pytest.importorskip("mkdocs", reason="mkdocs-material is not installed: make setup")
    argv = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    built = subprocess.run(
        argv,
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"},
    )
    assert built.returncode == 0, built.stderr
    text = (tmp_path / "site" / "reference" / "settings" / "index.html").read_text()
    assert "budget.max_nodes" in text
    commands = (tmp_path / "site" / "reference" / "commands" / "index.html").read_text()
    assert all(said in commands for said in ("ramify bench compare", "--held-out"))
