"""The commands of a tox or nox session, and which of them run tests."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

RUNNERS = re.compile(
    r"(.*/)?(pytest|py\.test|nosetests[\d.-]*|nose2?|unittest|trial|run_?tests?\.py)|(.*/)?bin/test|twisted\.trial"
)
"""Programs, scripts and modules that run tests."""
WITH_COMMANDS = re.compile(r"(.*/)?(manage\.py|django-admin(\.py)?|django)")
"""Programs that run tests by a subcommand."""
PYTHON = re.compile(r"(.*/)?(python|pypy)[\d.]*")
COVERAGE = re.compile(r"(.*/)?coverage[\d.-]*")
VALUED = {"-W", "-X", "--source", "--rcfile", "--omit", "--include", "--data-file", "--context", "--concurrency"}
"""Options of Python and coverage whose value is a separate word."""


class NotUnderstood(Exception):
    """A file or a command line contains something that is not supported here."""


@dataclass(frozen=True, slots=True)
class Call:
    """One command of a session."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    """The variables that the session sets for this command."""
    directory: str = ""
    """The working directory; empty: the workspace root."""


@dataclass(frozen=True, slots=True)
class ToolSession:
    """A session of nox, or environment of tox."""

    calls: tuple[Call, ...]
    folder: str = ""
    """The virtual environment that the tool creates for it; empty: none."""

    @property
    def test_call(self) -> Call | None:
        """The last call that runs tests."""
        return next((call for call in reversed(self.calls) if runs_tests(call.argv)), None)


def tox_calls(lines: Sequence[str], env: Mapping[str, str], directory: str) -> tuple[Call, ...]:
    """The commands that tox would run, one shell line each; commands that are meant to fail are left out.

    Raises:
        NotUnderstood: a line cannot be split into words.
    """
    calls = []
    for line in lines:
        try:
            words = shlex.split(line)
        except ValueError as error:
            raise NotUnderstood(f"the command {line!r}: {error}") from error
        if words and words[0] == "-":
            words.pop(0)
        elif words and words[0].startswith("-"):
            words[0] = words[0][1:]
        if words and words[0][:1] not in ("!", "#"):
            calls.append(Call(tuple(words), env, directory))
    return tuple(calls)


def runs_tests(argv: Sequence[str]) -> bool:
    """Whether a command plainly runs tests."""
    words = list(_unwrapped(argv))
    if not words:
        return False
    if WITH_COMMANDS.fullmatch(words[0]):
        return next((word for word in words[1:] if not word.startswith("-")), "") == "test"
    return RUNNERS.fullmatch(words[0]) is not None


def _unwrapped(argv: Sequence[str]) -> Iterator[str]:
    """The words of a command, beginning with the program, script or module that Python or coverage runs."""
    words = list(argv)
    while words:
        if COVERAGE.fullmatch(words[0]) and words[1:2] == ["run"]:
            words = _without_options(words[2:])
        elif PYTHON.fullmatch(words[0]):
            words = _without_options(words[1:])
        else:
            break
    yield from words


def _without_options(words: Sequence[str]) -> list[str]:
    """The words without leading options and their values; the word after `-m` is a module and is kept."""
    left = list(words)
    while left and left[0].startswith("-"):
        option = left.pop(0)
        if option == "-m":
            break
        if option in VALUED and left:
            left.pop(0)
        elif option == "-c":  # a program on the command line may do anything
            return []
    return left
