"""Replaces keys, tokens and personal data by placeholders. Equal values get equal placeholders.

Invariant: each text is scrubbed by itself, so that a row keeps its form; names of runs, tasks and states do not change.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from hashlib import sha256
from ipaddress import ip_address
from typing import Any

from agent.learning.export import Row
from agent.learning.export.provenance import not_verbatim
from agent.parsing import loads
from agent.redaction import redactor

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
"""A token starts a word or follows an escape sequence in quoted text. A password in an address has the minimum length
of a secret in the environment (`agent.redaction`), and is not a template variable."""
_BEGINS = r"(?:(?<![\w.\\])|(?<=\\[nrt]))"
"""The start of a word, also after an escape sequence in quoted text."""
_EMAIL = re.compile(
    _BEGINS + r"(?!git@)[A-Za-z0-9][\w.+%-]{0,63}@(?![\w.-]*\bexample\.)[a-z0-9-]+(?:\.[a-z0-9-]+)*"
    r"\.(?:com|org|net|edu|gov|mil|int|info|biz|name|dev|app|[a-z]{2})(?![\w-]|\.\w)"
)
"""Only with a common top-level domain: `a@b.shape` is a matrix product. Domains reserved for examples name nobody
(RFC 2606, section 3)."""
_USER = re.compile(_BEGINS + r"(/home/|/Users/|[A-Za-z]:\\+Users\\+)(\w[\w.-]*)")
_IP = re.compile(
    _BEGINS + r"(?<![:~-])(?<![=<>!~]=)"
    r"(?:(?:\d{1,3}\.){3}\d{1,3}|(?:[0-9a-fA-F]{1,4}:){3}[0-9a-fA-F:]*[0-9a-fA-F](?!:))(?!\w|\.\w)"
)
"""A possible address, but not a version number in a comparison."""
_NAMES = ("trajectory_id", "instance_id", "group", "anchor")
_SCRUBBED = ("source", "repository", "sampling")
"""The keys of a row's provenance that may hold a password or a key."""


def scrubbed(row: Row) -> tuple[Row, bool]:
    """The row without secrets (including those of this process's environment) and personal data, and whether it had
    any. If its text changed, log-probabilities no longer fit its tokens and are removed."""
    origin, hide = row["provenance"], redactor()
    others = {key: value if key in _NAMES else _clean(value, hide) for key, value in row.items() if key != "provenance"}
    kept = others | {"provenance": origin | {key: _clean(origin[key], hide) for key in _SCRUBBED if key in origin}}
    if kept == row:
        return row, False
    if "logprobs" in origin and any(row[key] != value for key, value in others.items()):
        kept["provenance"] = not_verbatim(kept["provenance"])
    return {key: kept[key] for key in row}, True


def clean(value: Any) -> Any:
    """The JSON value without secrets (including those of this process's environment) and personal data."""
    return _clean(value, redactor())


def _clean(value: Any, hide: Callable[[str], str]) -> Any:
    match value:
        case str():
            return _nameless(_SECRET.sub(lambda match: _placeholder("SECRET", match[0]), hide(value)))
        case {"arguments": str(text), **rest}:
            return {**_clean(rest, hide), "arguments": _clean_json(text, hide)}
        case Mapping():
            return {_clean(key, hide): _clean(field, hide) for key, field in value.items()}
        case list() | tuple():
            return [_clean(item, hide) for item in value]
        case _:
            return value


def _nameless(text: str) -> str:
    """The text without e-mail addresses, user names in paths, and public IP addresses."""
    text = _EMAIL.sub(lambda match: _placeholder("EMAIL", match[0]), text)
    text = _USER.sub(lambda match: match[1] + _placeholder("USER", match[2]), text)
    return _IP.sub(lambda match: _placeholder("IP", match[0]) if _is_public(match[0]) else match[0], text)


def _placeholder(kind: str, text: str) -> str:
    return f"<{kind}:{sha256(text.encode(errors='replace')).hexdigest()[:8]}>"


def _is_public(address: str) -> bool:
    try:
        return ip_address(address).is_global
    except ValueError:
        return False


def _clean_json(text: str, hide: Callable[[str], str]) -> str:
    """The arguments of a call, each scrubbed by itself; text that is not JSON is scrubbed as a whole."""
    try:
        arguments = loads(text)
    except ValueError:
        return str(_clean(text, hide))
    kept = _clean(arguments, hide)
    return text if kept == arguments else json.dumps(kept)
