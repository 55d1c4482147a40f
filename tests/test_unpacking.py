"""Archives that somebody else made."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from agent.errors import UsageError
from benchmarks.data.unpacking import unpack


def packed(place: Path, *members: tarfile.TarInfo) -> Path:
    with tarfile.open(place / "packed.tar.gz", "w:gz") as archive:
        for member in members:
            member.size = 2 if member.isfile() else 0
            archive.addfile(member, io.BytesIO(b"x\n"))
    return place / "packed.tar.gz"


def member(name: str, kind: bytes = tarfile.REGTYPE, to: str = "") -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    found.type, found.linkname, found.mode, found.uid = kind, to, 0o755, 1234
    return found


def test_files_and_folders_are_made_where_they_belong(tmp_path: Path) -> None:
    unpack(packed(tmp_path, member("a", tarfile.DIRTYPE), member("a/b.py"), member("a/../c")), tmp_path / "out")
    assert {path.stat().st_uid for path in (tmp_path / "out").rglob("*")} == {os.getuid()}
    assert sorted(str(p.relative_to(tmp_path / "out")) for p in (tmp_path / "out").rglob("*")) == ["a", "a/b.py", "c"]


@pytest.mark.parametrize(
    "bad",
    [member("../b"), member("/etc/b"), member("link", tarfile.SYMTYPE, "/etc"), member("pipe", tarfile.FIFOTYPE)],
    ids=lambda bad: bad.name,
)
def test_nothing_is_made_of_an_archive_that_leads_elsewhere(tmp_path: Path, bad: tarfile.TarInfo) -> None:
    archive = packed(tmp_path, member("good"), bad)
    refused = f"packed.tar.gz holds {bad.name}, which is not a file or folder below its folder"
    with pytest.raises(UsageError, match=refused):
        unpack(archive, tmp_path / "out")
    assert not (tmp_path / "out").exists()
