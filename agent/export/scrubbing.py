"""Scrubbing: keys and tokens that a transcript holds, replaced by placeholders, the same ones by the same.

Law: each text is looked at by itself, so that a row keeps its form; names of runs, tasks and states stay as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

from agent.export import Row
from agent.export.provenance import never_said
from agent.secrets import redactor

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
as one of the environment has to be (`agent.secrets`), and no place to put one in."""
_NAMES = ("trajectory_id", "instance_id", "group", "anchor")
_TOLD = ("source", "repository", "sampling")
"""What may hold a password or a key in a row's provenance."""


def scrubbed(row: Row) -> tuple[Row, bool]:
    """The row without secrets, those of this process's environment included, and whether there were any. The tokens of
    such a row are no longer those that log-probabilities were given for: it has none then."""
    told, hide = row["provenance"], redactor()
    others = {key: value if key in _NAMES else _clean(value, hide) for key, value in row.items() if key != "provenance"}
    kept = others | {"provenance": told | {key: _clean(told[key], hide) for key in _TOLD if key in told}}
    if kept == row:
        return row, False
    if "logprobs" in told and any(row[key] != value for key, value in others.items()):
        kept["provenance"] = never_said(kept["provenance"])
    return {key: kept[key] for key in row}, True


def clean(value: Any) -> Any:
    """The JSON value without secrets, those of this process's environment included."""
    return _clean(value, redactor())


def _clean(value: Any, hide: Callable[[str], str]) -> Any:
    match value:
        case str():
            return _SECRET.sub(
                lambda found: f"<SECRET:{sha256(found[0].encode(errors='replace')).hexdigest()[:8]}>", hide(value)
            )
        case {"arguments": str(text), **rest}:
            return {**_clean(rest, hide), "arguments": _clean_json(text, hide)}
        case Mapping():
            return {_clean(key, hide): _clean(each, hide) for key, each in value.items()}
        case list() | tuple():
            return [_clean(each, hide) for each in value]
        case _:
            return value


def _clean_json(text: str, hide: Callable[[str], str]) -> str:
    """The arguments of a call as text, each by itself; as any text where it is no JSON."""
    try:
        given = json.loads(text)
    except ValueError:
        return str(_clean(text, hide))
    kept = _clean(given, hide)
    return text if kept == given else json.dumps(kept)
