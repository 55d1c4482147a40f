"""GitHub: reads an issue by its number, and writes a step's outputs and summary.

Invariant: untrusted text never becomes markup or the name of an output. Outputs are written between unpredictable
delimiters, and the fence around a patch is longer than any fence in it.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent.errors import ModelError, UsageError

ISSUE = re.compile(r"([\w.-]+)/([\w.-]+)#(\d+)")
"""A reference such as `owner/repository#number`."""
API = "https://api.github.com"
TIMEOUT_S = 30.0
PATCH_CHARACTERS = 60_000
"""How much of a patch a summary shows; GitHub allows one megabyte for all summaries of a step."""


def fetch_issue(reference: str) -> str:
    """Return the title and text of the issue `owner/repository#number`. Uses `$GITHUB_TOKEN` and `$GITHUB_API_URL` if
    they are set. Comments are left out, because anybody can add one later.

    Raises:
        agent.errors.UsageError: the reference has another form, or there is no such issue.
        agent.errors.ModelError: GitHub cannot be reached or refuses the request.
    """
    import httpx

    match = ISSUE.fullmatch(reference)
    if match is None:
        raise UsageError(f"{reference} is not an issue on GitHub: write owner/repository#number")
    url = f"{os.environ.get('GITHUB_API_URL', API).rstrip('/')}/repos/{match[1]}/{match[2]}/issues/{match[3]}"
    try:
        answer = httpx.get(url, headers=_headers(), timeout=TIMEOUT_S, follow_redirects=True)
    except httpx.HTTPError as error:
        raise ModelError(f"cannot read the issue {reference}: {error}; save its text and give the file") from error
    if answer.status_code in (404, 410):
        raise UsageError(f"there is no issue {reference}, or it is private: set a GITHUB_TOKEN that may read it")
    if answer.status_code != 200:
        raise ModelError(f"cannot read the issue {reference}: GitHub says {answer.status_code} {_reason(answer)}")
    issue = answer.json()
    return f"{issue.get('title') or ''}\n\n{issue.get('body') or ''}".strip()


def write_outputs(file: Path, values: Mapping[str, object]) -> None:
    """Append outputs of a step to `file` (`$GITHUB_OUTPUT`), each between random delimiters."""
    with file.open("a", encoding="utf-8") as out:
        for name, value in values.items():
            end = f"ramify-{secrets.token_hex(16)}"
            out.write(f"{name}<<{end}\n{'' if value is None else value}\n{end}\n")


def summary(facts: Mapping[str, Any], text: str, patch: bytes) -> str:
    """Return a summary of a run in Markdown, from the object that `--json` prints, the text summary and the patch."""
    shown = patch.decode(errors="replace")
    left_out = f"\n… {len(shown) - PATCH_CHARACTERS} characters more\n" if len(shown) > PATCH_CHARACTERS else ""
    parts = [f"### Ramify: {str(facts['status']).replace('_', ' ')}", _fenced(text, "text")]
    if patch:
        parts.append(
            f"<details><summary>Patch</summary>\n\n{_fenced(shown[:PATCH_CHARACTERS] + left_out, 'diff')}\n\n</details>"
        )
    return "\n\n".join(parts) + "\n"


def failed(reason: str) -> str:
    """Return an error in Markdown, for a run that has no result."""
    return f"### Ramify: error\n\n{_fenced(reason, 'text')}\n"


def _fenced(text: str, language: str) -> str:
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}{language}\n{text.rstrip()}\n{ticks}"


def _headers() -> dict[str, str]:
    token = os.environ.get("GITHUB_TOKEN")
    headers = {"Accept": "application/vnd.github+json", "User-Agent": "ramify"}
    return headers | ({"Authorization": f"Bearer {token}"} if token else {})


def _reason(answer: Any) -> str:
    try:
        return str(answer.json().get("message", ""))[:200]
    except ValueError:
        return ""
