"""Writes the pages of the reference from the code: `make reference`. With --check, names those that are out of date."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import systems
from pydantic import BaseModel
from typer.main import get_command

import agent
from agent import errors
from agent.budget import Stop, Usage
from agent.cli.app import COMMANDS, ELSEWHERE, app
from agent.cli.help import EXIT_CODES
from agent.evaluate.value.registry import VALUES
from agent.learning.export.documents import DOCUMENTS
from agent.learning.export.registry import FORMATS
from agent.policy.chat.policy import ChatPolicy
from agent.run.events import Event
from agent.search.registry import SEARCHES
from agent.settings import Choice, Settings
from sandboxes import Workspace

DOCS = Path(__file__).parent
MADE = "*Made from the code by `make reference`; a test fails if this page is out of date.*\n"
COMPLETION = {"install_completion", "show_completion"}


def pages() -> dict[Path, str]:
    """All pages that are made from the code."""
    reference = {
        "commands": commands(),
        "settings": settings(),
        "choices": choices(),
        "exit-codes": exit_codes(),
        "events": events(),
        "library": library(),
    }
    made = {DOCS / "reference" / f"{name}.md": "\n".join(lines) + "\n" for name, lines in reference.items()}
    return {**made, DOCS / "systems.md": systems.page()}


def commands() -> Iterator[str]:
    """Every command with its arguments, options and examples."""
    yield f"# Commands\n\n{MADE}"
    yield "`ramify COMMAND --help` prints the same at a terminal. How a command can end: [exit codes](exit-codes.md).\n"
    for heading, those in COMMANDS.items():
        yield f"- **{heading}**: {', '.join(f'[`{name}`](#ramify-{name})' for name in those)}"
    yield ""
    for path, command in _walk("ramify", get_command(app)):
        yield from _command(path, command)


def _walk(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    """A command and all below it, those of other packages too."""
    yield path, command
    for name, below in getattr(command, "commands", {}).items():
        module = ELSEWHERE.get(name) if path == "ramify" else None
        yield from _walk(f"{path} {name}", get_command(import_module(module).app) if module else below)


def _command(path: str, command: Any) -> Iterator[str]:
    yield f"## {path}\n\n{' '.join((command.help or '').split())}\n"
    rows = [row for each in command.params if each.name not in COMPLETION for row in _parameter(each)]
    if rows:
        yield "\n".join(("| argument or option | meaning |", "|---|---|", *rows, ""))
    if examples := re.findall(r"^  (ramify .*)", command.epilog or "", re.MULTILINE):
        yield "\n".join(("```sh", *examples, "```\n"))


def _parameter(each: Any) -> Iterator[str]:
    if getattr(each, "hidden", False):
        return
    if each.param_type_name == "argument":
        shown = (each.metavar or each.name.upper()) + ("..." if each.nargs == -1 else "")
    else:
        taken = "" if each.is_flag else f" {each.metavar or each.name.upper()}"
        shown = ", ".join((*each.opts, *each.secondary_opts)) + taken
    yield f"| `{_cell(shown)}` | {_cell(each.help or '')}{_default(each.default)} |"


def _default(value: object) -> str:
    if value in (None, False, "", ()):
        return ""
    return f" Default: {'this Python' if value == sys.executable else f'`{_cell(str(value))}`'}."


def settings() -> Iterator[str]:
    """Every setting with its default and what its docstring says."""
    yield f"# Settings\n\n{MADE}"
    yield "Give settings in a TOML file (`-c FILE`) or one at a time (`-c KEY=VALUE`); later ones override earlier"
    yield "ones. An unknown key is an error. `ramify config show --origin` prints them all and what set each value.\n"
    yield "```sh\nramify solve issue.md -c ramify.toml -c budget.max_measurements=200 -c search.name=mcts\n```\n"
    yield from _settings_of(Settings, "")


def _settings_of(model: type[BaseModel], prefix: str) -> Iterator[str]:
    said = _field_docs(model)
    groups: list[tuple[str, type[BaseModel]]] = []
    yield f"## {prefix.rstrip('.') or 'General'}\n"
    yield f"{inspect.getdoc(model) or ''}\n"
    yield "| setting | default | meaning |\n|---|---|---|"
    for name, field in model.model_fields.items():
        kind = field.annotation
        if inspect.isclass(kind) and issubclass(kind, BaseModel) and kind is not Choice:
            groups.append((f"{prefix}{name}.", kind))
            continue
        yield f"| `{prefix}{name}` | `{_shown(field.get_default(call_default_factory=True))}` | {said.get(name, '')} |"
    yield ""
    for below, kind in groups:
        yield from _settings_of(kind, below)


def choices() -> Iterator[str]:
    """Searches, values and the policy of a model with their options, and the formats of `ramify export`."""
    yield f"# Searches, values, policies and formats\n\n{MADE}"
    yield "## Searches\n\n`--search NAME`, with options as `-c search.OPTION=VALUE`.\n"
    for name, search in SEARCHES.items():
        yield from _options(name, search)
    yield "## Values\n\n`--value NAME`, with options as `-c value.OPTION=VALUE`; `value.model` names the model.\n"
    for name, value in VALUES.items():
        yield from _options(f"value {name}", value)
    yield "## Policies\n\n`--model MODEL`, with options as `-c policy.OPTION=VALUE`.\n"
    yield from _options("a model as policy", ChatPolicy)
    yield "## Formats of `ramify export`\n\n| format | rows |\n|---|---|"
    for name, form in (FORMATS | DOCUMENTS).items():
        yield f"| `{name}` | {form.text} |"


def _options(name: str, kind: type) -> Iterator[str]:
    """What a dataclass can be told, but for what it is given: the fields without a default."""
    yield f"### {name}\n\n{inspect.getdoc(kind)}\n"
    said, options = _field_docs(kind), [field for field in fields(kind) if field.init and field.default is not MISSING]
    if options:
        yield "| option | default | meaning |\n|---|---|---|"
    for field in options:
        yield f"| `{field.name}` | `{_shown(field.default)}` | {said.get(field.name, '')} |"
    yield ""


def exit_codes() -> Iterator[str]:
    """How a command can end, why a search stops, and the errors behind the codes."""
    yield f"# Exit codes, and why a search stops\n\n{MADE}"
    yield "## Exit codes\n\n| code | meaning |\n|---|---|"
    for codes, meaning in re.findall(r"^  (\d[\d, ]*?)  +(.*)", EXIT_CODES, re.MULTILINE):
        yield f"| {codes} | {meaning} |"
    yield "\n## Why a search stopped\n\n`stop` in `--json`, words in the summary. After `failed`, `error` says why.\n"
    yield "| `stop` | meaning |\n|---|---|"
    for stop in Stop:
        name = stop.name.lower()
        yield f"| `{name}` | {stop.value.removeprefix(f'{name}: ')} |"
    yield f"\n## Errors\n\n```text\n{inspect.getdoc(errors)}\n```"


def events() -> Iterator[str]:
    """What a journal holds, and what `iter_solve` gives before its result."""
    yield f"# Events\n\n{MADE}"
    yield "A line of `journal.jsonl` is an event; `agent.iter_solve` gives the same as objects, then the `Result`."
    yield "Journals of earlier versions can be read: a new field has a default, and no field changes its meaning.\n"
    for kind in get_args(Event):
        yield from _fields_of(kind)


def library() -> Iterator[str]:
    """The functions of the library, and the fields of what they take and give."""
    yield f"# The library\n\n{MADE}"
    yield "How to use it: [As a library](../tutorials/library.md). Import these names, but `Usage`, from `ramify`.\n"
    for name in agent.__all__:
        if inspect.isfunction(function := getattr(agent, name)):
            (written,) = ast.parse(inspect.getsource(function)).body
            assert isinstance(written, ast.FunctionDef)
            assert written.returns
            takes, gives = ast.unparse(written.args), ast.unparse(written.returns)
            yield f"## {name}\n\n```text\n{name}({takes}) -> {gives}\n\n{inspect.getdoc(function)}\n```\n"
    for kind in (agent.Task, Workspace, agent.Result, Usage, agent.Order):
        yield from _fields_of(kind)


def _fields_of(kind: type) -> Iterator[str]:
    """A dataclass with its fields."""
    said = _field_docs(kind)
    yield f"## {kind.__name__}\n\n{inspect.getdoc(kind)}\n\n| field | type | meaning |\n|---|---|---|"
    for field in fields(kind):
        yield f"| `{field.name}` | `{_cell(str(field.type))}` | {said.get(field.name, '')} |"
    yield ""


def _shown(value: Any) -> str:
    if isinstance(value, Choice):
        return value.name
    if isinstance(value, BaseModel):
        return str(value.model_dump(mode="json"))
    return _cell(str(value))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _field_docs(kind: type) -> Mapping[str, str]:
    """What the string below each field of a class says."""
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    below = zip(body.body, body.body[1:], strict=False) if isinstance(body, ast.ClassDef) else ()
    said: dict[str, str] = {}
    for field, text in below:
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(words))):
                said[name] = _cell(words)
    return said


def _stale(made: Mapping[Path, str]) -> list[Path]:
    """Pages that differ from what the code makes, and pages in the folder that nothing makes."""
    left_over = set((DOCS / "reference").glob("*.md")) - made.keys()
    return sorted(
        {path for path, text in made.items() if not path.is_file() or path.read_text(encoding="utf-8") != text}
        | left_over
    )


def main() -> int:
    """Write the pages; with --check, compare."""
    made = pages()
    if "--check" not in sys.argv:
        (DOCS / "reference").mkdir(exist_ok=True)
        for path, text in made.items():
            path.write_text(text, encoding="utf-8")
    stale = [str(path.relative_to(DOCS.parent)) for path in _stale(made)]
    sys.stdout.write("".join(f"{path} is out of date: run `make reference`\n" for path in stale))
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
