"""The tools that a model sees: their JSON schemas, and how their parameters become actions.

The names are those that models know from other programs. The schemas are short, as every request carries them, and not
marked `strict`: with that mark some providers no longer allow several calls in one answer. Instead,
`agent.actions.calls` checks each call and says how to correct a bad one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from inspect import signature
from typing import Any, Literal

from agent.actions.types import Action, Debug, Edit, Invalid, Replacement, RunTests, Search, Shell, Submit, View, Write


class BadCall(Exception):
    """A tool call that cannot be understood. The message tells the model how to correct it."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a tool."""

    type: Literal["string", "command", "integer", "number", "boolean", "strings", "range", "edits"]
    description: str = ""
    aliases: tuple[str, ...] = ()
    """Other names that models use for it."""
    required: bool = False
    offered: bool = True
    """False: accepted, but not in the schema."""
    least: float | None = None
    most: float | None = None
    """Larger values are reduced to this one."""
    binary: bool = False
    """Whether NUL characters are allowed."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that a model may call."""

    description: str
    parameters: Mapping[str, Parameter]
    action: type[Action]
    make: Callable[..., Action]
    """Makes the action from parameters by name; has a default for each optional parameter."""
    arguments: Callable[[Any], Mapping[str, Any]]
    """The inverse of `make`: the parameters of an action."""
    aliases: tuple[str, ...] = ()
    """Other names that models use for it, in lower case."""
    offered: bool = True
    """False: accepted, but not in the schema."""


def _view(path: str, view_range: tuple[int, int] = (1, -1), start: int = 1, end: int = 0, limit: int = 0) -> View:
    if view_range != (1, -1):
        start, end = view_range
    start, end = max(1, start), max(0, end)
    if 0 < end < start:
        raise BadCall(f"the range of lines ends before it begins: {start} to {end}")
    return View(path, start, start + limit - 1 if limit else end)


def _edit(
    path: str,
    old_str: str | None = None,
    new_str: str | None = None,
    replace_all: bool = False,
    edits: Sequence[Replacement] = (),
    insert_line: int | None = None,
    line: int | None = None,
) -> Edit:
    single = old_str is not None or new_str is not None
    if not single and not edits:
        raise BadCall("edit needs old_str and new_str, or edits")
    if insert_line is not None and old_str:
        raise BadCall("insert_line inserts new_str as new lines: give it without old_str")
    first, *more = [*([Replacement(old_str or "", new_str or "", replace_all)] if single else []), *edits]
    line = line if insert_line is None else insert_line + 1
    return Edit(path, first.old, first.new, line, first.replace_all, tuple(more))


def _edit_arguments(edit: Edit) -> Mapping[str, Any]:
    if edit.more and edit.line is None:
        return {"path": edit.path, "edits": [*map(_replacement, edit.replacements)]}
    inserts = not edit.old and edit.line is not None
    place = {"insert_line": (edit.line or 1) - 1} if inserts else {"line": edit.line}
    old = {} if inserts else {"old_str": edit.old}
    more = [*map(_replacement, edit.more)]
    return {"path": edit.path, **old, "new_str": edit.new, "replace_all": edit.replace_all, **place, "edits": more}


def _replacement(edit: Replacement) -> dict[str, Any]:
    return {"old_str": edit.old, "new_str": edit.new} | ({"replace_all": True} if edit.replace_all else {})


_PATH = Parameter(
    "string",
    required=True,
    aliases=("file_path", "filename", "file_name", "filepath", "file", "target_file", "dir_path", "directory", "paths"),
)
_OLD = Parameter("string", aliases=("old", "old_string", "old_text"), binary=True)
_NEW = Parameter("string", aliases=("new", "new_string", "new_text", "insert_text"), binary=True)
_ALL = Parameter("boolean", aliases=("allow_multiple",))
REPLACEMENT = {"old_str": replace(_OLD, required=True), "new_str": replace(_NEW, required=True), "replace_all": _ALL}
"""The parameters of one of the `edits`."""
TOOLS: Mapping[str, Tool] = {
    "bash": Tool(
        "Run a bash command in the repository's root, in a fresh shell.",
        {
            "command": Parameter("command", required=True, aliases=("cmd", "script", "bash_command")),
            "timeout": Parameter(
                "number",
                "Seconds; a longer command is killed and its changes are undone. Default 60, at most 900.",
                aliases=("timeout_s", "timeout_seconds", "timeout_sec"),
                least=1,
                most=900,
            ),
        },
        Shell,
        lambda command, timeout=60.0: Shell(command, timeout),
        lambda it: {"command": it.command, "timeout": it.timeout_s},
        aliases=(
            "shell",
            "execute_bash",
            "bash_tool",
            "terminal",
            "run_command",
            "run_terminal_cmd",
            "run_shell_command",
            "execute_command",
        ),
    ),
    "view": Tool(
        "Show a file with line numbers, or list a directory.",
        {
            "path": _PATH,
            "view_range": Parameter("range", "[first, last]; -1: the last line."),
            "start": Parameter("integer", offered=False, least=0, aliases=("start_line", "line_start", "offset")),
            "end": Parameter("integer", offered=False, least=-1, aliases=("end_line", "line_end")),
            "limit": Parameter("integer", offered=False, least=0),
        },
        View,
        _view,
        lambda it: {"path": it.path, "view_range": (it.start, it.end or -1)},
        aliases=("read", "read_file", "view_file", "open", "open_file", "cat", "ls", "list_dir", "list_files"),
    ),
    "search": Tool(
        "Show the lines that match a POSIX extended regular expression (grep -E) in a file or below a directory.",
        {
            "pattern": Parameter("string", required=True, aliases=("query", "regex", "search_term")),
            "path": Parameter("string", "Default: the whole repository.", aliases=_PATH.aliases),
        },
        Search,
        Search,
        lambda it: {"pattern": it.pattern, "path": it.path},
        aliases=("grep", "grep_search", "search_files", "search_file_content", "search_dir", "rg"),
        offered=False,
    ),
    "edit": Tool(
        "Replace `old_str`, which has to occur exactly once in the file, by `new_str`.",
        {
            "path": _PATH,
            "old_str": _OLD,
            "new_str": _NEW,
            "replace_all": _ALL,
            "edits": Parameter(
                "edits", "Several replacements instead, in order: all are made or none.", aliases=("replacements",)
            ),
            "insert_line": Parameter("integer", "Without `old_str`: insert `new_str` after this line.", least=0),
            "line": Parameter("integer", offered=False, least=1),
        },
        Edit,
        _edit,
        _edit_arguments,
        aliases=("str_replace", "insert", "multiedit", "multi_edit", "edit_file", "replace", "string_replace"),
    ),
    "create": Tool(
        "Create a file, or replace all of it.",
        {
            "path": _PATH,
            "file_text": Parameter("string", required=True, aliases=("content", "contents", "text"), binary=True),
        },
        Write,
        lambda path, file_text: Write(path, file_text),
        lambda it: {"path": it.path, "file_text": it.content},
        aliases=("write", "write_file", "write_to_file", "create_file"),
    ),
    "run_tests": Tool(
        "Run the test suite, compare it with the unchanged code, and show what of your diff you have not seen.",
        {
            "tests": Parameter(
                "strings",
                "Ids of tests; default: all.",
                aliases=("test", "test_ids", "ids", "path", "paths", "test_path"),
            )
        },
        RunTests,
        RunTests,
        lambda it: {"tests": it.tests},
        aliases=("test", "run_test"),
    ),
    "debug": Tool(
        "Run one failing test in a copy and show the values on the way to its failure.",
        {
            "test": Parameter("string", "Its id.", required=True, aliases=("test_id", "tests")),
            "probes": Parameter(
                "strings",
                "Each `PATH:LINE: EXPRESSION`, `PATH:LINE` (all local names) or a function's name (its calls). "
                "Default: the last call of each function.",
                aliases=("probe",),
            ),
        },
        Debug,
        Debug,
        lambda it: {"test": it.test, "probes": it.probes},
    ),
    "submit": Tool(
        "End the work. Parts of your diff you have not seen, and tests you broke unawares, are shown first.",
        {
            "message": Parameter(
                "string", "What was wrong and what was changed.", aliases=("summary", "result", "answer")
            ),
            "contradicted_tests": Parameter(
                "strings",
                "Existing tests that assert what the issue calls wrong, each as `TEST_ID: why`.",
                aliases=("contradicted",),
            ),
        },
        Submit,
        lambda message="", contradicted_tests=(): Submit(message, contradicted_tests),
        lambda it: {"message": it.message, "contradicted_tests": it.contradicted},
        aliases=("finish", "complete", "attempt_completion"),
    ),
}
_OF_ACTION = {tool.action: name for name, tool in TOOLS.items()}
_PLAIN: Mapping[str, dict[str, Any]] = {
    "command": {"type": "string"},
    "strings": {"type": "array", "items": {"type": "string"}},
    "range": {"type": "array", "items": {"type": "integer"}},
}


@cache
def schema(*, debug: bool = True) -> tuple[dict[str, Any], ...]:
    """The tools in the form of the chat completions API, always the same bytes. `debug`: whether to offer that tool."""
    return tuple(
        {
            "type": "function",
            "function": {"name": name, "description": tool.description, "parameters": _object(tool.parameters)},
        }
        for name, tool in TOOLS.items()
        if tool.offered and (debug or name != "debug")
    )


def as_call(action: Action) -> tuple[str, str]:
    """The name and the JSON arguments of the call that asks for this action: the inverse of `agent.actions.parse`. For
    an invalid call, what was kept of it."""
    if isinstance(action, Invalid):
        return action.name, action.arguments if is_object(action.arguments) else "{}"
    name = _OF_ACTION[type(action)]
    defaults = {parameter.name: parameter.default for parameter in signature(TOOLS[name].make).parameters.values()}
    arguments = TOOLS[name].arguments(action)
    unusual = {key: value for key, value in arguments.items() if value not in (None, [], defaults[key])}
    return name, json.dumps(unusual)


def _object(parameters: Mapping[str, Parameter]) -> dict[str, Any]:
    required = [name for name, parameter in parameters.items() if parameter.required]
    return {
        "type": "object",
        "properties": {name: _property(parameter) for name, parameter in parameters.items() if parameter.offered},
        **({"required": required} if required else {}),
    }


def _property(parameter: Parameter) -> dict[str, Any]:
    if parameter.type == "edits":
        kind: dict[str, Any] = {"type": "array", "items": _object(REPLACEMENT)}
    else:
        kind = _PLAIN.get(parameter.type, {"type": parameter.type})
    return kind | ({"description": parameter.description} if parameter.description else {})


def is_object(arguments: str) -> bool:
    """Whether a call's arguments are a JSON object."""
    try:
        return isinstance(json.loads(arguments), dict)
    except (ValueError, RecursionError):
        return False
