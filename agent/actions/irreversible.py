"""How far an action reaches, and which shell commands change something outside of the sandbox for good.

The recognition of such commands is a courtesy, not a barrier: it tells a model early that its work does not include
them, and tells a search which states not to build on. The barrier is a sandbox without a network. So the patterns look
for what people and models really write, and only where a command begins, not in messages, patterns or files.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal, NamedTuple, assert_never

from agent.actions.types import Action, Debug, Edit, Effect, Invalid, RunTests, Search, Shell, Submit, View, Write

Kind = Literal["push", "publish", "deploy", "send", "migrate", "destroy"]
"""`migrate` remains because settings may hold it: a migration stays in the sandbox and runs like any other command."""


class Irreversible(NamedTuple):
    """A command that cannot be taken back."""

    kind: Kind
    command: str
    """The single command within the line, without its quotes."""


_OPTIONS = r"(?: -\S+(?: [^-\s]\S*)??)*?"
"""Options between a program and its subcommand, with or without a value (`git -C dir push`)."""
_ANY = r"(?: \S+)*?"
_DRY = r"(?!.* (?:--dry-run|-n|--check|--help|-h)\b)"
_LOCAL = r"(?!.*(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\]))"
_BEFORE = re.compile(
    r"(?:\w+=\S* |(?:then|do|else|if|while|until|!|\{|nohup|time|command|exec|setsid|npx|bunx|uvx)(?: -\S+)* "
    r"|(?:sudo|doas)(?: -[CDghpRTu] \S+| -\S+)* |env(?: -[Cu] \S+| -\S+)* |(?:nice|ionice)(?: -[cnp] \S+| -\S+)* "
    r"|(?:xargs|parallel)(?: -[adEIjLnPs] \S+| -\S+)* |stdbuf(?: -[eio] \S+| -\S+)* "
    r"|timeout(?: -[ks] \S+| -\S+)* \S+ |find(?: \S+)*? -(?:exec|execdir|ok) "
    r"|(?:poetry|uv|pipenv|pdm|hatch|rye|pipx) run(?: -\S+)* "
    r"|bundle exec |(?:\S*/)?python\S* -m )*+(?:\S*/)?"
)
"""What may precede the program's name: assignments, keywords, programs that run another."""
_PYTHON = r"(?:python\S* )?(?:\S*/)?"
_PATTERNS: dict[Kind, tuple[str, ...]] = {
    "push": (
        rf"{_DRY}git{_OPTIONS} (?:(?:lfs|subtree) )?(?:push|send-email|svn dcommit|p4 submit)",
        rf"{_DRY}(?:hg{_OPTIONS} push|svn{_OPTIONS} (?:commit|ci))",
        rf"(?:gh|glab){_OPTIONS} (?:pr|mr|issue|release|repo|gist|workflow|secret) (?!list|view|status|diff|c[hl])\S+",
        rf"gh{_OPTIONS} api{_ANY} (?:-[fFX]\S*|--(?:field|raw-field|input|method)\S*)",
    ),
    "publish": (
        rf"{_DRY}(?:npm|yarn|pnpm|bun|poetry|uv|hatch|flit|pdm|vsce|lerna|changeset){_OPTIONS}(?: npm)? (?:un)?publish",
        rf"{_DRY}cargo{_OPTIONS} (?:publish|yank)",
        rf"twine{_OPTIONS} (?:upload|register)",
        rf"{_PYTHON}setup\.py{_ANY} (?:upload|register)",
        rf"(?:gem|pod trunk|dotnet nuget|conan|helm){_OPTIONS} (?:push|upload)",
        rf"(?:docker|podman|buildah){_OPTIONS} (?:(?:image|manifest) )?push",
        rf"(?:docker|podman){_OPTIONS} (?:buildx )?build{_ANY} --push",
        rf"(?:mvnw?|gradlew?|sbt){_ANY} (?:deploy|publish(?!ToMavenLocal)\S*)",
    ),
    "deploy": (
        rf"kubectl{_OPTIONS} (?:apply|create|delete|patch|replace|scale|rollout|drain)",
        rf"helm{_OPTIONS} (?:install|upgrade|uninstall|rollback)",
        rf"(?:terraform|tofu|pulumi){_OPTIONS} (?:apply|destroy|import|up)",
        rf"(?:aws|gsutil|rclone|gcloud|az){_ANY} (?:cp|mv|rm|sync|move|deploy|delete|put-\S+|delete-\S+|create-\S+)",
        rf"(?:fly|flyctl|netlify|vercel|firebase|serverless|wrangler|cdk){_OPTIONS} (?:deploy|publish|remove)",
        rf"{_DRY}ansible-playbook{_ANY} \S+",
    ),
    "send": (
        rf"{_LOCAL}curl{_ANY} (?:-[a-zA-Z]*[dFT]\S*|--(?:data|form|upload-file|json)\S*)",
        rf"{_LOCAL}curl{_ANY} (?:-[a-zA-Z]*X ?|--request[ =])(?!GET|HEAD|OPTIONS)\w+",
        rf"{_LOCAL}wget{_ANY} --(?:(?:post|body)-\S+|method[ =](?!GET|HEAD|OPTIONS)\w+)",
        rf"{_LOCAL}https?{_OPTIONS} (?:POST|PUT|PATCH|DELETE)",
        rf"{_LOCAL}python\S*{_OPTIONS} -c \S*(?:requests|httpx)\.(?:post|put|patch|delete)\(\S*",
        rf"{_LOCAL}(?:ssh|scp|sftp|sendmail|mail|mutt) \S+.*",
        rf"rsync{_ANY} [^/\s]+:\S*",
    ),
    "destroy": (
        rf"rm{_ANY} (?:/|/\*|~|~/|\$HOME/?)",
        r"(?:mkfs\S*|shutdown|reboot|poweroff|halt).*",
        rf"dd{_ANY} of=/dev/(?!null|stdout|zero)\S+",
    ),
}
_COMPILED = tuple(
    (kind, re.compile(rf"(?:{pattern})(?= |$)")) for kind, patterns in _PATTERNS.items() for pattern in patterns
)
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "su"})
_PRINTING = frozenset({"echo", "printf"})
_HERE = re.compile(r"(?<!<)<<(?!<)-?[ \t]*(['\"]?)(?P<end>\w+)\1")


def effect(action: Action) -> Effect:
    """The furthest reach of the action. That of a shell command is the sandbox, unless it is irreversible."""
    match action:
        case View() | Search() | RunTests() | Debug() | Submit() | Invalid():
            return Effect.READ_ONLY
        case Edit() | Write():
            return Effect.WORKSPACE
        case Shell():
            return Effect.IRREVERSIBLE if irreversible(action.command) else Effect.MACHINE
        case _:
            assert_never(action)


@lru_cache(maxsize=256)
def irreversible(command: str) -> Irreversible | None:
    """The first irreversible command in a shell command line; None if none is recognised."""
    for simple in _simple_commands(_without_documents(command.replace("\\\n", " "))):
        program = _program(simple)
        for kind, pattern in _COMPILED:
            if pattern.match(program):
                return Irreversible(kind, simple)
    return None


def _without_documents(command: str) -> str:
    """The command without its here-documents, except those that a shell reads as commands."""
    lines = command.split("\n")
    ends, kept, at = [line.strip() for line in lines], list[str](), 0
    known = set(ends)
    while at < len(lines):
        line, at = lines[at], at + 1
        kept.append(_HERE.sub(" ", line))
        for mark in _HERE.finditer(line):
            if mark["end"] in known and mark["end"] in ends[at:]:
                end = ends.index(mark["end"], at)
                before = re.split(r"[;&|]", line[: mark.start()])[-1].split()
                after = re.split(r"[;&]", line[mark.end() :])[0].split("|")
                piped_to_shell = any(_reads_commands(part.split()) for part in after)
                kept += lines[at:end] if piped_to_shell or not _SHELLS.isdisjoint(map(_name, before)) else []
                at = end + 1
    return "\n".join(kept)


def _simple_commands(command: str) -> list[str]:
    """The commands between the operators of a shell command, without quotes, and those passed to another shell."""
    simple, pipeline = list[str](), list[list[str]]([[]])
    for word in (*_words(command), "\n"):
        if not word or word.strip("();<>|&\n"):
            pipeline[-1].append(word)
        elif word in ("|", "|&") or not {"<", ">"}.isdisjoint(word):
            pipeline.append(["echo"] if word == "<<<" else [])
        else:
            simple += _opened(pipeline)
            pipeline = [[]]
    return simple


def _opened(pipeline: list[list[str]]) -> Iterator[str]:
    """The commands of a pipeline, or between redirections. Text that a shell reads as its input is a command too:
    `echo 'git push' | sh`, `bash <<< 'git push'`."""
    feeds_shell = any(map(_reads_commands, pipeline))
    for words in pipeline:
        plain = list[str]()
        for word in words:
            if " " in word and _runs_words(plain):
                yield from _simple_commands(word)
            else:
                plain.append(word)
        if plain:
            yield _spelled(plain)
        if feeds_shell and _name(plain[0] if plain else "") in _PRINTING:
            for text in dict.fromkeys([" ".join(plain[1:]), *plain[1:]]):
                yield from _simple_commands(text.removeprefix("-e ").replace("\\n", "\n"))


def _spelled(words: list[str]) -> str:
    """The command as one line; spaces within a word become underscores."""
    return " ".join(word.replace(" ", "_") for word in words)


def _program(simple: str) -> str:
    """The command from its program's name on."""
    before = _BEFORE.match(simple)
    return simple[before.end() if before else 0 :]


def _reads_commands(words: list[str]) -> bool:
    """Whether a command is a shell that reads its commands from standard input: it has no script, and executes."""
    name, *options = _program(_spelled(words)).split() or [""]
    if name not in _SHELLS or any(re.fullmatch(r"-\w*[cn]", option) for option in options):
        return False
    return "-s" in options or all(option.startswith(("-", "+")) for option in options)


def _runs_words(before: list[str]) -> bool:
    """Whether the word after these is itself a command: `bash -lc '...'`, `env -S '...'`, `eval '...'`."""
    names = [_name(word) for word in before]
    option = names and re.fullmatch(r"-\w*c", names[-1]) is not None
    splits = names[-1:] == ["-S"] and "env" in names
    return names[-1:] == ["eval"] or splits or bool(option and not _SHELLS.isdisjoint(names))


def _name(word: str) -> str:
    return word.rpartition("/")[2]


def _words(command: str) -> Iterator[str]:
    lexer = shlex.shlex(command, posix=True, punctuation_chars="();<>|&\n")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    try:
        yield from list(lexer)
    except ValueError:  # unbalanced quotes, as in a pattern of sed
        yield from re.findall(r"[();<>|&\n]+|[^\s();<>|&'\"]+", command)
