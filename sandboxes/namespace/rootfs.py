"""Makes the root directory of a sandbox without Docker: a small copy of this machine's `/etc`, and empty folders."""

from __future__ import annotations

import hashlib
import os
import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path

from sandboxes.forking.base_state import HOSTS

_LINKED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
PROGRAMS = ("/usr", *(f"/{name}" for name in _LINKED))
"""Directories with the machine's programs, or links into another of them. Some may not exist."""
_DIRECTORIES = {
    "root": 0o700, "home": 0o755, "tmp": 0o1777, "var/tmp": 0o1777, "var/cache": 0o755, "var/lib": 0o755,
    "var/log": 0o755, "run": 0o755, "proc": 0o555, "dev": 0o755, "dev/shm": 0o1777, "opt": 0o755, "srv": 0o755,
    "mnt": 0o755, "etc": 0o755, "usr": 0o755, "workspace": 0o755,
}  # fmt: skip
_SHARED = (
    "alternatives", "bash.bashrc", "ca-certificates", "debian_version", "fonts", "gai.conf", "java*", "ld.so.cache",
    "ld.so.conf", "ld.so.conf.d", "localtime", "lsb-release", "magic", "maven", "mime.types", "os-release", "perl",
    "pki/ca-trust", "pki/tls/certs", "profile", "profile.d", "protocols", "python*", "redhat-release", "services",
    "shells", "ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone",
)  # fmt: skip
_WRITTEN = {
    "passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    "group": "root:x:0:\nnogroup:x:65534:\n",
    "hosts": HOSTS,
    "hostname": "sandbox\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
    "resolv.conf": "",
}


def system_directories() -> tuple[str, ...]:
    """List the real top-level directories with programs: `/usr`, and `/bin`, `/lib` if they are not links into it."""
    return tuple(name for name in PROGRAMS if (path := Path(name)).is_dir() and not path.is_symlink())


def make(store: Path, alone: Sequence[Path] = ()) -> Path:
    """Return the root directory of a store, which is made on first use, completely or not at all.

    `alone`: single links and files of this machine to copy without their neighbours.
    """
    place = store / ("skeleton" + _named(alone))
    if place.exists():
        return place
    building = place.with_name(f"{place.name}.{uuid.uuid4().hex}")
    building.mkdir(parents=True)
    building.chmod(0o755)
    for name, mode in _DIRECTORIES.items():
        directory = building / name
        directory.mkdir(parents=True, exist_ok=True)
        directory.chmod(mode)
    for name in _LINKED:
        if (link := Path("/", name)).is_symlink():
            (building / name).symlink_to(link.readlink())
    for source in (source for pattern in _SHARED for source in Path("/etc").glob(pattern)):
        _copy_into(building, source)
    for name, text in _WRITTEN.items():
        (building / "etc" / name).write_text(text)
    (building / "var" / "run").symlink_to("/run")
    for path in alone:
        _copy_into(building, path)
    try:
        building.rename(place)
    except OSError:
        if not place.exists():
            raise
        shutil.rmtree(building)  # another process was first
    return place


def _named(alone: Sequence[Path]) -> str:
    """Return a suffix that identifies a root directory with these files; empty if there are none."""
    contents = [f"{path} {path.readlink() if path.is_symlink() else path.read_bytes()!r}" for path in alone]
    return f"-{hashlib.blake2b(repr(contents).encode(), digest_size=8).hexdigest()}" if contents else ""


def _copy_into(root: Path, source: Path) -> None:
    """Copy what is at a path of this machine to the same path below `root`, unless something is there."""
    target = root / source.relative_to("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    if not os.path.lexists(target):
        _copy(source, target)


def _copy(source: Path, target: Path) -> None:
    """Copy a file, a link or a directory. Links stay links; unreadable files are left out."""
    if source.is_symlink():
        target.symlink_to(source.readlink())
    elif os.access(source, os.R_OK) and source.is_file():
        shutil.copy2(source, target)
    elif os.access(source, os.R_OK | os.X_OK) and source.is_dir():
        target.mkdir()
        for entry in source.iterdir():
            _copy(entry, target / entry.name)
        shutil.copystat(source, target)
