"""How far an action can reach.

A shell command counts as reaching the sandbox only, unless it is recognisably made to change something outside of it.
Recognising is a courtesy, not a wall: what holds is a sandbox without a network.
"""

from __future__ import annotations

import re
import shlex
from typing import assert_never

from agent.actions.types import Action, Edit, Effect, RunTests, Search, Shell, Submit, View, Write

__all__ = ["effect"]

_OPTIONS = r"(?: -\S+(?: [^-\s]\S*)??)*?"
"""Options between a program and its subcommand, each with or without a value (`git -C dir push`)."""
_ANY = r"(?: \S+)*?"
_BEFORE = (
    r"^(?:\w+=\S* |(?:then|do|else|if|while|until|!|\{|sudo|env|nohup|time|command|exec|xargs|nice|setsid)(?: -\S+)* "
    r"|timeout(?: -\S+)* \S+ )*(?:\S*/)?"
)
"""What may stand before the program's name: assignments, keywords, programs that run another."""
_IRREVERSIBLE = tuple(
    re.compile(rf"{_BEFORE}(?:{pattern})(?= |$)")
    for pattern in (
        rf"git{_OPTIONS} (?:push|send-email)",
        rf"gh{_OPTIONS} (?:pr|issue|release|repo|gist|workflow|secret) (?!list|view|status|diff|checks|clone)\S+",
        rf"(?:npm|yarn|pnpm|bun|cargo|poetry|uv|hatch|flit|pdm|vsce){_OPTIONS} publish",
        rf"(?:python\S* -m )?twine{_OPTIONS} upload",
        rf"gem{_OPTIONS} push",
        rf"(?:docker|podman|buildah|helm){_OPTIONS} push",
        rf"(?:aws|gsutil|rclone){_ANY} (?:cp|mv|rm|sync|move|delete|put-\S+|delete-\S+|create-\S+)",
        rf"kubectl{_OPTIONS} (?:apply|create|delete|patch|replace|scale)",
        rf"terraform{_OPTIONS} (?:apply|destroy|import)",
        rf"curl{_ANY} (?:-[a-zA-Z]*[dFT]\S*|--(?:data|form|upload-file|json)\S*)",
        rf"curl{_ANY} (?:-[a-zA-Z]*X ?|--request[ =])(?!GET|HEAD|OPTIONS)\w+",
        rf"wget{_ANY} --(?:(?:post|body)-\S+|method[ =](?!GET|HEAD|OPTIONS)\w+)",
        r"(?:ssh|scp|sftp|sendmail|mail|mutt) \S+.*",
        rf"rsync{_ANY} [^/\s]+:\S*",
        rf"rm{_ANY} (?:/|/\*|~|~/|\$HOME/?)",
        r"(?:mkfs\S*|shutdown|reboot|poweroff|halt).*",
        rf"dd{_ANY} of=/dev/\S+",
    )
)
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "eval"})


def effect(action: Action) -> Effect:
    """The furthest that the action is meant to reach."""
    match action:
        case View() | Search() | RunTests() | Submit():
            return Effect.READ_ONLY
        case Edit() | Write():
            return Effect.WORKSPACE
        case Shell():
            return Effect.IRREVERSIBLE if _irreversible(action.command) else Effect.MACHINE
        case _:
            assert_never(action)


def _irreversible(command: str) -> bool:
    return any(pattern.search(simple) for simple in _simple_commands(command) for pattern in _IRREVERSIBLE)


def _simple_commands(command: str) -> list[str]:
    """The commands between the operators of a shell command, quotes taken off, those for another shell opened up."""
    found: list[list[str]] = [[]]
    for word in _words(command):
        if word and not word.strip("();<>|&\n"):
            found.append([])
        elif " " in word and any(w.rpartition("/")[2] in _SHELLS for w in found[-1]):
            found[-1:] = [*([inner] for inner in _simple_commands(word)), found[-1]]
        else:
            found[-1].append(word.replace(" ", "_"))
    return [" ".join(words) for words in found if words]


def _words(command: str) -> list[str]:
    lexer = shlex.shlex(command.replace("\\\n", " "), posix=True, punctuation_chars="();<>|&\n")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    try:
        return list(lexer)
    except ValueError:  # unbalanced quotes, as in the body of a here-document
        return re.findall(r"[();<>|&\n]+|[^\s();<>|&'\"]+", command)
