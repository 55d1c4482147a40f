"""Tool calls read back into actions, as models make them: under names that they know from elsewhere, with numbers and
lists in quotes.

What a call means is never guessed: it is what it says in another spelling, or it is a `BadCall`.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from agent.actions.tools import REPLACEMENT, TOOLS, BadCall, Parameter
from agent.actions.types import Action, Invalid, Replacement
from agent.untrusted import visible

__all__ = ["invalid", "parse"]

SHOWN = 80
"""Characters of a model's text that are repeated in a complaint."""
KEPT = 2_000
"""Characters that are kept of the arguments of a call that cannot be read."""
_NAMES = {each: name for name, tool in TOOLS.items() for each in (name, *tool.also)}
_EDITORS = frozenset({"str_replace_editor", "str_replace_based_edit_tool", "file_editor", "editor", "text_editor"})
"""Tools of which a parameter `command` says what to do."""
_UNHEEDED = frozenset(
    {
        *("description", "explanation", "instructions", "reasoning", "thought", "thoughts", "security_risk"),
        *("is_input", "is_background", "restart", "task_completed"),
        *("include", "glob", "type", "output_mode", "head_limit", "max_results", "max_characters", "-n"),
    }
)
"""Parameters of other programs' tools that may be left out: what is done without them includes what was asked for."""
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
        BadCall: an unknown tool, arguments that are not JSON, missing, unknown or of another type or range.
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
    return TOOLS[tool].make(**_given(tool, values, TOOLS[tool].parameters))


def invalid(name: str, arguments: str, problem: str) -> Invalid:
    """A bad call as an action, with its texts fit to be stored and shown."""
    return Invalid(visible(name[:SHOWN]), visible(arguments[:KEPT]), problem)


def _object(name: str, arguments: str) -> dict[str, Any]:
    try:
        values = json.loads(arguments or "{}")
    except (ValueError, RecursionError) as error:  # also a number with more digits than Python reads
        raise BadCall(f"the arguments of {_plain(name)} are not JSON ({error}): write one JSON object") from error
    if not isinstance(values, dict):
        raise BadCall(f"the arguments of {_plain(name)} are {type(values).__name__}, not an object")
    return values


def _given(tool: str, values: Mapping[str, Any], parameters: Mapping[str, Parameter]) -> dict[str, Any]:
    """The values by the parameters' own names, each of its type."""
    names = {each: name for name, parameter in parameters.items() for each in parameter.also}
    names |= {name: name for name in parameters}
    found: dict[str, Any] = {}
    for key, value in values.items():
        if key not in names:
            if key not in _UNHEEDED and value not in (None, False, ""):
                offered = ", ".join(name for name, parameter in parameters.items() if parameter.offered)
                raise BadCall(f"{tool} has no parameter {key[:SHOWN]!r}; it has {offered}")
        elif not _is_null(value, parameters[names[key]]):
            name = names[key]
            read = _read(tool, name, value, parameters[name])
            if found.setdefault(name, read) != read:
                raise BadCall(f"{tool} was given {name!r} twice, once as {key!r}")
    if missing := next((name for name, each in parameters.items() if each.required and name not in found), None):
        raise BadCall(f"{tool} needs the parameter {missing!r}. {parameters[missing].text}".strip(" ."))
    return found


def _read(tool: str, name: str, value: object, parameter: Parameter) -> Any:
    """A value as the parameter's type."""
    read: Any = _edits(tool, value) if parameter.type == "edits" else _fitted(parameter.type, value)
    if read is None:
        raise BadCall(f"{name!r} of {tool} has to be {_MEANING[parameter.type]}, not {_shown(value)}")
    for text in _texts(read):
        if "\0" in text and not parameter.binary:
            raise BadCall(f"{name!r} of {tool} holds a NUL character")
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise BadCall(f"{name!r} of {tool} holds half of a surrogate pair: write the character itself")
    if parameter.least is not None and not read >= parameter.least:
        raise BadCall(f"{name!r} of {tool} has to be at least {parameter.least}, not {_shown(value)}")
    return read if parameter.most is None else min(read, parameter.most)


def _fitted(kind: str, value: object) -> object:
    """The value as this type; None: it is not one."""
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
        lines = [_fitted("integer", each) for each in value] if isinstance(value, list) else []
        return tuple([*lines, -1][:2]) if len(lines) in (1, 2) and all(_is_line(each) for each in lines) else None
    if isinstance(value, bool) or kind == "boolean":
        return value if isinstance(value, bool) and kind == "boolean" else None
    if isinstance(value, float) and value.is_integer() and kind == "integer":
        return int(value)
    return value if isinstance(value, int) or (isinstance(value, float) and kind == "number") else None


def _edits(tool: str, value: object) -> tuple[Replacement, ...] | None:
    value = _unquoted(value)
    each = [value] if isinstance(value, dict) else value
    if not isinstance(each, list) or not all(isinstance(one, dict) for one in each):
        return None
    given = (_given(f"each of the edits of {tool}", one, REPLACEMENT) for one in each)
    return tuple(Replacement(one["old_str"], one["new_str"], one.get("replace_all", False)) for one in given)


def _is_null(value: object, parameter: Parameter) -> bool:
    """Whether it says that nothing is given."""
    return value is None or (parameter.type not in ("string", "command") and value in ("null", "None"))


def _is_line(value: object) -> bool:
    return isinstance(value, int) and value >= -1


def _unquoted(value: object) -> object:
    """What a text says as JSON, where anything else than a text is wanted; the text itself if it says nothing."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads({"True": "true", "False": "false"}.get(value.strip(), value))
    except (ValueError, RecursionError):
        return value


def _texts(read: object) -> Iterator[str]:
    if isinstance(read, str):
        yield read
    elif isinstance(read, tuple):
        yield from (each for each in read if isinstance(each, str))


def _shown(value: object) -> str:
    try:
        return json.dumps(value)[:SHOWN]
    except RecursionError:
        return "a value of so many levels"


def _plain(name: str) -> str:
    """A tool's name as it may stand in a sentence."""
    return name if name.isidentifier() and len(name) < SHOWN else repr(name[:SHOWN])
