"""Find the commands of a tox environment: from tox itself if the sandbox has it (`tox config`, version 4), else from
its configuration files if they are simple."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from agent.measure.automation import toxfile
from agent.measure.automation.calls import NotUnderstood, ToolSession, tox_calls
from sandboxes import Sandbox

ASK_S = 120
SUBCOMMANDS = ("run", "r", "run-parallel", "p")
NAMES = ("-e", "--env")
FILES = ("-c", "--conf")
VALUED = ("-x", "--override", "--workdir", "--root", "--discover", "--hashseed", "--result-json", "-p", "--installpkg")
"""Options whose value is a separate word. Apart from OVERRIDES, they do not affect which commands are called."""
OVERRIDES = ("-x", "--override", "--root", "--workdir")
OWN = frozenset(
    {
        "PIP_DISABLE_PIP_VERSION_CHECK",
        "PIP_USER",
        "PYTHONHASHSEED",
        "PYTHONIOENCODING",
        "TOX_ENV_DIR",
        "TOX_ENV_NAME",
        "TOX_WORK_DIR",
        "VIRTUAL_ENV",
    }
)
"""Variables that tox itself sets in every environment."""
SECTION = re.compile(r"\[testenv:.+\]")
KEY = re.compile(r"(\w+) =(?: (.*))?")


@dataclass(slots=True)
class CommandLine:
    """The tox command line, parsed."""

    names: list[str] = field(default_factory=list)
    """Environments; empty: all that the file lists."""
    file: str = ""
    overrides: list[str] = field(default_factory=list)
    posargs: tuple[str, ...] | None = None
    """The words after `--`; None: there is no `--`."""


def sessions(
    box: Sandbox, program: Sequence[str], arguments: Sequence[str], env: Mapping[str, str]
) -> Iterator[ToolSession]:
    """The requested environments, in order.

    Raises:
        NotUnderstood: the command line or the files of tox are too complex.
    """
    command_line = _parsed(arguments)
    if not command_line.names and (named := env.get("TOXENV")):
        command_line.names = named.split(",")
    answer = _ask(box, program, command_line, env)
    if answer is not None:
        yield from answer
    elif command_line.overrides:
        raise NotUnderstood("options of tox that change what its file says")
    else:
        yield from toxfile.sessions(box, command_line.names, command_line.file, command_line.posargs, env)


def _parsed(arguments: Sequence[str]) -> CommandLine:
    command_line, words = CommandLine(), list(arguments)
    if words and words[0] in SUBCOMMANDS:
        words.pop(0)
    if "--" in words:
        at = words.index("--")
        words, command_line.posargs = words[:at], tuple(words[at + 1 :])
    while words:
        _take(command_line, words)
    return command_line


def _take(command_line: CommandLine, words: list[str]) -> None:
    """Parse the next option and remove it from the words."""
    option, joined, value = words.pop(0).partition("=")
    if option[:2] in ("-e", "-c", "-x") and len(option) > 2 and not option.startswith("--"):
        option, joined, value = option[:2], "=", option[2:] + joined + value
    if not option.startswith("-"):
        raise NotUnderstood(f"the word {option!r}")
    if option in (*NAMES, *FILES, *VALUED) and not joined:
        if not words:
            raise NotUnderstood(f"{option} without a value")
        value = words.pop(0)
    if option in NAMES:
        command_line.names += [name for name in value.split(",") if name]
    elif option in FILES:
        command_line.file = value
    elif option in OVERRIDES:
        command_line.overrides += [option, value]


def _ask(
    box: Sandbox, program: Sequence[str], command_line: CommandLine, env: Mapping[str, str]
) -> list[ToolSession] | None:
    """Ask tox about its environments; None if the sandbox has no suitable tox. Raises NotUnderstood if tox does not
    finish."""
    argv = [*program, "config", "--no-provision"]
    argv += [
        *(["-e", ",".join(command_line.names)] if command_line.names else []),
        *(["-c", command_line.file] if command_line.file else []),
    ]
    argv += [*command_line.overrides, "-k", "commands", "set_env", "change_dir", "env_dir"]
    argv += [] if command_line.posargs is None else ["--", *command_line.posargs]
    answer = box.exec(argv, timeout_s=ASK_S, env={**env, "NO_COLOR": "1"})
    if answer.timed_out:
        raise NotUnderstood(f"tox does not answer in {ASK_S} s")
    if answer.exit_code != 0:
        return None
    text = answer.stdout.decode(errors="surrogateescape")
    return [_session(values) for values in _sections(text) if "commands" in values] or None


def _sections(text: str) -> list[dict[str, list[str]]]:
    """The lines of each value, for each environment that `tox config` prints."""
    found: list[dict[str, list[str]]] = []
    values: list[str] = []
    for line in text.split("\n"):
        if SECTION.fullmatch(line):
            found.append({})
        elif line.startswith("  "):
            values.append(line[2:])
        elif found and (key := KEY.fullmatch(line)):
            values = [key[2]] if key[2] else []
            found[-1][key[1]] = values
    return found


def _session(values: Mapping[str, list[str]]) -> ToolSession:
    env = dict(line.partition("=")[::2] for line in values.get("set_env", ()))
    env = {key: value for key, value in env.items() if key not in OWN}
    directory = "".join(values.get("change_dir", ()))
    return ToolSession(tox_calls(values["commands"], env, directory), "".join(values.get("env_dir", ())))
