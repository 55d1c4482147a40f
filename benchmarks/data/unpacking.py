"""Unpacks an untrusted tar archive safely below one folder.

Python's own filter for this (PEP 706) came with 3.11.4; Debian 12 has 3.11.2.
"""

from __future__ import annotations

import os
import tarfile
from pathlib import Path
from typing import Any

from agent.errors import UsageError

_FILTERED: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}


def unpack(archive: Path, folder: Path) -> None:
    """Unpack the archive, compressed or not, below `folder`. The caller owns the files.

    Raises:
        UsageError: a member is neither a file nor a folder, or leads out of `folder`. Nothing is unpacked.
    """
    with tarfile.open(archive) as packed:
        for member in packed.getmembers():
            inside = (folder / member.name).resolve().is_relative_to(folder.resolve())
            if not inside or not (member.isfile() or member.isdir()):
                raise UsageError(f"{archive} holds {member.name}, which is not a file below its folder")
            member.uid, member.gid, member.uname, member.gname = os.getuid(), os.getgid(), "", ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
        packed.extractall(folder, **_FILTERED)  # noqa: S202  # each member was checked
