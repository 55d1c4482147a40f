"""What a template does ahead of every session: imports what is installed, keeps tests as pytest has rewritten them."""

from __future__ import annotations

import base64
import hashlib
import importlib
import marshal
import os
import sys
import threading
from typing import Any, Dict, Iterator, List, Tuple

from _pytest.assertion import rewrite

from .stops import is_source

REWRITTEN: Dict[str, Tuple[str, Any]] = {}
"""Per file the digest of its text, and its code with pytest's assertions."""


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


def packed() -> Dict[str, List[str]]:
    """What is kept, for another process."""
    return {
        path: [digest, base64.b64encode(marshal.dumps(code)).decode()] for path, (digest, code) in REWRITTEN.items()
    }


def unpack(kept: Dict[str, List[str]]) -> None:
    """Keep what another process kept."""
    for path, (digest, code) in kept.items():
        REWRITTEN[path] = (digest, marshal.loads(base64.b64decode(code)))
