"""Assets: files of a test patch that its text cannot carry, such as the pictures that a drawing is compared with. Rows
of SWE-bench Multimodal say where they are to be had.

Law: they are fetched by the machine that grades, never from inside the sandbox, and without one of them there is no
verdict: tests would fail for want of it.
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

from benchmarks.data.instances import InstanceBroken
from sandboxes import Sandbox

__all__ = ["declared", "put_in"]

FOLDER = "/image_assets"
BYTES = 64 << 20
"""Of one file."""
ALL_BYTES = 512 << 20
"""Of all that a row names."""
TIMEOUT_S = 60
"""Of silence."""
ALL_S = 1800
_PIECE = 1 << 20
START = ">>>>> Start Test Output"


def declared(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The paths in the repository and the addresses, where a row has any (SWE-bench 5.0.2, `_stage_image_assets`).

    Raises:
        ValueError, AttributeError: what the row has is not of that form.
    """
    said = row.get("image_assets") or {}
    found = json.loads(said) if isinstance(said, str) else said
    for column in ("test_patch", "patch"):
        for each in found.get(column) or ():
            if isinstance(each, Mapping) and each.get("path"):
                yield str(each["path"]), str(each.get("url") or "")


def put_in(box: Sandbox, wanted: Iterable[tuple[str, str]], script: str) -> str:
    """Have assets in a sandbox; the script that puts them where they belong before the tests run.

    Raises:
        InstanceBroken: one is not to be had.
    """
    commands, left, until = [], ALL_BYTES, time.monotonic() + ALL_S
    for number, (path, address) in enumerate(wanted):
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
        raise InstanceBroken(f"the row says of {path} no address that it can be had from: {address[:200]!r}")
    try:
        with urlopen(address, timeout=TIMEOUT_S) as answer:  # noqa: S310  # its scheme was looked at
            data = b"".join(_pieces(answer, limit, until))
    except (OSError, HTTPException, ValueError) as error:
        raise InstanceBroken(f"{path}, which the tests need, cannot be had from {address}: {error}") from error
    if len(data) > limit:
        raise InstanceBroken(
            f"{path}, which the tests need, is too large at {address}: a file may have {BYTES >> 20} MiB, all of an "
            f"instance {ALL_BYTES >> 20} MiB"
        )
    return data


def _pieces(answer: HTTPResponse, limit: int, until: float) -> Iterator[bytes]:
    """What comes in time, and no more than a byte too many. A file that breaks off is none."""
    left = limit + 1
    while left and (piece := answer.read1(min(left, _PIECE))):
        yield piece
        left -= len(piece)
        if time.monotonic() > until:
            raise TimeoutError(f"the files of the row take longer than {ALL_S} s")
    if left and answer.length:
        raise IncompleteRead(b"", answer.length)
