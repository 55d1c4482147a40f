"""Read tox's configuration files without tox, if they are simple: `tox.ini`, `setup.cfg`, `pyproject.toml`, `tox.toml`.

Anything else is refused, never guessed: a plug-in, a file of variables, a reference to a table.
"""

from __future__ import annotations

import configparser
import posixpath
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from typing import Any

from agent.measure.automation.calls import Call, NotUnderstood, ToolSession, tox_calls
from sandboxes import Sandbox

PLACEHOLDER = re.compile(r"(?<!\\)\{([^{}]*)\}")
CONDITION = re.compile(r"((?:[\w\-.{}!]|,\s*)+)\s*:\s+(.*)")
COMMENT = re.compile(r"\s+(?<!\\)#.*$")
REFERENCE = re.compile(r"\[([^\]]+)\](\w+)")
BRACES = re.compile(r"\{([^{}]*)\}")
MAX_BYTES = 256 << 10
LONGEST, MOST = 5000, 200
"""Maximum characters of a list of environments, and environments that it may expand to."""
MOST_FILLED = 200
"""Maximum placeholders filled for one environment: a reference can lead to itself."""


def sessions(
    box: Sandbox, names: Sequence[str], file: str, posargs: tuple[str, ...] | None, env: Mapping[str, str]
) -> Iterator[ToolSession]:
    """The named environments, or all that the file lists if none is named.

    Raises:
        NotUnderstood: there is no such file, or it is too complex.
    """
    variables = {**_environment(box), **env}
    for name in [file] if file else ["tox.ini", "setup.cfg", "pyproject.toml", "tox.toml"]:
        if (found := _parsed(box, name)) is not None:
            root = posixpath.normpath(posixpath.join(box.workdir, posixpath.dirname(name)))
            yield from found.sessions(names, _Context(root, posargs, variables))
            return
    raise NotUnderstood("no file of tox")


def _environment(box: Sandbox) -> dict[str, str]:
    output = box.exec(["/usr/bin/env", "-0"], timeout_s=60).stdout.decode(errors="surrogateescape")
    return dict(each.partition("=")[::2] for each in output.split("\0") if "=" in each)


def _parsed(box: Sandbox, name: str) -> _Ini | _Toml | None:
    """The parsed file; None if it does not exist or does not configure tox."""
    try:
        text = box.read(name, max_bytes=MAX_BYTES).decode()
        if not name.endswith(".toml"):
            return _ini(text, "tox:tox" if name.endswith("setup.cfg") else "")
        table: Mapping[str, Any] = tomllib.loads(text)
    except OSError:
        return None
    except ValueError as error:
        raise NotUnderstood(f"{name}: {error}") from error
    if name.endswith("pyproject.toml"):
        table = _subtable(_subtable(table, "tool"), "tox")
        if isinstance(legacy := table.get("legacy_tox_ini"), str):
            return _ini(legacy, "")
    return _Toml(table) if "env" in table or "env_run_base" in table else None


def _subtable(table: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = table.get(name, {})
    return found if isinstance(found, dict) else {}


def _ini(text: str, needed: str) -> _Ini | None:
    parser = configparser.RawConfigParser(strict=False, delimiters=("=",), comment_prefixes=("#",), default_section="")
    parser.optionxform = str  # type: ignore[assignment, method-assign]  # names of variables can have capitals
    try:
        parser.read_string(text)
    except configparser.Error as error:
        raise NotUnderstood(str(error)) from error
    return _Ini(parser, needed or "tox") if not needed or parser.has_section(needed) else None


@dataclass(frozen=True, slots=True)
class _Context:
    root: str
    """The folder of the file."""
    posargs: tuple[str, ...] | None
    variables: Mapping[str, str]

    def values(self, name: str) -> dict[str, str]:
        """The values of names in braces, in the environment `name`."""
        folder = f"{self.root}/.tox/{name}"
        return {
            **dict.fromkeys(("toxinidir", "tox_root"), self.root),
            **dict.fromkeys(("toxworkdir", "work_dir"), f"{self.root}/.tox"),
            **dict.fromkeys(("envname", "env_name"), name),
            **dict.fromkeys(("envdir", "env_dir"), folder),
            **dict.fromkeys(("envbindir", "env_bin_dir"), f"{folder}/bin"),
            **dict.fromkeys(("envpython", "env_python"), f"{folder}/bin/python"),
            **dict.fromkeys(("envtmpdir", "env_tmp_dir"), f"{folder}/tmp"),  # noqa: S108  # of the environment
            "/": "/",
            ":": ":",
        }


@dataclass(slots=True)
class _Placeholders:
    """Fills placeholders in braces."""

    context: _Context
    values: Mapping[str, str]
    refer: Callable[[str, str], str]
    """Returns the raw value of a section's key."""
    own: dict[str, str] = field(default_factory=dict)
    """Variables that the environment sets."""
    filled: int = 0

    def fill(self, text: str) -> str:
        """The text with all placeholders filled."""
        while placeholder := PLACEHOLDER.search(text):
            self.filled += 1
            if self.filled > MOST_FILLED:
                raise NotUnderstood(f"{text[:80]!r} has no end")
            value = self._value(placeholder[1]).replace("{", "\\{").replace("}", "\\}")
            text = text[: placeholder.start()] + value + text[placeholder.end() :]
        return text.replace("\\{", "{").replace("\\}", "}")

    def _value(self, placeholder: str) -> str:
        kind, colon, default = placeholder.partition(":")
        if kind == "posargs" or placeholder == "[]":
            return default if self.context.posargs is None else shlex.join(self.context.posargs)
        if kind == "env" and colon:
            name, _, otherwise = default.partition(":")
            return self.own.get(name, self.context.variables.get(name, otherwise))
        if kind == "tty" and colon:
            return default.partition(":")[2]
        if placeholder in self.values:
            return self.values[placeholder]
        if reference := REFERENCE.fullmatch(placeholder):
            return self.fill(self.refer(reference[1], reference[2]))
        raise NotUnderstood(f"{{{placeholder}}}")


@dataclass(frozen=True, slots=True)
class _Ini:
    parser: configparser.RawConfigParser
    core: str
    """The name of tox's own section."""

    def sessions(self, names: Sequence[str], context: _Context) -> Iterator[ToolSession]:
        """The environments of these names, or all that are listed."""
        for name in names or self._listed():
            if not (self.parser.has_section("testenv") or self.parser.has_section(f"testenv:{name}")):
                raise NotUnderstood(f"no environment {name}")
            yield self._session(name, context)

    def _listed(self) -> list[str]:
        listed = self._of(self.core, "envlist", "env_list")
        return [each for line in listed.split("\n") for each in _expanded(line)]

    def _of(self, section: str, *keys: str) -> str:
        return next((self.parser.get(section, key) for key in keys if self.parser.has_option(section, key)), "")

    def _session(self, name: str, context: _Context) -> ToolSession:
        placeholders = _Placeholders(context, context.values(name), self._of)
        for line in self._lines(name, "setenv", "set_env"):
            variable, value = _assigned(placeholders.fill(line))
            placeholders.own[variable] = value
        directory = posixpath.join(
            context.root, placeholders.fill("".join(self._lines(name, "changedir", "change_dir")))
        )
        # a reference may stand for several commands
        commands = [
            line for each in self._lines(name, "commands") for line in placeholders.fill(each).split("\n") if line
        ]
        return ToolSession(tox_calls(commands, placeholders.own, directory), context.values(name)["env_dir"])

    def _lines(self, name: str, *keys: str) -> list[str]:
        """The lines of a value that apply to an environment."""
        value = self._of(f"testenv:{name}", *keys) or self._of("testenv", *keys)
        return list(_applicable(value.replace("\\\n", " "), set(name.split("-"))))


def _assigned(line: str) -> tuple[str, str]:
    name, equals, value = line.partition("=")
    if not equals or "|" in name:
        raise NotUnderstood(f"the variable {line!r}")
    return name.strip(), value.strip()


def _applicable(value: str, factors: set[str]) -> Iterator[str]:
    for line in value.split("\n"):
        stripped = COMMENT.sub("", line).strip()
        if condition := CONDITION.fullmatch(stripped):
            stripped = condition[2].strip() if _applies(condition[1], factors) else ""
        if stripped and not stripped.startswith("#"):
            yield stripped


def _applies(condition: str, factors: set[str]) -> bool:
    """Whether for one of the alternatives, all its factors are set and all those with a `!` are not."""
    return any(
        all((factor.removeprefix("!") in factors) != factor.startswith("!") for factor in alternative.split("-"))
        for alternative in _expanded(condition)
    )


def _expanded(text: str) -> list[str]:
    """The names that a list expands to; braces hold alternatives: `py{311,312}-x, lint`."""
    if len(text) > LONGEST:
        raise NotUnderstood(f"{text[:80]!r} is too long")
    names = list[str]()
    for each in re.split(r",(?![^{]*\})", text):
        parts = [part.split(",") if at % 2 else [part] for at, part in enumerate(BRACES.split(each.strip()))]
        names += ["".join(word.strip() for word in chosen) for chosen in islice(product(*parts), MOST)]
    return [name for name in names if name]


@dataclass(frozen=True, slots=True)
class _Toml:
    table: Mapping[str, Any]

    def sessions(self, names: Sequence[str], context: _Context) -> Iterator[ToolSession]:
        """The environments of these names, or all that are listed."""
        listed = self.table.get("env_list", [])
        if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
            raise NotUnderstood("env_list is no list of names")
        for name in names or listed:
            yield self._session(name, context)

    def _session(self, name: str, context: _Context) -> ToolSession:
        try:
            values = {**self.table.get("env_run_base", {}), **self.table.get("env", {}).get(name, {})}
            placeholders = _Placeholders(context, context.values(name), _no_reference)
            env = {key: placeholders.fill(_text(value)) for key, value in values.get("set_env", {}).items()}
            placeholders.own = env
            directory = posixpath.join(context.root, placeholders.fill(_text(values.get("change_dir", ""))))
            commands = [_words(command, placeholders) for command in values.get("commands", [])]
        except (AttributeError, TypeError) as error:
            raise NotUnderstood(f"the environment {name}: {error}") from error
        calls = [Call(tuple(words), env, directory) for words in commands if words and words[0] not in ("!", "-")]
        return ToolSession(tuple(calls), context.values(name)["env_dir"])


def _no_reference(section: str, key: str) -> str:
    raise NotUnderstood(f"[{section}]{key}")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise NotUnderstood(f"{value!r}")
    return value


def _words(command: Any, placeholders: _Placeholders) -> list[str]:
    """The words of a command; a table stands for command-line arguments or a variable."""
    if not isinstance(command, list):
        raise NotUnderstood(f"the command {command!r}")
    words: list[str] = []
    for each in command:
        match each:
            case str():
                words.append(placeholders.fill(each))
            case {"replace": "posargs", **others} if set(others) <= {"default", "extend"}:
                values = placeholders.context.posargs
                words += values if values is not None else _defaults(others.get("default", []), placeholders)
            case {"replace": "env", "name": str(name), **others} if set(others) <= {"default"}:
                words.append(placeholders.context.variables.get(name, str(others.get("default", ""))))
            case _:
                raise NotUnderstood(f"{each!r}")
    return words


def _defaults(words: object, placeholders: _Placeholders) -> list[str]:
    if not isinstance(words, list):
        raise NotUnderstood(f"{words!r}")
    return [placeholders.fill(_text(word)) for word in words]
