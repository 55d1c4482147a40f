"""Makes the root directory of a sandbox without Docker: a small copy of this machine's `/etc`, and empty folders."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from sandboxes.forking.base_state import HOSTS

_LINKED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
UNUSED_S = 86_400.0
"""How long a copy of `/etc` is kept after its last use."""
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
    """Real top-level directories with programs: `/usr`, and `/bin`, `/lib` if they are not links into it."""
    return tuple(name for name in PROGRAMS if (path := Path(name)).is_dir() and not path.is_symlink())


def make(store: Path, cache: Path, alone: Sequence[Path] = ()) -> Path:
    """Return the root directory of a store, made on first use. It appears complete or not at all.

    `cache`: where a copy of `/etc` is kept whose files all stores share. `alone`: single links and files of this
    machine to copy without their neighbours.
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
    _link(_copy_of_etc(cache), building / "etc")
    for name, text in _WRITTEN.items():
        (building / "etc" / name).write_text(text)
    (building / "var" / "run").symlink_to("/run")
    for path in alone:
        target = building / path.relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if not os.path.lexists(target):
            _copy(path, target)
    _rename(building, place)
    return place


def _named(alone: Sequence[Path]) -> str:
    """A suffix that identifies a root directory with `alone`; empty without."""
    contents = [f"{path} {path.readlink() if path.is_symlink() else path.read_bytes()!r}" for path in alone]
    return f"-{hashlib.blake2b(repr(contents).encode(), digest_size=8).hexdigest()}" if contents else ""


def _copy_of_etc(cache: Path) -> Path:
    """A copy of what sandboxes see of this machine's `/etc` as it is now. Copies that nobody used for a day are
    removed: stores have links to their files."""
    sources = [source for pattern in _SHARED for source in sorted(Path("/etc").glob(pattern))]
    place = cache / hashlib.blake2b(repr([*_facts(sources)]).encode(), digest_size=8).hexdigest()
    if place.exists():
        os.utime(place)
        return place
    building = place.with_name(f"{place.name}.{uuid.uuid4().hex}")
    building.mkdir(parents=True)
    for source in sources:
        target = building / source.relative_to("/etc")
        target.parent.mkdir(parents=True, exist_ok=True)
        _copy(source, target)
    _rename(building, place)
    for other in cache.iterdir():
        with suppress(FileNotFoundError):  # another process was first
            if other.stat().st_mtime < time.time() - UNUSED_S:
                shutil.rmtree(other, ignore_errors=True)
    return place


def _facts(paths: Iterable[Path]) -> Iterator[tuple[object, ...]]:
    """What changes when the files at or below the paths do."""
    for path in paths:
        facts = path.lstat()
        yield str(path), facts.st_mode, facts.st_size, facts.st_mtime_ns, path.readlink() if path.is_symlink() else ""
        if stat.S_ISDIR(facts.st_mode) and os.access(path, os.R_OK | os.X_OK):
            yield from _facts(sorted(path.iterdir()))


def _link(source: Path, target: Path) -> None:
    """Make a directory, or complete it, with hard links to the files and links of another; copies where the file system
    has none between the two."""
    target.mkdir(exist_ok=True)
    with os.scandir(source) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                _link(Path(entry.path), target / entry.name)
                continue
            try:
                os.link(entry.path, target / entry.name, follow_symlinks=False)
            except OSError:
                _copy(Path(entry.path), target / entry.name)
    shutil.copystat(source, target)


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


def _rename(building: Path, place: Path) -> None:
    try:
        building.rename(place)
    except OSError:
        if not place.exists():
            raise
        shutil.rmtree(building)  # another process was first
