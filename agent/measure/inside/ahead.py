"""What a template does in advance for all sessions: it imports installed packages and keeps the byte code of other
files."""

from __future__ import annotations

import importlib
import os
import sys
import threading
from importlib.machinery import SourceFileLoader
from os import stat  # tests patch that of `os`
from typing import Any, Dict, Iterator, List, Tuple

from .rewritten import REWRITTEN
from .stops import is_source

COMPILED: Dict[str, Tuple[Tuple[int, ...], Any]] = {}
"""By file, its `identity` in the file system and its code, as found by other processes."""
FOUND: Dict[str, Tuple[Tuple[int, ...], Any]] = {}
"""The same, found by this process. The process does not use it itself: because file times are coarse, a file that it
writes and imports twice may look unchanged."""


def of_workspace(workspace: str, module: Any) -> bool:
    """Whether a module came from the workspace, apart from what is installed there."""
    file = getattr(module, "__file__", None) or ""
    return os.path.isabs(file) and is_source(workspace, os.path.realpath(file))


def installed(workspace: str) -> Iterator[str]:
    """The modules from files outside the workspace, in import order."""
    for name, module in list(sys.modules.items()):
        if name != "__main__" and getattr(module, "__file__", None) and not of_workspace(workspace, module):
            yield name


def import_ahead(names: List[str], workspace: str) -> None:
    """Import these modules, unless a trial in a copy of this process fails, starts threads, or imports the tested
    code."""
    new = [name for name in names if name not in sys.modules]
    trial = os.fork()
    if trial == 0:
        code = 1
        try:
            _import_all(new)
            mine = any(of_workspace(workspace, module) for module in list(sys.modules.values()))
            code = int(mine or threading.active_count() > 1)
        finally:
            os._exit(code)
    if os.waitpid(trial, 0)[1] == 0:
        _import_all(new)


def _import_all(names: List[str]) -> None:
    for name in names:
        importlib.import_module(name)


def keep_compiled(workspace: str) -> None:
    """From now on, skip compiling workspace sources that other processes compiled, unless the file has changed."""
    original: Any = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> Any:
        path = str(loader.path)
        if type(loader) is not SourceFileLoader or not is_source(workspace, path):
            return original(loader, name)
        sys.audit("open", path, "rb", os.O_RDONLY)  # the event that reading it would cause
        found = identity(path)
        known = COMPILED.get(path)
        if known is not None and known[0] == found:
            return known[1]
        code = original(loader, name)
        FOUND[path] = (found, code)
        return code

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]  # pytest's test files have their own loader


def identity(path: str) -> Tuple[int, ...]:
    """Return what every edit of a file changes. Its status change time cannot be set back. Files unpacked together can
    have the same time, so the inode number shows whether a link leads to another one."""
    facts = stat(path)
    return facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns


def packed() -> Dict[str, Any]:
    """Return what is kept, in a form that `marshal` can write, for another process."""
    return {"rewritten": REWRITTEN, "compiled": {**COMPILED, **FOUND}}


def unpack(kept: Dict[str, Any]) -> None:
    """Also keep what another process has `packed`."""
    REWRITTEN.update(kept["rewritten"])
    COMPILED.update(kept["compiled"])
