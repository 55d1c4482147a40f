"""The Pythons of this machine that tests may run with, and what each of them needs to be seen.

An installation that the user names is shown whole. A home directory and its `.local` hold other things as well: of
those only the folders of a Python are shown, where there is one; a link on the way to one is shown alone. What files of
the workspace name is a stranger's choice: only where a Python is installed is it shown, and only that Python's folders.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

_OWN = ("bin", "include", "lib", "lib64")
"""The folders of a Python in a prefix that it shares."""
_WHOLE = (*_OWN, "share", "ssl", "openssl")
"""Those of a Python in a prefix of its own, as conda and pyenv make it. Settings and other environments lie beside."""


def pythons(workspace: Path, env: Mapping[str, str]) -> tuple[Path, ...]:
    """The one that `VIRTUAL_ENV` names among the commands' variables, if it is on this machine; else the active
    environment's or the workspace's own. Then our own."""
    named = env.get("VIRTUAL_ENV", "")
    active = named if named and Path(named, "bin/python").exists() else os.environ.get("VIRTUAL_ENV", "")
    found = (Path(active, "bin/python") if active else workspace / ".venv/bin/python", Path(sys.executable))
    return tuple(dict.fromkeys(program for program in found if program.exists()))


def folders(programs: Iterable[Path], workspace: Path) -> Iterator[str]:
    """The directories that hold the installations of programs, and of all that their links lead to."""
    named = {program for program in programs if _is_in(program.parent, workspace)}
    for prefix in {name.parent.parent for name in _names(set(programs) - named)}:
        if _is_installation(prefix):
            yield from _parts(prefix, _OWN) if _is_shared(prefix) else [str(prefix)]
    for prefix in {name.parent.parent for name in _names(named)}:
        if _holds_library(prefix) or (_is_installation(prefix) and _is_in(prefix, workspace)):
            yield from _parts(prefix, _OWN if _is_shared(prefix) else _WHOLE)


def _parts(prefix: Path, names: Iterable[str]) -> Iterator[str]:
    """The folders of those names, unless they lead elsewhere."""
    for part in (prefix / name for name in names):
        if part.is_dir() and _is_in(part, prefix):
            yield str(part)


def links(programs: Iterable[Path]) -> Iterator[Path]:
    """What is needed beside the folders: links that lead to programs, and the file that makes a home an environment."""
    for name in _names(programs):
        if name.is_symlink():
            yield name
        if (settings := name.parent.parent / "pyvenv.cfg").is_file():
            yield settings


def search_path(programs: Iterable[Path], workspace: Path, workdir: str) -> Iterator[str]:
    """Where commands are looked for. A workspace's own programs are where the workspace is inside."""
    for program in programs:
        folder = program.parent
        yield str(Path(workdir) / folder.relative_to(workspace)) if folder.is_relative_to(workspace) else str(folder)
    yield from dict.fromkeys(f"{prefix}/bin" for prefix in (sys.base_prefix, "/usr/local", "/usr", ""))


def _names(programs: Iterable[Path]) -> Iterator[Path]:
    """Programs by every name that leads to them: their links, and of an environment the Python that it was made of."""
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
    """Where the Python lies that an environment was made of: what the first line says that says so, as for Python."""
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
