"""Finds the Pythons of this machine that tests may run with, and the files of each that a sandbox must show.

An installation that the user names is shown completely. If it is in a home directory or its `.local`, only the Python's
own folders are shown; a link on the way to a Python is shown without its neighbours. Paths named by files of the
workspace are not trusted: they are shown only if a Python is installed there, and only that Python's folders.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

_OWN = ("bin", "include", "lib", "lib64")
"""The folders of a Python in a prefix that it shares with other things."""
_WHOLE = (*_OWN, "share", "ssl", "openssl")
"""The folders of a Python in its own prefix, as conda and pyenv make it. Settings and other environments lie beside."""


def pythons(workspace: Path, env: Mapping[str, str]) -> tuple[Path, ...]:
    """List the Pythons to show: first that of the `VIRTUAL_ENV` in the commands' variables, if it exists here, or else
    of the active environment or the workspace; then the Python that runs this process."""
    named = env.get("VIRTUAL_ENV", "")
    active = named if named and Path(named, "bin/python").exists() else os.environ.get("VIRTUAL_ENV", "")
    found = (Path(active, "bin/python") if active else workspace / ".venv/bin/python", Path(sys.executable))
    return tuple(dict.fromkeys(program for program in found if program.exists()))


def folders(programs: Iterable[Path], workspace: Path) -> Iterator[str]:
    """Yield the directories with the installations of programs, and of everything that their links lead to."""
    named = {program for program in programs if _is_in(program.parent, workspace)}
    for prefix in {name.parent.parent for name in _names(set(programs) - named)}:
        if _is_installation(prefix):
            yield from _parts(prefix, _OWN) if _is_shared(prefix) else [str(prefix)]
    for prefix in {name.parent.parent for name in _names(named)}:
        if _holds_library(prefix) or (_is_installation(prefix) and _is_in(prefix, workspace)):
            yield from _parts(prefix, _OWN if _is_shared(prefix) else _WHOLE)


def _parts(prefix: Path, names: Iterable[str]) -> Iterator[str]:
    """Yield the folders with these names in a prefix, unless they are links to another place."""
    for part in (prefix / name for name in names):
        if part.is_dir() and _is_in(part, prefix):
            yield str(part)


def links(programs: Iterable[Path]) -> Iterator[Path]:
    """Yield what is needed besides the folders: links to programs, and the `pyvenv.cfg` of each environment."""
    for name in _names(programs):
        if name.is_symlink():
            yield name
        if (settings := name.parent.parent / "pyvenv.cfg").is_file():
            yield settings


def search_path(programs: Iterable[Path], workspace: Path, workdir: str) -> Iterator[str]:
    """Yield the folders of PATH inside the sandbox; `workdir` is the workspace's path there."""
    for program in programs:
        folder = program.parent
        yield str(Path(workdir) / folder.relative_to(workspace)) if folder.is_relative_to(workspace) else str(folder)
    yield from dict.fromkeys(f"{prefix}/bin" for prefix in (sys.base_prefix, "/usr/local", "/usr", ""))


def _names(programs: Iterable[Path]) -> Iterator[Path]:
    """Yield programs and everything that they lead to: the targets of links, and the base Pythons of environments."""
    pending, seen = list(programs), set[Path]()
    while pending:
        if (program := pending.pop()) in seen:
            continue
        seen.add(program)
        yield program
        if program.is_symlink():
            pending.append(Path(os.path.normpath(program.parent / program.readlink())))
        pending += [Path(home, program.name) for home in _home(program.parent.parent / "pyvenv.cfg")]


def _home(settings: Path) -> Iterator[str]:
    """Yield the folder of the Python that an environment was made from. As in Python, the first `home` line counts."""
    for line in settings.read_text(errors="replace").splitlines() if settings.is_file() else ():
        key, _, value = line.partition("=")
        if key.strip().lower() == "home":
            if value.strip().startswith("/"):
                yield os.path.normpath(value.strip())
            return


def _is_installation(prefix: Path) -> bool:
    return (prefix / "pyvenv.cfg").is_file() or _holds_library(prefix)


def _holds_library(prefix: Path) -> bool:
    return any(prefix.glob("lib*/py*/os.py"))


def _is_in(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


def _is_shared(prefix: Path) -> bool:
    home, places = Path.home(), (prefix, prefix.resolve())
    homes = (home, home.resolve())
    return any(place.name == ".local" or any(each.is_relative_to(place) for each in homes) for place in places)
