"""Scrubbing: keys, tokens and what names a person, replaced by placeholders, the same ones by the same.

Law: each text is looked at by itself, so that a row keeps its form; names of runs, tasks and states stay as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from hashlib import sha256
from ipaddress import ip_address
from typing import Any

from agent.learning.export import Row
from agent.learning.export.provenance import never_said
from agent.parsing import loads
from agent.redaction import redactor

__all__ = ["clean", "scrubbed"]

_SECRET = re.compile(
    r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))(?:"
    r"A[KS]IA[0-9A-Z]{16}|AIza[A-Za-z0-9_-]{35}|[sr]k_live_[A-Za-z0-9]{16,}|npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{50,}"
    r"|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{20,}"
    r"|sk-(?:ant-|proj-|or-)?[A-Za-z0-9_-]{20,}|hf_[A-Za-z0-9]{20,}|xox[abprs]-[A-Za-z0-9-]{10,}"
    r"|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"
    r")|(?i:authorization\W{1,6}(?:bearer|basic|token)\s+)[A-Za-z0-9._~+/-]{8,}=*"
    r"|(?i:aws_secret_access_key\W{1,6})[A-Za-z0-9/+]{40}"
    r"|(?<=://)[^\s/:@{}$<>%'\"*]*:[^\s/:@{}$<>%'\"*]{8,}(?=@)"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----",
    re.DOTALL,
)
"""A token begins a word, or follows an escape of a text that is quoted in another. A password in an address is as long
as one of the environment has to be (`agent.redaction`), and no place to put one in."""
_BEGINS = r"(?:(?<![\w.\\])|(?<=\\[nrt]))"
"""A word does, or what follows an escape of a text that is quoted in another."""
_EMAIL = re.compile(
    _BEGINS + r"(?!git@)[A-Za-z0-9][\w.+%-]{0,63}@(?![\w.-]*\bexample\.)[a-z0-9-]+(?:\.[a-z0-9-]+)*"
    r"\.(?:com|org|net|edu|gov|mil|int|info|biz|name|dev|app|[a-z]{2})(?![\w-]|\.\w)"
)
"""Only with an end that is common: `a@b.shape` is a product of matrices. Names that are set aside for examples name
nobody (RFC 2606, section 3)."""
_USER = re.compile(_BEGINS + r"(/home/|/Users/|[A-Za-z]:\\+Users\\+)(\w[\w.-]*)")
_IP = re.compile(
    _BEGINS + r"(?<![:~-])(?<![=<>!~]=)"
    r"(?:(?:\d{1,3}\.){3}\d{1,3}|(?:[0-9a-fA-F]{1,4}:){3}[0-9a-fA-F:]*[0-9a-fA-F](?!:))(?!\w|\.\w)"
)
"""What may be an address, and is not a version that is compared with."""
_NAMES = ("trajectory_id", "instance_id", "group", "anchor")
_TOLD = ("source", "repository", "sampling")
"""What may hold a password or a key in a row's provenance."""


def scrubbed(row: Row) -> tuple[Row, bool]:
    """The row without secrets, those of this process's environment included, and what names a person, and whether
    there was any of it. The tokens of such a row are no longer those that log-probabilities were given for: it has none
    then."""
    told, hide = row["provenance"], redactor()
    others = {key: value if key in _NAMES else _clean(value, hide) for key, value in row.items() if key != "provenance"}
    kept = others | {"provenance": told | {key: _clean(told[key], hide) for key in _TOLD if key in told}}
    if kept == row:
        return row, False
    if "logprobs" in told and any(row[key] != value for key, value in others.items()):
        kept["provenance"] = never_said(kept["provenance"])
    return {key: kept[key] for key in row}, True


def clean(value: Any) -> Any:
    """The JSON value without secrets, those of this process's environment included, and what names a person."""
    return _clean(value, redactor())


def _clean(value: Any, hide: Callable[[str], str]) -> Any:
    match value:
        case str():
            return _nameless(_SECRET.sub(lambda found: _placeholder("SECRET", found[0]), hide(value)))
        case {"arguments": str(text), **rest}:
            return {**_clean(rest, hide), "arguments": _clean_json(text, hide)}
        case Mapping():
            return {_clean(key, hide): _clean(each, hide) for key, each in value.items()}
        case list() | tuple():
            return [_clean(each, hide) for each in value]
        case _:
            return value


def _nameless(text: str) -> str:
    """The text without e-mail addresses, the names of users in paths, and machines' addresses in the internet."""
    text = _EMAIL.sub(lambda found: _placeholder("EMAIL", found[0]), text)
    text = _USER.sub(lambda found: found[1] + _placeholder("USER", found[2]), text)
    return _IP.sub(lambda found: _placeholder("IP", found[0]) if _is_public(found[0]) else found[0], text)


def _placeholder(kind: str, text: str) -> str:
    return f"<{kind}:{sha256(text.encode(errors='replace')).hexdigest()[:8]}>"


def _is_public(address: str) -> bool:
    try:
        return ip_address(address).is_global
    except ValueError:
        return False


def _clean_json(text: str, hide: Callable[[str], str]) -> str:
    """The arguments of a call as text, each by itself; as any text where it is no JSON."""
    try:
        given = loads(text)
    except ValueError:
        return str(_clean(text, hide))
    kept = _clean(given, hide)
    return text if kept == given else json.dumps(kept)
