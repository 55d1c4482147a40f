"""What a template does ahead of every session: imports what is installed, and keeps the byte code of what is not, with
pytest's assertions where it is a test."""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
import threading
from importlib.machinery import SourceFileLoader
from os import stat  # tests patch that of `os`
from typing import Any, Dict, Iterator, List, Tuple

from _pytest.assertion import rewrite

from .stops import is_source

REWRITTEN: Dict[str, Tuple[str, Any]] = {}
"""Per file the digest of its text, and its code with pytest's assertions."""
COMPILED: Dict[str, Tuple[Tuple[int, ...], Any]] = {}
"""Per file what the file system says of it (`identity`), and its code: what other processes found."""
FOUND: Dict[str, Tuple[Tuple[int, ...], Any]] = {}
"""The same, found by this process. It does not go by that itself: what it writes and imports twice may be as long and
as old as before, since the clock of files has ticks."""


def of_workspace(workspace: str, module: Any) -> bool:
    """Whether a module came from the workspace; what is installed in it did not."""
    file = getattr(module, "__file__", None) or ""
    return os.path.isabs(file) and is_source(workspace, os.path.realpath(file))


def installed(workspace: str) -> Iterator[str]:
    """The modules that came from files outside the workspace, in the order of importing."""
    for name, module in list(sys.modules.items()):
        if name != "__main__" and getattr(module, "__file__", None) and not of_workspace(workspace, module):
            yield name


def import_ahead(names: List[str], workspace: str) -> None:
    """Import them, unless a copy of this process that tries it fails, starts something, or imports what is tested."""
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


def keep_rewritten() -> None:
    """From now on no text is rewritten twice."""
    original: Any = getattr(rewrite, "_rewrite_test", None)

    def rewritten(path: Any, config: Any) -> Tuple[Any, Any]:
        """The code, and before it what only a writer of byte code would need."""
        digest = hashlib.blake2b(path.read_bytes()).hexdigest()
        known = REWRITTEN.get(str(path))
        if known is not None and known[0] == digest:
            return None, known[1]
        facts, code = original(path, config)
        REWRITTEN[str(path)] = (digest, code)
        return facts, code

    if original is not None and sys.dont_write_bytecode:
        setattr(rewrite, "_rewrite_test", rewritten)  # noqa: B010  # it is nobody's but pytest's


def keep_compiled(workspace: str) -> None:
    """From now on no source of the workspace is compiled that other processes have compiled, unless it is another file
    by now."""
    original: Any = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> Any:
        path = str(loader.path)
        if type(loader) is not SourceFileLoader or not is_source(workspace, path):
            return original(loader, name)
        sys.audit("open", path, "rb", os.O_RDONLY)  # what it would be read for
        found = identity(path)
        known = COMPILED.get(path)
        if known is not None and known[0] == found:
            return known[1]
        code = original(loader, name)
        FOUND[path] = (found, code)
        return code

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]  # pytest's tests have a loader of their own


def identity(path: str) -> Tuple[int, ...]:
    """What no edit leaves as it was: nobody can put back the time at which a file's status changed. Files that were
    unpacked together have it in common, so a link to another of them tells by its number."""
    facts = stat(path)
    return facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns


def packed() -> Dict[str, Any]:
    """What is kept, for another process; `marshal` can say it."""
    return {"rewritten": REWRITTEN, "compiled": {**COMPILED, **FOUND}}


def unpack(kept: Dict[str, Any]) -> None:
    """Keep what another process kept."""
    REWRITTEN.update(kept["rewritten"])
    COMPILED.update(kept["compiled"])
