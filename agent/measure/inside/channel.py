"""The channel to which a program in the sandbox writes its facts. Stdlib only, Python 3.8 and later.

PYTEST_DONT_REWRITE
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os

# Tests patch these modules; the report must not depend on that.
getpid, write_bytes, dumps = os.getpid, os.write, json.dumps


class Channel:
    """Writes facts as lines, from the process that opened it only. Facts before that wait until it is open.

    Each line is sealed with a hash of the nonce, its number and its text, so that code that can read the report cannot
    add lines to it.
    """

    def __init__(self) -> None:
        self.waiting: list[str] = []
        self.owner = 0

    def open(self, path: str, nonce: str) -> None:
        """Open the report; only this process, not its copies, may write from now on."""
        self.descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self.nonce, self.owner, self.numbers, self.sha256 = nonce, getpid(), itertools.count(), hashlib.sha256
        for line in self.waiting:
            self._write(line)

    def say(self, kind: str, **facts: object) -> None:
        """Write one line."""
        line = dumps(dict(facts, kind=kind))
        if not self.owner:
            self.waiting.append(line)
        elif getpid() == self.owner:
            self._write(line)

    def _write(self, line: str) -> None:
        seal = self.sha256((self.nonce + str(next(self.numbers)) + line).encode()).hexdigest()
        write_bytes(self.descriptor, (seal + " " + line + "\n").encode())
