"""Writes the pages of the reference from the code, when the site is built: they cannot be out of date."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from importlib import import_module
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from pydantic import BaseModel
from typer.main import get_command

from agent.cli.app import ELSEWHERE, app
from agent.evaluate.value.registry import VALUES
from agent.learning.export.documents import DOCUMENTS
from agent.learning.export.registry import FORMATS
from agent.policy.chat.policy import ChatPolicy
from agent.search.registry import SEARCHES
from agent.settings import Choice, Settings


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Adds the pages."""
    pages = {"commands": commands(), "settings": settings(Settings), "choices": choices()}
    for name, lines in pages.items():
        files.append(File.generated(config, f"reference/{name}.md", content="\n".join(lines) + "\n"))
    return files


def commands() -> Iterator[str]:
    """`--help` of every command."""
    yield "# Commands\n"
    for path, command in _walk("ramify", get_command(app)):
        context = command.make_context(path, [], resilient_parsing=True, max_content_width=100)
        yield f"## {path}\n\n```text\n{command.get_help(context).rstrip()}\n```\n"


def _walk(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    """A command and all below it, those of other packages too."""
    yield path, command
    for name, below in getattr(command, "commands", {}).items():
        module = ELSEWHERE.get(name) if path == "ramify" else None
        yield from _walk(f"{path} {name}", get_command(import_module(module).app) if module else below)


def settings(model: type[BaseModel]) -> Iterator[str]:
    """Every setting with its default and what its docstring says."""
    yield "# Settings\n\nIn a TOML file (`-c FILE`) or one by one (`-c KEY=VALUE`); later ones win. `ramify config show"
    yield "--origin` prints them all with what set each.\n"
    yield from _table(model, "")


def _table(model: type[BaseModel], prefix: str) -> Iterator[str]:
    said = _field_docs(model)
    groups: list[tuple[str, type[BaseModel]]] = []
    yield f"## {prefix.rstrip('.') or 'General'}\n"
    yield f"{inspect.getdoc(model) or ''}\n"
    yield "| setting | default | |\n|---|---|---|"
    for name, field in model.model_fields.items():
        kind = field.annotation
        if inspect.isclass(kind) and issubclass(kind, BaseModel) and kind is not Choice:
            groups.append((f"{prefix}{name}.", kind))
            continue
        yield f"| `{prefix}{name}` | `{_shown(field.get_default(call_default_factory=True))}` | {said.get(name, '')} |"
    yield ""
    for below, kind in groups:
        yield from _table(kind, below)


def choices() -> Iterator[str]:
    """Searches, values and the policy of a model with their options, and the formats of `ramify export`."""
    yield "# Searches, values, policies and formats\n"
    yield "## Searches\n\n`--search NAME`, with options as `-c search.OPTION=VALUE`.\n"
    for name, search in SEARCHES.items():
        yield from _options(name, search)
    yield "## Values\n\n`--value NAME`, with options as `-c value.OPTION=VALUE`; `value.model` names the model.\n"
    for name, value in VALUES.items():
        yield from _options(f"value {name}", value)
    yield "## Policies\n\n`--model MODEL`, with options as `-c policy.OPTION=VALUE`.\n"
    yield from _options("a model as policy", ChatPolicy)
    yield "## Formats of `ramify export`\n\n| format | |\n|---|---|"
    for name, form in (FORMATS | {name: kind.format for name, kind in DOCUMENTS.items()}).items():
        yield f"| `{name}` | {form.text} |"


def _options(name: str, kind: type) -> Iterator[str]:
    """What a dataclass can be told, but for what it is given: the fields without a default."""
    yield f"### {name}\n\n{inspect.getdoc(kind)}\n"
    said, options = _field_docs(kind), [field for field in fields(kind) if field.init and field.default is not MISSING]
    if options:
        yield "| option | default | |\n|---|---|---|"
    for field in options:
        yield f"| `{field.name}` | `{_shown(field.default)}` | {said.get(field.name, '')} |"
    yield ""


def _shown(value: Any) -> str:
    if isinstance(value, Choice):
        return value.name
    if isinstance(value, BaseModel):
        return str(value.model_dump(mode="json"))
    return str(value).replace("|", "\\|")


def _field_docs(kind: type) -> Mapping[str, str]:
    """What the string below each field of a class says."""
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    below = zip(body.body, body.body[1:], strict=False) if isinstance(body, ast.ClassDef) else ()
    said: dict[str, str] = {}
    for field, text in below:
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(words))):
                said[name] = " ".join(words.split()).replace("|", "\\|")
    return said
