"""Find the test command that tox or nox calls.

Both tools begin by installing packages, but a sandbox has no network. Also, tox hides most environment variables from
its commands, and single tests are measured with the help of such variables. So the inner command runs instead, with the
packages that are installed in the base state: in the tool's own environment if it exists, else outside it.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from agent.measure.automation import nox, tox
from agent.measure.automation.calls import Call, NotUnderstood, ToolSession
from agent.measure.warm.runner import PYTHON, split_command
from sandboxes import Sandbox

__all__ = ["Inner", "inner_command", "is_tool"]

LOOK_S = 60
SHELL_WORDS = re.compile(r"[;&|<>$`()\n]")
"""Characters with a special meaning to a shell."""
TOOLS = {"tox": tox.sessions, "nox": nox.sessions}
"""For each tool, the function that reads the sessions its command line requests: it gets the words that run the
tool, and its arguments."""


@dataclass(frozen=True, slots=True)
class Inner:
    """The test command that a tool calls."""

    command: str
    """A shell command, run from the workspace root."""
    explanation: str
    """A sentence for people: how the command replaces the tool."""


def is_tool(command: str) -> bool:
    """Whether a test command plainly runs tox or nox."""
    return _split(command) is not None


def inner_command(box: Sandbox, command: str) -> Inner | None:
    """Return the test command inside a tox or nox command; None if none can be found.

    Raises:
        sandboxes.SandboxError: as `Sandbox.exec`.
    """
    parts = _split(command)
    if parts is None:
        return None
    tool, program, arguments, env = parts
    try:
        for session in TOOLS[tool](box, program, arguments, env):
            if (call := session.test_call) is not None:
                return _inner(box, command, session, call, env)
    except (NotUnderstood, RecursionError):  # files can be nested to any depth
        pass
    return None


def _split(command: str) -> tuple[str, list[str], list[str], Mapping[str, str]] | None:
    """Split a simple command into the tool, the words that run it, its arguments, and the variables that are set; None
    if it does not run tox or nox."""
    parts = split_command(command, SHELL_WORDS)
    if parts is None:
        return None
    env, words = parts
    by_python = len(words) > 2 and PYTHON.fullmatch(words[0]) and words[1] == "-m"
    count = 3 if by_python else 1
    tool = words[count - 1].rpartition("/")[2]
    return (tool, words[:count], words[count:], env) if tool in TOOLS else None


def _inner(box: Sandbox, command: str, session: ToolSession, call: Call, outer: Mapping[str, str]) -> Inner:
    folder = session.folder.rstrip("/")
    environment = f"{folder}/bin" if folder and _executable(box, f"{folder}/bin") else ""
    argv = [_program(box, call.argv[0], folder, environment), *call.argv[1:]]
    env = {**outer, **call.env}
    if environment:
        env["PATH"] = f"{environment}:{_path(box, env)}"
    set_first = [f"{name}={shlex.quote(value)}" for name, value in env.items() if name not in ("TOXENV", "NOXSESSION")]
    line = " ".join([*set_first, shlex.join(argv)])
    directory = posixpath.relpath(posixpath.join(box.workdir, call.directory), box.workdir)
    if directory != ".":
        line = f"cd {shlex.quote(directory)} && {line}"
    packages = f"with the packages of {folder}" if environment else "with the installed packages"
    explanation = f"{command!r} itself is not run; the tests run with its inner command {line!r}, {packages}"
    others = [shlex.join(each.argv) for each in session.calls if each is not call]
    return Inner(
        line, f"{explanation}; its other commands are left out: {'; '.join(others)}" if others else explanation
    )


def _program(box: Sandbox, word: str, folder: str, environment: str) -> str:
    """The program that a word names: the one in the environment if there is one, else the one outside."""
    name = word.removeprefix(f"{folder}/bin/") if folder else word
    if "/" in name:
        return name
    if environment and _executable(box, f"{environment}/{name}"):
        return f"{environment}/{name}"
    found = box.exec(["/bin/sh", "-c", 'command -v "$0"', name], timeout_s=LOOK_S).exit_code == 0
    return "python3" if name == "python" and not found else name


def _executable(box: Sandbox, path: str) -> bool:
    return box.exec(["/bin/sh", "-c", 'test -x "$0"', path], timeout_s=LOOK_S).exit_code == 0


def _path(box: Sandbox, env: Mapping[str, str]) -> str:
    if "PATH" in env:
        return env["PATH"]
    return box.exec(["/bin/sh", "-c", 'printf %s "$PATH"'], timeout_s=LOOK_S).stdout.decode(errors="surrogateescape")
