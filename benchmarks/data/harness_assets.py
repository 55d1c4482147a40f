"""Fetches assets: files of a test patch that its text cannot hold, such as reference pictures for a drawing.
Rows of SWE-bench Multimodal give their addresses.

Invariant: the machine that grades fetches them, never the sandbox. If one is missing there is no verdict, as tests
would fail without it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from http.client import HTTPException, HTTPResponse, IncompleteRead
from pathlib import PurePosixPath
from shlex import quote
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

from benchmarks.data.harness_logs import START
from benchmarks.data.instances import InstanceBroken
from sandboxes import Sandbox

FOLDER = "/image_assets"
BYTES = 64 << 20
"""The limit for one file."""
ALL_BYTES = 512 << 20
"""The limit for all files of a row together."""
TIMEOUT_S = 60
"""Seconds for which a server may be silent."""
ALL_S = 1800
"""The time limit for all files of a row together, in seconds."""
_PIECE = 1 << 20


def declared(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The assets of a row: their paths in the repository and their addresses (SWE-bench 5.0.2, `_stage_image_assets`).

    Raises:
        ValueError, AttributeError: the column `image_assets` has another form.
    """
    column = row.get("image_assets") or {}
    assets = json.loads(column) if isinstance(column, str) else column
    for name in ("test_patch", "patch"):
        for asset in assets.get(name) or ():
            if isinstance(asset, Mapping) and asset.get("path"):
                yield str(asset["path"]), str(asset.get("url") or "")


def put_in(box: Sandbox, assets: Iterable[tuple[str, str]], script: str) -> str:
    """Write assets into a sandbox. Returns the script with the commands that copy them to their paths before the tests
    run.

    Raises:
        InstanceBroken: an asset cannot be fetched.
    """
    commands, left, until = [], ALL_BYTES, time.monotonic() + ALL_S
    for number, (path, address) in enumerate(assets):
        kept = f"{FOLDER}/{number}"
        data = _fetched(path, address, min(BYTES, left), until)
        left -= len(data)
        box.write(kept, data)
        commands.append(f"mkdir -p {quote(str(PurePosixPath(path).parent))} && cp {kept} {quote(path)}")
    lines = script.split("\n")
    begin = next((number for number, line in enumerate(lines) if START in line), len(lines))
    return "\n".join([*lines[:begin], *commands, *lines[begin:]])


def _fetched(path: str, address: str, limit: int, until: float) -> bytes:
    if urlsplit(address).scheme not in ("http", "https"):
        raise InstanceBroken(f"the row has no usable address for {path}, only {address[:200]!r}")
    try:
        with urlopen(address, timeout=TIMEOUT_S) as answer:  # noqa: S310  # its scheme was checked
            data = b"".join(_pieces(answer, limit, until))
    except (OSError, HTTPException, ValueError) as error:
        raise InstanceBroken(f"cannot fetch {path}, which the tests need, from {address}: {error}") from error
    if len(data) > limit:
        raise InstanceBroken(
            f"{path}, which the tests need, is too large at {address}: the limit is {BYTES >> 20} MiB for a file and "
            f"{ALL_BYTES >> 20} MiB for all files of an instance"
        )
    return data


def _pieces(answer: HTTPResponse, limit: int, until: float) -> Iterator[bytes]:
    """Yield the pieces of an answer, up to one byte more than the limit.

    Raises:
        TimeoutError: the time limit is reached.
        IncompleteRead: the answer breaks off.
    """
    left = limit + 1
    while left and (piece := answer.read1(min(left, _PIECE))):
        yield piece
        left -= len(piece)
        if time.monotonic() > until:
            raise TimeoutError(f"the files of the row take longer than {ALL_S} s")
    if left and answer.length:
        raise IncompleteRead(b"", answer.length)
