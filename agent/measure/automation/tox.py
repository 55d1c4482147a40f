"""tox: what it calls in an environment. tox itself is asked where the sandbox has it (`tox config`, of version 4); else
its files are read as far as they are simple."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from agent.measure.automation import toxfile
from agent.measure.automation.calls import NotUnderstood, Session, tox_calls
from sandboxes import Sandbox

__all__ = ["sessions"]

ASK_S = 120
SUBCOMMANDS = ("run", "r", "run-parallel", "p")
NAMES = ("-e", "--env")
FILES = ("-c", "--conf")
VALUED = ("-x", "--override", "--workdir", "--root", "--discover", "--hashseed", "--result-json", "-p", "--installpkg")
"""Options whose value is a word of its own, and which have no part in what is called; but for OVERRIDES."""
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
"""Variables that tox sets by itself in every environment."""
SECTION = re.compile(r"\[testenv:(.+)\]")
KEY = re.compile(r"(\w+) =(?: (.*))?")


@dataclass(slots=True)
class Asked:
    """What a command line asks of tox."""

    names: list[str] = field(default_factory=list)
    """Environments; empty: all that the file lists."""
    file: str = ""
    overrides: list[str] = field(default_factory=list)
    posargs: tuple[str, ...] | None = None
    """What follows `--`; None: no `--` does."""


def sessions(box: Sandbox, program: Sequence[str], given: Sequence[str], env: Mapping[str, str]) -> Iterator[Session]:
    """The environments that are asked for, in their order.

    Raises:
        NotUnderstood: the command line or the files of tox say more than is read here.
    """
    asked = _asked(given)
    if not asked.names and (named := env.get("TOXENV")):
        asked.names = named.split(",")
    told = _ask(box, program, asked, env)
    if told is not None:
        yield from told
    elif asked.overrides:
        raise NotUnderstood("options of tox that change what its file says")
    else:
        yield from toxfile.sessions(box, asked.names, asked.file, asked.posargs, env)


def _asked(given: Sequence[str]) -> Asked:
    asked, words = Asked(), list(given)
    if words and words[0] in SUBCOMMANDS:
        words.pop(0)
    if "--" in words:
        at = words.index("--")
        words, asked.posargs = words[:at], tuple(words[at + 1 :])
    while words:
        _take(asked, words)
    return asked


def _take(asked: Asked, words: list[str]) -> None:
    """Take the next option off the words."""
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
        asked.names += [name for name in value.split(",") if name]
    elif option in FILES:
        asked.file = value
    elif option in OVERRIDES:
        asked.overrides += [option, value]


def _ask(box: Sandbox, program: Sequence[str], asked: Asked, env: Mapping[str, str]) -> list[Session] | None:
    """What tox says of its environments; None: there is no tox in the sandbox that can. Raises NotUnderstood where it
    does not come to an end."""
    argv = [*program, "config", "--no-provision"]
    argv += [*(["-e", ",".join(asked.names)] if asked.names else []), *(["-c", asked.file] if asked.file else [])]
    argv += [*asked.overrides, "-k", "commands", "set_env", "change_dir", "env_dir"]
    argv += [] if asked.posargs is None else ["--", *asked.posargs]
    told = box.exec(argv, timeout_s=ASK_S, env={**env, "NO_COLOR": "1"})
    if told.timed_out:
        raise NotUnderstood(f"tox does not answer in {ASK_S} s")
    if told.exit_code != 0:
        return None
    text = told.stdout.decode(errors="surrogateescape")
    return [_session(name, values) for name, values in _sections(text) if "commands" in values] or None


def _sections(text: str) -> Iterator[tuple[str, Mapping[str, list[str]]]]:
    """The environments that `tox config` prints, with the lines of each value."""
    found: list[tuple[str, dict[str, list[str]]]] = []
    values: list[str] = []
    for line in text.split("\n"):
        if section := SECTION.fullmatch(line):
            found.append((section[1], {}))
        elif line.startswith("  "):
            values.append(line[2:])
        elif found and (key := KEY.fullmatch(line)):
            values = [key[2]] if key[2] else []
            found[-1][1][key[1]] = values
    yield from found


def _session(name: str, values: Mapping[str, list[str]]) -> Session:
    env = dict(line.partition("=")[::2] for line in values.get("set_env", ()))
    env = {key: value for key, value in env.items() if key not in OWN}
    directory = "".join(values.get("change_dir", ()))
    return Session(name, tox_calls(values["commands"], env, directory), "".join(values.get("env_dir", ())))
