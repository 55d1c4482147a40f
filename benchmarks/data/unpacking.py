"""Unpacking: the files and folders of a tar archive, which somebody else may have made, below one folder.

Python's own filter for this (PEP 706) came with 3.11.4; Debian 12 has 3.11.2.
"""

from __future__ import annotations

import os
import tarfile
from pathlib import Path
from typing import Any

from agent.errors import UsageError

__all__ = ["unpack"]

_FILTERED: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}


def unpack(archive: Path, folder: Path) -> None:
    """Make what is in the archive, compressed or not, below `folder`, as the caller's own.

    Raises:
        UsageError: something in it is neither a file nor a folder, or would come to lie elsewhere. Nothing is made.
    """
    with tarfile.open(archive) as packed:
        for member in packed.getmembers():
            inside = (folder / member.name).resolve().is_relative_to(folder.resolve())
            if not inside or not (member.isfile() or member.isdir()):
                raise UsageError(f"{archive} holds {member.name}, which is no file below its folder")
            member.uid, member.gid, member.uname, member.gname = os.getuid(), os.getgid(), "", ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
        packed.extractall(folder, **_FILTERED)  # noqa: S202  # each member was looked at
