"""Applies one action to a sandbox and describes the result to the policy."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import assert_never

from agent.actions import shell
from agent.actions.excerpt import OBSERVATION_BYTES, excerpt, printable
from agent.actions.irreversible import Kind, irreversible
from agent.actions.replacing import NoSuchPlace, apply_edit, inverse_edit, numbered, restores
from agent.actions.types import Action, Debug, Edit, Invalid, Observation, RunTests, Search, Shell, Submit, View, Write
from agent.counting import counted
from agent.errors import MeasureError
from agent.parsing import syntax_tree
from agent.untrusted import terminal_text
from sandboxes import Sandbox

LOOK_S = 30.0
"""Time limit for listing and searching, in seconds."""
MATCH_CHARS = 300
FORBIDDEN_CHARS = 200
CONTEXT_LINES = 3
PLACES_SHOWN = 10

_MORE = {
    "shell": "; to see them, run it with its output cut by head, tail or grep",
    "view": "; to see them, give a view_range",
    "search": "; to see them, search a narrower path or expression",
    "run_tests": "; to see them, run fewer tests",
    "debug": "; to see them, give fewer probes",
}
"""How to see the output that was left out."""


def apply(
    action: Action,
    box: Sandbox,
    run_tests: Callable[[tuple[str, ...]], Observation],
    allowed: Collection[Kind] = (),
    keep: Callable[[bytes], str] | None = None,
    debug: Callable[[Debug], str] | None = None,
    submit: Callable[[Submit], Observation] | None = None,
) -> Observation:
    """Carry out the action in the sandbox.

    `run_tests` runs the given tests, or all, on the present state. `allowed`: the kinds of irreversible commands that
    may run. `keep` stores a text that is too long to show and returns its name. `debug` runs one test in the present
    state and reports its values. `submit` accepts the work, or says what to look at first (None: always accept).

    A failure of the action itself is in the observation (`ok` is False), and a refused action has changed nothing.

    Raises:
        sandboxes.SandboxError: the sandbox itself failed.
    """
    match action:
        case Shell():
            observation = _refused_as_irreversible(action, allowed) or _shell(action, box)
        case View():
            observation = _view(action, box)
        case Search():
            observation = _search(action, box)
        case Edit():
            observation = _edit(action, box)
        case Write():
            observation = _write(action, box)
        case RunTests():
            observation = _run_tests(action, run_tests)
        case Debug():
            observation = _debug(action, debug)
        case Submit():
            observation = submit(action) if submit else Observation("Submitted.")
        case Invalid():
            observation = _refused(action.problem)
        case _:
            assert_never(action)
    return _shortened(observation, _MORE.get(action.kind, ""), keep)


def _shortened(observation: Observation, hint: str, keep: Callable[[bytes], str] | None) -> Observation:
    """The observation cut to a length that can be shown, and the blob that holds all of it. A text that is only a
    little too long is shown whole: asking for the rest would cost more."""
    data = observation.text.encode("utf-8", "replace")
    if len(data) <= OBSERVATION_BYTES * 5 // 4:
        return observation
    shown, elided = excerpt(observation.text, hint=hint)
    if not elided:
        return observation
    blob = keep(data) if keep else ""
    return replace(observation, text=shown, elided_bytes=observation.elided_bytes + elided, blob=blob)


def _refused_as_irreversible(action: Shell, allowed: Collection[Kind]) -> Observation | None:
    """The refusal of a command that cannot be taken back; None if the command may run."""
    match = irreversible(action.command)
    if match is None or match.kind in allowed:
        return None
    refusal = _refused(
        f"`{match.command[:FORBIDDEN_CHARS]}` changes something outside of this repository that cannot be taken back "
        f"({match.kind}), and the command was not run. Your work ends with a tested change of the files here; "
        "what is done with it is for people to decide. Leave this step out, or find out in another way what it would do"
    )
    return replace(refusal, refused=True)


def _shell(action: Shell, box: Sandbox) -> Observation:
    if len(action.command.encode("utf-8", "surrogateescape")) > shell.COMMAND_BYTES:
        return _refused(f"the command is longer than {shell.COMMAND_BYTES} bytes: use create for the content of files")
    return shell.run(action, box)


def _view(action: View, box: Sandbox) -> Observation:
    try:
        data = box.read(action.path)
    except IsADirectoryError:
        return _list(action, box)
    except OSError as error:
        return _refused(_reason(error, action.path))
    if b"\0" in data[:8192]:
        return Observation(f"{action.path} is a binary file of {len(data)} bytes.")
    lines = printable(data).split("\n")
    if not lines[-1]:
        lines.pop()
    if action.start > max(1, len(lines)):
        return _refused(f"{action.path} has {len(lines)} lines only")
    start, end = max(1, action.start), action.end or len(lines)
    return Observation(f"{action.path} ({len(lines)} lines)\n{numbered(lines[start - 1 : end], start)}")


def _list(action: View, box: Sandbox) -> Observation:
    result = box.exec(["ls", "-1Ap", "--", action.path], timeout_s=LOOK_S)
    if result.timed_out:
        return shell.timed_out(result, LOOK_S)
    shown, unread = shell.output(result)
    return Observation(f"{action.path} is a directory:\n{shown}", ok=result.exit_code == 0, elided_bytes=unread)


def _search(action: Search, box: Sandbox) -> Observation:
    argv = ["grep", "-rnIHE", "--exclude-dir=.git", "-e", action.pattern, "--", action.path]
    result = box.exec(argv, timeout_s=LOOK_S, env={"LC_ALL": "C.UTF-8"})
    if result.timed_out:
        return shell.timed_out(result, LOOK_S)
    if result.exit_code == 127:
        return _refused("this machine has no grep: search with bash instead")
    if result.exit_code > 1 and not result.stdout:
        return _refused(printable(result.stderr).strip() or f"grep ended with exit code {result.exit_code}")
    if not result.stdout:
        return Observation(f"No line below {action.path} matches.")
    matches = printable(result.stdout).removesuffix("\n").split("\n")
    matches.sort(key=lambda line: line.partition(":")[0])
    unread = result.stdout_bytes - len(result.stdout)
    shown = "\n".join(line[:MATCH_CHARS] for line in matches)
    more = " or more" if unread else ""
    count = "1 line matches" if len(matches) == 1 and not more else f"{len(matches)}{more} lines match"
    return Observation(f"{count}:\n{shown}", elided_bytes=unread)


def _edit(action: Edit, box: Sandbox) -> Observation:
    try:
        before = _text(action.path, box)
        after, places = apply_edit(before, action)
        box.write(action.path, after.encode("utf-8", "surrogateescape"))
    except OSError as error:
        return _refused(_reason(error, action.path))
    except NoSuchPlace as error:
        return _refused(f"{action.path} is unchanged: {error}")
    summary = f"{'Created' if before is None else 'Edited'} {action.path}. It now reads:\n{_places(after, places)}"
    undo = (
        None if before is None or restores(action.inverse, before, after) else inverse_edit(action.path, before, after)
    )
    return Observation(summary + _syntax_warning(action.path, before, after), undo=undo)


def _places(text: str, places: list[tuple[int, int]]) -> str:
    """The new lines of a text, with a few lines around them."""
    lines = text.removesuffix("\n").split("\n")
    shown = list[tuple[int, int]]()
    for first, last in places[:PLACES_SHOWN]:
        first, last = max(1, first - CONTEXT_LINES), last + CONTEXT_LINES
        if shown and first <= shown[-1][1] + 1:
            first, last = shown[-1][0], max(last, shown.pop()[1])
        shown.append((first, last))
    parts = [printable(numbered(lines[first - 1 : last], first)) for first, last in shown]
    if (more := len(places) - PLACES_SHOWN) > 0:
        parts.append(f"and {more} more places")
    return "\n   ...\n".join(parts)


def _write(action: Write, box: Sandbox) -> Observation:
    try:
        before = _text(action.path, box)
        box.write(action.path, action.content.encode("utf-8", "surrogateescape"))
    except OSError as error:
        return _refused(_reason(error, action.path))
    summary, undo = f"Created {action.path}: {_lines(action.content)}.", None
    if before is not None:
        undo = inverse_edit(action.path, before, action.content)
        summary = f"Replaced all of {action.path}: it had {_lines(before)} and has {_lines(action.content)} now."
    return Observation(summary + _syntax_warning(action.path, before, action.content), undo=undo)


def _syntax_warning(path: str, before: str | None, after: str) -> str:
    """A line about a Python file that could be parsed before, or did not exist, and cannot be parsed now; empty
    otherwise. The parser is that of the Python that runs this program."""
    problem = _syntax_error(after) if path.endswith(".py") else ""
    if not problem or (before is not None and _syntax_error(before)):
        return ""
    return "\n" + printable(f"{path} does not parse now: {problem}")


def _syntax_error(text: str) -> str:
    try:
        with warnings.catch_warnings(action="ignore"):
            syntax_tree(text.encode("utf-8", "surrogateescape"))
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}" if error.lineno else str(error.msg)
    except (ValueError, MemoryError, RecursionError) as error:  # NUL characters, or too deeply nested
        return str(error) or "it is nested too deeply"
    return ""


def _text(path: str, box: Sandbox) -> str | None:
    """A file's content with every byte kept; None when there is no such file."""
    try:
        return box.read(path).decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return None


def _lines(text: str) -> str:
    return counted(len(text.splitlines()), "line")


def _run_tests(action: RunTests, run_tests: Callable[[tuple[str, ...]], Observation]) -> Observation:
    try:
        return run_tests(action.tests)
    except MeasureError as error:
        return _refused(f"the tests could not be run: {error}")


def _debug(action: Debug, debug: Callable[[Debug], str] | None) -> Observation:
    if debug is None:
        return _refused("tests cannot be debugged here")
    try:
        return Observation(printable(terminal_text(debug(action))))
    except MeasureError as error:
        return _refused(str(error))


def _refused(why: str) -> Observation:
    return Observation(f"Not done: {printable(why)}", ok=False)


def _reason(error: OSError, path: str) -> str:
    """The problem with a path, in words that do not depend on where the sandbox keeps its files."""
    match error:
        case FileNotFoundError():
            return f"{path} does not exist"
        case IsADirectoryError():
            return f"{path} is a directory"
        case NotADirectoryError():
            return f"a part of {path} is a file, not a directory"
        case PermissionError():
            return f"{path}: permission denied"
        case _:
            return f"{path}: {error.strerror or error}"
