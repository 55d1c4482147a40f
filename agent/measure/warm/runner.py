"""Find the pytest commands whose runs can be copied from a template, and build the requests for such runs."""

from __future__ import annotations

import json
import posixpath
import re
import secrets
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from agent.measure.inside import program_source
from agent.measure.warm.plugins import REPORTER, Limits
from sandboxes import Sandbox, Template

SHELL_WORDS = re.compile(r"[;&|<>$`()*?{}~!#\n\\]")
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
PYTHON = re.compile(r"(.*/)?python[\d.]*")
PYTEST = re.compile(r"(.*/)?(pytest|py\.test)")
INSIDE = (*REPORTER, "scripts", "copies", "stops", "ahead", "session", "warm")
"""Programs of the template, each after those it imports."""
ENDING = "\nfrom ramify_inside import warm\nwarm.begin({!r})\n"


class Start(Enum):
    """How a run starts."""

    NEW = "new"
    """In a new process."""
    PACKAGES = "packages"
    """Copied from a process that has imported pytest and its plugins."""
    SESSION = "session"
    """Copied from a session of the base state just before it would read the first file that differs; if that is
    impossible, like PACKAGES."""


@dataclass(frozen=True, slots=True)
class Warm:
    """How a template runs a task's tests."""

    template: Template
    argv: tuple[str, ...]
    """`-m pytest ...`, or the path of the script and its arguments."""
    workdir: str
    plugin: str = field(default_factory=lambda: f"m{secrets.token_hex(8)}", compare=False)
    """The unguessable name under which pytest loads the reporter."""

    def request(
        self, tests: Sequence[str], changed: Sequence[str] | None, report: str, nonce: str, limits: Limits
    ) -> bytes:
        """Return the request to send to the template.

        `changed` are the workspace files whose content differs from the base; None if there are other differences too.
        """
        files = None if changed is None else sorted(posixpath.join(self.workdir, path) for path in changed)
        session = {"argv": self.argv, "wanted": list(tests), "plugin": self.plugin}
        run = {"report": report, "nonce": nonce, **limits.to_json()}
        return json.dumps({"session": session, "changed": files, "run": run}).encode()


def find_warm(box: Sandbox, command: str) -> Warm | None:
    """Return how a template runs this command; None if it is not a plain pytest command."""
    parts = split_command(command, SHELL_WORDS)
    if parts is None:
        return None
    env, words = parts
    workdir = box.exec(["pwd", "-P"], timeout_s=60).stdout.decode().strip()
    if PYTHON.fullmatch(words[0]) and words[1:3] == ["-m", "pytest"]:
        interpreter, argv = words[0], words[1:]
    elif PYTEST.fullmatch(words[0]) and (script := _script(box, words[0])):
        interpreter, argv = script[1], [script[0], *words[1:]]
    else:
        return None
    program = _program(workdir)
    return Warm(Template((interpreter, "-"), program, env), tuple(argv), workdir)


def split_command(command: str, special: re.Pattern[str]) -> tuple[dict[str, str], list[str]] | None:
    """The variables that a simple command sets, and its words; None if it contains `special` characters."""
    if special.search(command):
        return None
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    env: dict[str, str] = {}
    while words and ASSIGNMENT.match(words[0]):
        name, _, env[name] = words.pop(0).partition("=")
    return (env, words) if words else None


def _script(box: Sandbox, name: str) -> tuple[str, str] | None:
    """The path of a Python script and its interpreter; None if it is not one."""
    look = 'path=$(command -v "$0") && printf "%s\\n" "$path" && head -n 1 "$path"'
    found = box.exec(["/bin/sh", "-c", look, name], timeout_s=60)
    path, _, first = found.stdout.decode(errors="replace").strip().partition("\n")
    interpreter = first.removeprefix("#!").strip()
    if found.exit_code or not PYTHON.fullmatch(interpreter):
        return None
    return path, interpreter


def _program(workdir: str) -> str:
    sources = [(name, program_source(f"{name}.py").decode()) for name in INSIDE]
    return f"register('ramify_inside', {sources!r})\n{ENDING.format(workdir)}"
