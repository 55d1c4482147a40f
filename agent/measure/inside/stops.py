"""Stop the base state's session just before it would read the first file that differs.

Invariant: whatever copies cannot share is detected. A session that leaves files behind, or starts threads, processes or
connections, is not copied.
"""

from __future__ import annotations

import gc
import json
import marshal
import os
import socket
import sys
import threading
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Set, Tuple

import pytest

from .copies import clear_caches, open_files, own_unnamed_files, replace_descriptors, reseed
from .reporter import Reporter

if TYPE_CHECKING:
    from sandboxes.guest import door
else:
    from ramify_door import door  # put there before this program starts

Request = Dict[str, Any]
"""A request to the template: the `session`, the `changed` files, and the `run`, which is a request to the reporter."""
STARTS = ("subprocess.Popen", "os.fork", "os.posix_spawn", "os.system", "socket.connect", "socket.bind")
CHANGES = ("os.chmod", "os.chown", "os.link", "os.symlink", "os.truncate", "os.utime")
"""Audit events after which a session is not copied."""


def next_message(connection: socket.socket) -> Tuple[Dict[str, Any], Tuple[int, ...]]:
    """Wait for a message; end the process if no more messages can come."""
    try:
        return door.receive(connection)
    except EOFError:
        os._exit(0)


def is_source(workspace: str, path: str) -> bool:
    """Whether a path is in the workspace and not installed there; installed files, like all protected ones, are the
    same as in the base state (`agent.measure.protection.BUILT`)."""
    return path.startswith(workspace + os.sep) and "site-packages/" not in path[len(workspace) :]


class Stopper:
    """Stops the base state's run: a finder that finds nothing, an audit hook, and a pytest plugin."""

    def __init__(
        self,
        workspace: str,
        connection: socket.socket,
        until: Set[str],
        reporter: Reporter,
        more: Callable[[], Dict[str, Any]],
    ) -> None:
        self.workspace, self.connection, self.until, self.reporter = workspace, connection, until, reporter
        self.more = more
        self.active = True
        self.read: Set[str] = set()
        self.written: Set[str] = set()
        self.unfit = ""
        self.descriptors: List[int] = []
        """All files that are open when it stops."""
        self.outputs = [os.memfd_create("output") for _ in range(2)]
        for number, output in enumerate(self.outputs, 1):
            os.dup2(output, number)

    # -- what is noticed

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Keep the session: freeing it at the end takes longer than most tests."""
        self.session = session

    def pytest_collection_finish(self) -> None:
        """The last point to stop: no test has run yet."""
        if self.active:
            self.stop(None)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Notice that a module is about to be read. Its time and size are read long before its text."""
        for finder in sys.meta_path if self.active else ():
            if finder is not self and type(finder).__name__ != "AssertionRewritingHook":
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    self.reads(spec.origin or "")
                    return

    def notice(self, event: str, arguments: Tuple[Any, ...]) -> None:
        """Notice an audit event."""
        if not self.active:
            return
        if event == "open":
            self.opens(*arguments)
        elif event in STARTS or event in CHANGES:
            self.unfit = self.unfit or "%s while tests are collected" % event
        elif event == "os.mkdir" or event == "os.rename":
            self.written.add(os.path.abspath(os.fsdecode(arguments[event == "os.rename"])))
        elif event in ("os.remove", "os.rmdir") and os.path.abspath(os.fsdecode(arguments[0])) not in self.written:
            self.unfit = self.unfit or "%s while tests are collected" % event

    def opens(self, path: Any, mode: Any, flags: Any) -> None:
        """Notice that a file is opened, by name or by descriptor."""
        if isinstance(path, int):
            return
        name = os.path.abspath(os.fsdecode(path))
        writing = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if writing and not name.startswith("/dev/") and not os.path.isdir(name):  # a directory: a file without a name
            self.written.add(name)
        self.reads(name)

    def reads(self, path: str) -> None:
        """Notice that a path is about to be read, and stop if it is a changed file."""
        path = os.path.realpath(path)
        if is_source(self.workspace, path):
            if path in self.until:
                self.stop(path)
            self.read.add(path)

    # -- stopping

    def stop(self, before: Optional[str]) -> None:
        """Stop here. Returns only in copies: in candidates' runs, and in the copy that continues the base state's
        run."""
        sys.stdout.flush()
        sys.stderr.flush()
        self.active = False
        self.descriptors = [number for number, _ in open_files()]
        clear_caches()
        gc.freeze()  # garbage collection in a copy would copy every memory page that it scans
        self.tell(before, self.why_unfit())
        here = os.getcwd()
        while True:
            facts, descriptors = next_message(self.connection)
            if "until" not in facts:
                order = door.order_of(facts, descriptors)
                if door.admit(order):
                    return self.become(json.loads(order.text), here)
            elif os.fork():
                os.close(descriptors[0])
            else:
                self.connection.close()
                self.connection, self.until = socket.socket(fileno=descriptors[0]), set(facts["until"])
                self.active = True
                return None

    def tell(self, before: Optional[str], unfit: str) -> None:
        """Report where the run has stopped."""
        facts = {"before": before, "read": sorted(self.read), "unfit": unfit, **self.more()}
        file = os.memfd_create("facts")
        with open(os.dup(file), "wb") as copy:
            marshal.dump(facts, copy)
        door.send(self.connection, {}, [file])
        os.close(file)

    def why_unfit(self) -> str:
        """Return why the run cannot be copied: what copies would have to share, or would lack. "" if it can be
        copied."""
        if threading.active_count() > 1:
            return "threads run while tests are collected"
        left = [path for path in self.written if os.path.lexists(path)]
        return self.unfit or ("%s was written while tests were collected" % left[0] if left else "")

    def become(self, request: Request, here: str) -> None:
        """Turn this copy into the run of a candidate."""
        self.connection.close()
        for number, output in enumerate(self.outputs, 1):
            os.write(number, door.content(output))
            replace_descriptors(output, number, self.descriptors)
        own_unnamed_files(self.descriptors)
        os.chdir(here)
        reseed()
        self.reporter.start(request["run"])
        self.reporter.say("copied", at="session")
