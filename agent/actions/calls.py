"""Parses tool calls into actions. Models use names that they know from other programs, and put numbers and lists in
quotes; both are understood.

The meaning of a call is never guessed: a call is another spelling of an action, or a `BadCall`.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from agent.actions.tools import REPLACEMENT, TOOLS, BadCall, Parameter
from agent.actions.types import Action, Invalid, Replacement
from agent.untrusted import visible

SHOWN = 80
"""Characters of a model's text that an error message repeats."""
KEPT = 2_000
"""Characters kept of the arguments of a call that cannot be parsed."""
_NAMES = {alias: name for name, tool in TOOLS.items() for alias in (name, *tool.aliases)}
_EDITORS = frozenset({"str_replace_editor", "str_replace_based_edit_tool", "file_editor", "editor", "text_editor"})
"""Tools of other programs whose parameter `command` names one of Ramify's tools."""
_IGNORED = frozenset(
    {
        *("description", "explanation", "instructions", "reasoning", "thought", "thoughts", "security_risk"),
        *("is_input", "is_background", "restart", "task_completed"),
        *("include", "glob", "type", "output_mode", "head_limit", "max_results", "max_characters", "-n"),
    }
)
"""Parameters of other programs' tools that may be ignored: without them, the call still does what was asked for."""
_MEANING = {
    "string": "a string",
    "command": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "strings": "an array of strings",
    "range": "[first, last], two integers",
    "edits": "an array of objects with old_str and new_str",
}


def parse(name: str, arguments: str) -> Action:
    """The action that a call asks for.

    Raises:
        BadCall: the tool is unknown, the arguments are not JSON, or one is missing, unknown, or of a wrong type or
            range.
    """
    values = _object(name, arguments)
    plain = name.rpartition(".")[2].strip().lower().replace("-", "_")
    if plain in _EDITORS:
        command = values.pop("command", None)
        if not isinstance(command, str) or command not in _NAMES:
            raise BadCall(f"{plain} has no command {_shown(command)}; call one of the tools {', '.join(TOOLS)}")
        plain = command
    if plain not in _NAMES:
        raise BadCall(f"there is no tool {name[:SHOWN]!r}; the tools are {', '.join(TOOLS)}")
    tool = _NAMES[plain]
    return TOOLS[tool].make(**_arguments(tool, values, TOOLS[tool].parameters))


def invalid(name: str, arguments: str, problem: str) -> Invalid:
    """A bad call as an action, its texts cut and escaped so that they can be stored and shown."""
    return Invalid(visible(name[:SHOWN]), visible(arguments[:KEPT]), problem)


def _object(name: str, arguments: str) -> dict[str, Any]:
    try:
        values = json.loads(arguments or "{}")
    except (ValueError, RecursionError) as error:  # also a number with more digits than Python reads
        raise BadCall(f"the arguments of {_plain(name)} are not JSON ({error}): write one JSON object") from error
    if not isinstance(values, dict):
        raise BadCall(f"the arguments of {_plain(name)} are {type(values).__name__}, not an object")
    return values


def _arguments(tool: str, values: Mapping[str, Any], parameters: Mapping[str, Parameter]) -> dict[str, Any]:
    """The values by the parameters' own names, converted to their types."""
    names = {alias: name for name, parameter in parameters.items() for alias in parameter.aliases}
    names |= {name: name for name in parameters}
    arguments: dict[str, Any] = {}
    for key, value in values.items():
        if key not in names:
            if key not in _IGNORED and value not in (None, False, ""):
                offered = ", ".join(name for name, parameter in parameters.items() if parameter.offered)
                raise BadCall(f"{tool} has no parameter {key[:SHOWN]!r}; it has {offered}")
        elif not _is_null(value, parameters[names[key]]):
            name = names[key]
            argument = _argument(tool, name, value, parameters[name])
            if arguments.setdefault(name, argument) != argument:
                raise BadCall(f"{tool} was given {name!r} twice, once as {key!r}")
    required = (name for name, parameter in parameters.items() if parameter.required)
    if missing := next((name for name in required if name not in arguments), None):
        raise BadCall(f"{tool} needs the parameter {missing!r}. {parameters[missing].description}".strip(" ."))
    return arguments


def _argument(tool: str, name: str, value: object, parameter: Parameter) -> Any:
    """A value converted to the parameter's type and checked."""
    argument: Any = _edits(tool, value) if parameter.type == "edits" else _converted(parameter.type, value)
    if argument is None:
        raise BadCall(f"{name!r} of {tool} has to be {_MEANING[parameter.type]}, not {_shown(value)}")
    for text in _texts(argument):
        if "\0" in text and not parameter.binary:
            raise BadCall(f"{name!r} of {tool} holds a NUL character")
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise BadCall(f"{name!r} of {tool} holds half of a surrogate pair: write the character itself")
    if parameter.least is not None and not argument >= parameter.least:
        raise BadCall(f"{name!r} of {tool} has to be at least {parameter.least}, not {_shown(value)}")
    return argument if parameter.most is None else min(argument, parameter.most)


def _converted(kind: str, value: object) -> object:
    """The value as this type; None if it cannot be converted."""
    if kind in ("string", "command"):
        words = [value] if isinstance(value, str) else value
        if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
            return None
        return words[0] if len(words) == 1 else shlex.join(words) if kind == "command" else None
    if kind == "strings":
        plain = _unquoted(value)
        words = plain if isinstance(plain, list) else [value]
        return tuple(words) if all(isinstance(word, str) for word in words) else None
    value = _unquoted(value)
    if kind == "range":
        lines = [_converted("integer", line) for line in value] if isinstance(value, list) else []
        valid = len(lines) in (1, 2) and all(isinstance(line, int) and line >= -1 for line in lines)
        return tuple([*lines, -1][:2]) if valid else None
    if isinstance(value, bool) or kind == "boolean":
        return value if isinstance(value, bool) and kind == "boolean" else None
    if isinstance(value, float) and value.is_integer() and kind == "integer":
        return int(value)
    return value if isinstance(value, int) or (isinstance(value, float) and kind == "number") else None


def _edits(tool: str, value: object) -> tuple[Replacement, ...] | None:
    value = _unquoted(value)
    items = [value] if isinstance(value, dict) else value
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        return None
    edits = (_arguments(f"each of the edits of {tool}", item, REPLACEMENT) for item in items)
    return tuple(Replacement(edit["old_str"], edit["new_str"], edit.get("replace_all", False)) for edit in edits)


def _is_null(value: object, parameter: Parameter) -> bool:
    """Whether the value means that the parameter is left out."""
    return value is None or (parameter.type not in ("string", "command") and value in ("null", "None"))


def _unquoted(value: object) -> object:
    """The JSON value that a text holds, for parameters that are not text; the text itself if it is not JSON."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads({"True": "true", "False": "false"}.get(value.strip(), value))
    except (ValueError, RecursionError):
        return value


def _texts(argument: object) -> Iterator[str]:
    if isinstance(argument, str):
        yield argument
    elif isinstance(argument, tuple):
        yield from (item for item in argument if isinstance(item, str))


def _shown(value: object) -> str:
    try:
        return json.dumps(value)[:SHOWN]
    except RecursionError:
        return "a value of so many levels"


def _plain(name: str) -> str:
    """A tool's name, quoted if it would not read as a word in a sentence."""
    return name if name.isidentifier() and len(name) < SHOWN else repr(name[:SHOWN])
