"""Applying one action to a sandbox, and what the policy is told of it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import assert_never

from agent.actions import shell
from agent.actions.excerpt import OBSERVATION_BYTES, excerpt, printable
from agent.actions.irreversible import Kind, irreversible
from agent.actions.replacing import NoSuchPlace, carried_out, numbered
from agent.actions.syntax import broken
from agent.actions.types import Action, Debug, Edit, Invalid, Observation, RunTests, Search, Shell, Submit, View, Write
from agent.errors import MeasureError
from agent.untrusted import terminal_text
from sandboxes import Sandbox

__all__ = ["apply"]

LOOK_S = 30.0
"""Seconds that listing and searching may take."""
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
"""How to see what was left out."""


def apply(
    action: Action,
    box: Sandbox,
    run_tests: Callable[[tuple[str, ...]], Observation],
    allowed: Collection[Kind] = (),
    keep: Callable[[bytes], str] | None = None,
    debug: Callable[[Debug], str] | None = None,
    submit: Callable[[Submit], Observation] | None = None,
) -> Observation:
    """Do what the action says in the sandbox. `run_tests` says what these tests, or all, say of the present state;
    `allowed` are the kinds of irreversible commands that may be run; `keep` stores a text that is too long to be shown
    and gives it a name; `debug` says what a run of a test shows of its values in the present state; `submit` accepts
    the work or says what is to be looked at before (None: it is accepted).

    Whatever goes wrong by the action's own doing is in the observation (`ok` is False), and a refused action has
    changed nothing.

    Raises:
        sandboxes.SandboxError: the sandbox itself failed.
    """
    return _cut(_done(action, box, run_tests, allowed, debug, submit), _MORE.get(action.kind, ""), keep)


def _cut(seen: Observation, how_to_see_more: str, keep: Callable[[bytes], str] | None) -> Observation:
    """The observation at a length that can be shown, and where all of it is. What is a little too long is shown whole:
    to ask for the rest would cost more."""
    if len(seen.text.encode("utf-8", "replace")) <= OBSERVATION_BYTES * 5 // 4:
        return seen
    shown, elided = excerpt(seen.text, hint=how_to_see_more)
    if not elided:
        return seen
    blob = keep(seen.text.encode("utf-8", "replace")) if keep else ""
    return replace(seen, text=shown, elided_bytes=seen.elided_bytes + elided, blob=blob)


def _done(
    action: Action,
    box: Sandbox,
    run_tests: Callable[[tuple[str, ...]], Observation],
    allowed: Collection[Kind],
    debug: Callable[[Debug], str] | None,
    submit: Callable[[Submit], Observation] | None,
) -> Observation:
    """What came of it, whole."""
    match action:
        case Shell():
            return _forbidden(action, allowed) or _shell(action, box)
        case View():
            return _view(action, box)
        case Search():
            return _search(action, box)
        case Edit():
            return _edit(action, box)
        case Write():
            return _write(action, box)
        case RunTests():
            return _run_tests(action, run_tests)
        case Debug():
            return _debug(action, debug)
        case Submit():
            return submit(action) if submit else Observation("Submitted.")
        case Invalid():
            return _refused(action.problem)
        case _:
            assert_never(action)


def _forbidden(action: Shell, allowed: Collection[Kind]) -> Observation | None:
    """What is said instead of running a command that cannot be taken back."""
    found = irreversible(action.command)
    if found is None or found.kind in allowed:
        return None
    seen = _refused(
        f"`{found.command[:FORBIDDEN_CHARS]}` changes something outside of this repository that cannot be taken back "
        f"({found.kind}), and nothing of the command was run. Your work ends with a tested change of the files here; "
        "what is done with it is for people to decide. Leave this step out, or find out in another way what it would do"
    )
    return replace(seen, refused=True)


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
    count = f"{len(matches)}{' or more' if unread else ''} lines match"
    return Observation(f"{count}:\n{shown}", elided_bytes=unread)


def _edit(action: Edit, box: Sandbox) -> Observation:
    try:
        before = _text(action.path, box)
        after, places = carried_out(before, action)
        box.write(action.path, after.encode("utf-8", "surrogateescape"))
    except OSError as error:
        return _refused(_reason(error, action.path))
    except NoSuchPlace as error:
        return _refused(f"{action.path} is unchanged: {error}")
    done = f"{'Created' if before is None else 'Edited'} {action.path}. It reads now:\n{_places(after, places)}"
    return Observation(_with_problem(done, broken(action.path, before, after)))


def _places(text: str, places: list[tuple[int, int]]) -> str:
    """The lines of a text that are new, with some around them."""
    lines = text.removesuffix("\n").split("\n")
    shown = list[tuple[int, int]]()
    for first, last in places[:PLACES_SHOWN]:
        first, last = max(1, first - CONTEXT_LINES), last + CONTEXT_LINES
        if shown and first <= shown[-1][1] + 1:
            first, last = shown[-1][0], max(last, shown.pop()[1])
        shown.append((first, last))
    parts = [_shown(numbered(lines[first - 1 : last], first)) for first, last in shown]
    if (more := len(places) - PLACES_SHOWN) > 0:
        parts.append(f"and so in {more} more places")
    return "\n   ...\n".join(parts)


def _write(action: Write, box: Sandbox) -> Observation:
    try:
        before = _text(action.path, box)
        box.write(action.path, action.content.encode("utf-8", "surrogateescape"))
    except OSError as error:
        return _refused(_reason(error, action.path))
    done = f"Created {action.path}: {_lines(action.content)}."
    if before is not None:
        done = f"Replaced all of {action.path}: it had {_lines(before)} and has {_lines(action.content)} now."
    return Observation(_with_problem(done, broken(action.path, before, action.content)))


def _with_problem(done: str, problem: str) -> str:
    return f"{done}\n{_shown(problem)}" if problem else done


def _text(path: str, box: Sandbox) -> str | None:
    """A file's content, every byte of it kept; None when there is no such file."""
    try:
        return box.read(path).decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return None


def _shown(text: str) -> str:
    """A text that may hold bytes that are not UTF-8, to be shown."""
    return printable(text.encode("utf-8", "surrogateescape"))


def _lines(text: str) -> str:
    count = len(text.splitlines())
    return f"{count} line{'' if count == 1 else 's'}"


def _run_tests(action: RunTests, run_tests: Callable[[tuple[str, ...]], Observation]) -> Observation:
    try:
        return run_tests(action.tests)
    except MeasureError as error:
        return _refused(f"the tests could not be run: {error}")


def _debug(action: Debug, debug: Callable[[Debug], str] | None) -> Observation:
    if debug is None:
        return _refused("no test can be watched here")
    try:
        return Observation(_shown(terminal_text(debug(action))))
    except MeasureError as error:
        return _refused(str(error))


def _refused(why: str) -> Observation:
    return Observation(f"Not done: {_shown(why)}", ok=False)


def _reason(error: OSError, path: str) -> str:
    """What is wrong with a path, in words that do not depend on where the sandbox keeps its files."""
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
