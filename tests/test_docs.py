"""Checks the documentation: runs its commands and programs, and builds the site without a warning."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
import tomllib
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from markdown_it import MarkdownIt
from typer.main import get_command

from agent.cli.app import ELSEWHERE
from tests.tiers import slow_but

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = sorted((ROOT / "docs").rglob("*.md"))
AT_ROOT = {**os.environ, "PYTHONPATH": str(ROOT)}
TITLE = re.compile(r'title="([^"]+)"')


def fences(page, *languages):
    """Return the info line and the text of each code block in one of the languages, in order."""
    tokens = MarkdownIt().parse(page.read_text())
    blocks = [(token.info, token.content) for token in tokens if token.type == "fence"]
    return [block for block in blocks if block[0].split(" ", 1)[0] in languages]


def steps(session):
    """Yield the commands of a `console` block, each with its expected output."""
    for step in session.removeprefix("$ ").split("\n$ "):
        command, _, expected = step.rstrip("\n").partition("\n")
        yield command, expected and f"{expected}\n"


def names(pages):
    return [str(page.relative_to(ROOT / "docs")) for page in pages]


@pytest.fixture
def shell(tmp_path, monkeypatch, namespaces):
    """A function that runs a command in the page's folder, with stdout and stderr together."""
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
BRIEF = [page for page in WITH_COMMANDS if not fences(page, "console")]
"""Pages whose programs run no search."""


@pytest.mark.parametrize("page", slow_but(BRIEF, WITH_COMMANDS), ids=names(WITH_COMMANDS))
def test_what_a_page_tells_to_do_does_what_it_says(page, shell, monkeypatch):
    module = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    for language, text in fences(page, "console", "python"):
        if titled := TITLE.search(language):
            Path(titled[1]).write_text(text)
        elif language == "python":
            exec(compile(text, str(page), "exec", dont_inherit=True), module.__dict__)
        else:
            for command, expected in steps(text):
                assert_prints(shell(command), command, expected)


def assert_prints(done, command, expected):
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    same = doctest.OutputChecker().check_output(expected, done.stdout, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert same, f"{command}\n{done.stdout}\n-- is not --\n{expected}"


@pytest.fixture
def red_checkout(shell):
    """A checkout with what the commands of the README need: a failing test, an issue, and the report of a build."""
    Path("tests").mkdir()
    Path("a.py").write_text("def mean(values):\n    return sum(values) / len(values) if len(values) > 1 else 0\n")
    Path("tests/test_a.py").write_text(
        "from a import mean\n\n\ndef test_a():\n    assert mean([1, 3]) == 2\n\n\n"
        "def test_b():\n    assert (mean([]), mean([3])) == (0, 3)\n"
    )
    Path("issue.md").write_text("The mean of one value is that value.\n")
    made = shell(
        "git init -q . && git add -A && git commit -qm x && ! python3 -m pytest -q --junitxml=../report.xml && "
        "mv ../report.xml . && git add -A && git commit -qm report"
    )
    assert made.returncode == 0, made.stdout
    return shell


NEEDS_A_MODEL = "--model "


@pytest.mark.slow
def test_what_the_readme_tells_to_do_on_ones_own_repository_works(red_checkout, monkeypatch):
    module = ModuleType("readme")
    monkeypatch.setitem(sys.modules, "readme", module)
    monkeypatch.setenv("TASKS", str(ROOT / "examples" / "suite"))
    done = 0
    for language, text in fences(README, "sh", "python"):
        if language == "python":
            exec(compile(text, str(README), "exec", dont_inherit=True), module.__dict__)
            assert module.result.status == "solved"
            continue
        for line in text.splitlines():
            if line.startswith("ramify ") and NEEDS_A_MODEL not in line:
                ended = red_checkout(f"git checkout --quiet . && {line.replace('TASKS', '$TASKS')}")
                assert ended.returncode == 0, f"{line}\n{ended.stdout}"
                done += 1
    assert done > 10


@pytest.mark.slow
def test_the_run_at_the_top_of_the_readme_is_what_make_demo_prints(shell):
    ((_, text),) = fences(README, "console")
    ((command, said),) = steps(text)
    assert command == "make demo"
    venv = os.path.relpath(sys.prefix, ROOT)
    installed = f"VENV={venv} --old-file={venv}/.installed"  # this Python has Ramify: nothing is installed
    printed = shell(f"make --no-print-directory -C {ROOT} {installed} demo")
    assert_prints(printed, command, said.replace(".venv/bin/ramify apply", "ramify apply"))  # it is on the PATH here


def test_the_readme_is_short_and_its_pictures_and_pages_are_there():
    text = README.read_text()
    assert len(text.splitlines()) <= 130
    links = [link.partition("#") for link in re.findall(r"\]\(([^)]+)\)", text)]
    assert len(links) > 20
    for file, _, heading in links:
        page = ROOT / (file or "README.md")
        assert page.is_file(), file
        assert not heading or heading in slugs(page), f"{file}#{heading}"


def slugs(page):
    """The anchors of a page's headings."""
    headings = re.findall(r"^#+ (.+)", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_badges_say_what_the_project_says():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    images = ROOT / "docs" / "images"
    assert f"licence: {project['license']}" in (images / "badge-licence.svg").read_text()
    needed = project["requires-python"].removeprefix(">=")
    assert f"python: {needed} or newer" in (images / "badge-python.svg").read_text()


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


SHOWN = sorted(
    {
        line
        for page in (README, *PAGES)
        for _, text in fences(page, "sh")
        for line in text.replace("\\\n", " ").splitlines()
        if line.startswith("ramify ")
    }
)


@pytest.mark.parametrize("line", SHOWN)
def test_a_command_that_is_shown_parses(line):
    command, words = command_of(shlex.split(line, comments=True)[1:])
    assert not hasattr(command, "commands"), f"{words[0]} is no command"
    context = command.make_context("ramify", [], resilient_parsing=True)
    command.make_parser(context).parse_args(words)


def said_of_commands(page):
    """What a page says of `ramify` and `make` in code: inline, indented, and in blocks that nobody runs."""
    for token in MarkdownIt().parse(page.read_text()):
        inline = [each.content for each in token.children or () if each.type == "code_inline"]
        block = token.content if token.type == "code_block" or (token.type, token.info) == ("fence", "text") else ""
        for line in (*inline, *re.sub(r"^\$ ", "", block, flags=re.MULTILINE).splitlines()):
            if line.startswith(("ramify ", "make ")):
                yield re.sub(r" +#.*", "", line)


WRITTEN = [README, ROOT / "CONTRIBUTING.md", *PAGES]


@pytest.mark.parametrize("page", WRITTEN, ids=[str(page.relative_to(ROOT)) for page in WRITTEN])
def test_a_page_names_commands_options_and_targets_that_exist(page):
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for line in said_of_commands(page):
        program, *words = line.split()
        if program == "make":
            assert words[0] in targets or words[0].startswith(("-", "PYTHON=")), line
        elif words[0] in commands().commands:
            command, _ = command_of(words)
            known = {name for each in command.params for name in each.opts} | {"--help"}
            assert set(re.findall(r"(?<!\S)\[?(--[a-z][a-z-]*)", line)) <= known, line
        else:
            assert words[0].startswith("--") or words[0].isupper(), f"{line}: no such command"


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path):
    pytest.importorskip("mkdocs", reason="mkdocs-material is not installed: make setup")
    argv = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    built = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, env={**AT_ROOT, "NO_MKDOCS_2_WARNING": "1"})
    assert built.returncode == 0, built.stderr
    assert (tmp_path / "site" / "reference" / "settings" / "index.html").is_file()


def test_the_reference_is_what_the_code_makes():
    checked = subprocess.run(
        [sys.executable, "docs/reference.py", "--check"], cwd=ROOT, capture_output=True, text=True, env=AT_ROOT
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_reference_has_every_command_setting_and_event():
    reference = ROOT / "docs" / "reference"
    said = {name: (reference / f"{name}.md").read_text() for name in ("commands", "settings", "events", "exit-codes")}
    assert all(each in said["commands"] for each in ("## ramify bench compare\n", "--held-out"))
    assert "`budget.max_nodes`" in said["settings"]
    assert "## Added\n" in said["events"]
    assert "| 124 |" in said["exit-codes"]
