"""Commands: which files a shell command reads and writes, judged by its words. Nothing is run.

This is a heuristic: it does not see what a program does inside, and misses files that the command does not name.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePosixPath

_HEREDOC = re.compile(r"<<-?[ \t]*(['\"]?)(\w+)\1([^\n]*)\n(.*?)(?:^[ \t]*\2[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_SUBSTITUTION = re.compile(
    r"(?:^|;)\s*(?:\d+(?:,\d+)?\s*)?s(?P<mark>[^\w\s\\])(?:\\.|(?!(?P=mark)).)*(?P=mark)"
    r"(?P<new>(?:\\.|(?!(?P=mark)).)*)(?P=mark)"
)
_QUOTED_FILE = re.compile(r"['\"]([\w./-]*\w\.\w{1,4})['\"]")
_WRITES = re.compile(r"\.write|write_text|write_bytes|['\"][wa]\+?['\"]")
_JOINTS = {";", "&&", "||", "|", "&", "(", ")", "\n"}
_SCRIPTED = {"awk", "egrep", "fgrep", "grep", "rg", "sed"}
_TESTS = re.compile(
    r"\b(pytest|unittest|tox|nosetests|runtests|nox|ctest|jest|vitest|mocha)\b"
    r"|\b(go|cargo|npm|yarn|make|mvn) (run )?(test|check)\b"
)
_RUNNERS = re.compile(r"(.*/)?(python[\d.]*|node|ruby|perl|bash|sh)$")
_RESTORES = {("git", "checkout"), ("git", "restore"), ("str_replace_editor", "undo_edit")}
_TO_STREAM = re.compile(r"\d*>&\d|\b2(?=>)")
_QUOTED = re.compile(r"(['\"])(.+?)\1")
_NOWHERE = ("/dev/null", "/dev/stderr", "/dev/stdout")


@dataclass(frozen=True, slots=True)
class Command:
    """What the words of a command say about it."""

    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    """All files that it writes, including replaced ones."""
    replaces: tuple[str, ...] = ()
    """The files whose old content it removes completely."""
    text: str = ""
    """The text that it writes, if the command contains it."""
    loose: bool = False
    """Whether the lines of the text may be parts of lines in the files."""
    tests: bool = False
    """Whether it runs tests."""
    runs: bool = False
    """Whether it runs a script."""


def read_command(command: str) -> Command:
    """What the words of a command say about it."""
    documents = list(_HEREDOC.finditer(command))
    bare = _TO_STREAM.sub("", _HEREDOC.sub(lambda document: f"{document[3]} \n", command))
    parts = list(_parts(bare))
    reads = [path for part in parts for path in _reads(part)]
    writes = [path for part in parts for path in _writes(part)]
    scripts = [document[4] for document in documents if _runs(_before(command, document.start()))]
    for script in scripts:
        named = _QUOTED_FILE.findall(script)
        (writes if _WRITES.search(script) else reads).extend(named)
    replaced = [path for part in parts for path in _replaces(part)]
    return Command(
        tuple(dict.fromkeys(reads)),
        tuple(dict.fromkeys((*replaced, *writes))),
        tuple(dict.fromkeys(replaced)),
        "\n".join((*(document[4] for document in documents), *_quoted(scripts), *_written(parts))),
        bool(scripts) or any(_program(part) == "sed" for part in parts),
        bool(_TESTS.search(bare)),
        any(_runs(part) for part in parts),
    )


def _parts(command: str) -> Iterator[list[str]]:
    """The words of each simple command in it. A command with an unclosed quote is split at spaces."""
    lexer = shlex.shlex(command.replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        words = list(lexer)
    except ValueError:
        words = command.split()
    part: list[str] = []
    for word in [*words, ";"]:
        if word not in _JOINTS:
            part.append(word)
        elif part:
            yield part
            part = []


def _program(part: Sequence[str]) -> str:
    """The name of the program, without variables set before it."""
    words = [word for word in part if not re.match(r"\w+=", word)]
    return PurePosixPath(words[0]).name if words else ""


def _before(command: str, place: int) -> list[str]:
    """The words of the simple command that reads a here-document."""
    return re.split(r"[|;&\n]", command[:place])[-1].split()


def _runs(part: Sequence[str]) -> bool:
    return bool(_RUNNERS.match(_program(part)))


def _operands(part: Sequence[str]) -> list[str]:
    """The words after the program that are not options, redirections or scripts of sed."""
    words = [word for word in part if not re.match(r"\w+=", word)]
    return [
        word
        for before, word in pairwise(words)
        if not (word.startswith("-") or _redirects(word) or _redirects(before) or before in ("-e", "--expression"))
    ]


def _redirects(word: str) -> bool:
    return set(word) <= set("<>&")


def _reads(part: Sequence[str]) -> list[str]:
    program, operands = _program(part), _operands(part)
    if _TESTS.search(" ".join(part)):
        return []
    if program in ("cp", "mv") or _runs(part):
        return operands[:1]
    if program in ("cat", "head", "tail", "less", "more", "nl", "wc", "diff"):
        return operands
    return _files_of(part) if program in _SCRIPTED else []


def _files_of(part: Sequence[str]) -> list[str]:
    """The file operands of a program whose first operand is a pattern or script, unless an option gives that."""
    by_option = any(word in ("-e", "--expression", "-f") for word in part)
    return _operands(part) if by_option else _operands(part)[1:]


def _writes(part: Sequence[str]) -> list[str]:
    """The files that it appends to or changes in place."""
    added = [word for before, word in pairwise(part) if before == ">>"]
    in_place = any(re.match(r"-[a-zA-Z]*i|--in-place", word) for word in part[1:])
    return [*added, *_files_of(part)] if _program(part) == "sed" and in_place else added


def _replaces(part: Sequence[str]) -> list[str]:
    """The files that it overwrites, removes or restores."""
    program, operands = _program(part), _operands(part)
    targets = [word for before, word in pairwise(part) if before in (">", ">|", "&>") and word not in _NOWHERE]
    if program in ("tee", "rm", "truncate"):
        return [*targets, *operands]
    if program in ("cp", "mv"):
        return [*targets, *operands[-1:]]
    if (program, *operands[:1]) in _RESTORES:
        return [*targets, *operands[1:]]
    return targets


def _quoted(scripts: Sequence[str]) -> Iterator[str]:
    """The strings in scripts: the text that a script writes is usually among them."""
    return (string[2] for script in scripts for string in _QUOTED.finditer(script))


def _written(parts: Sequence[Sequence[str]]) -> Iterator[str]:
    """The text that echo prints, and the replacements of sed."""
    for part in parts:
        if _program(part) in ("echo", "printf"):
            yield " ".join(_operands(part))
        elif _program(part) == "sed":
            yield from (match["new"] for word in part[1:] for match in _SUBSTITUTION.finditer(word))
