"""Keep the code of test files with pytest's rewritten assertions, so that each file is rewritten only once. For a long
file, rewriting takes longer than its tests.

Stdlib and pytest >= 6 only, Python 3.8 and later.
PYTEST_DONT_REWRITE
"""

from __future__ import annotations

import hashlib
import marshal
import os
import sys
import time
import zlib
from typing import Any, Collection, Dict, Tuple

from _pytest.assertion import rewrite

REWRITTEN: Dict[str, Tuple[str, Any]] = {}
"""The digest of a file's text and its code, by file."""
ARCHIVE_BYTES = 32 << 20
"""The most that one process adds to an archive."""


class Rewriter:
    """Rewrites assertions as pytest's own function does, but once for each file."""

    def __init__(self, limit_s: float = float("inf"), archive: str = "") -> None:
        self.left_s = limit_s
        """Seconds left for rewriting. Later files keep their plain assertions, whose failures show no values."""
        self.archive = archive
        """Where to write what is new; empty: nowhere."""
        self.archived: Dict[str, bytes] = {}
        """Packed code from earlier processes, by digest."""
        self.new: Dict[str, bytes] = {}
        """Packed code from this process, by digest."""
        self.original: Any = getattr(rewrite, "_rewrite_test", None)
        self.version = str(getattr(rewrite, "PYC_TAIL", "")).encode()

    def begin(self) -> None:
        """Replace pytest's function, unless it has to write byte code."""
        if self.original is not None and sys.dont_write_bytecode:
            setattr(rewrite, "_rewrite_test", self.rewritten)  # noqa: B010  # private to pytest

    def end(self) -> None:
        """Restore pytest's function: tests of pytest plugins rewrite files themselves."""
        if getattr(rewrite, "_rewrite_test", None) == self.rewritten:
            setattr(rewrite, "_rewrite_test", self.original)  # noqa: B010

    def rewritten(self, path: Any, config: Any) -> Tuple[Any, Any]:
        """Return the code of a file. The first item of the pair would serve to write byte code; here it is always
        None."""
        text = path.read_bytes()
        digest = hashlib.blake2b(b"%s\0%s\0%s" % (self.version, bytes(path), text)).hexdigest()
        known = REWRITTEN.get(str(path))
        if known is not None and known[0] == digest:
            return None, known[1]
        if digest in self.archived:
            code = marshal.loads(zlib.decompress(self.archived[digest]))
        elif self.left_s > 0:
            code = self.rewrite(path, config, digest)
        else:
            return None, compile(text, str(path), "exec", dont_inherit=True)
        REWRITTEN[str(path)] = (digest, code)
        return None, code

    def rewrite(self, path: Any, config: Any, digest: str) -> Any:
        began = time.perf_counter()
        _, code = self.original(path, config)
        self.left_s -= time.perf_counter() - began
        if self.archive and sum(map(len, self.new.values())) < ARCHIVE_BYTES:
            self.new[digest] = zlib.compress(marshal.dumps(code), 1)
        return code

    def read(self, paths: Collection[str]) -> None:
        """Read archives, and delete them before the tested code can write there."""
        for path in paths:
            with open(path, "rb") as file:
                self.archived.update(marshal.load(file))
            os.remove(path)

    def write(self) -> None:
        """Write the archive, if anything is new."""
        if self.new:
            with open(self.archive, "wb") as file:
                marshal.dump(self.new, file)
