"""The template that test runs are copied from: a Python that has already imported pytest and started the session.

Invariant: a copy continues only from a point where nothing that differs in its workspace has been read. The installed
packages, and what unchanged modules of the workspace did, are the same for every candidate. So a run of the base state
is stopped just before it would read the first changed file, and the candidate's run is copied from there. If that is
impossible (added or removed files, a session that writes files or starts processes), the run starts from the point
where only packages are imported.
"""

from __future__ import annotations

import json
import marshal
import os
import socket
import sys
import tempfile
from typing import TYPE_CHECKING, Any, Dict, List, NoReturn, Optional, Set

import pytest

from .ahead import import_ahead, keep_compiled, of_workspace, unpack
from .rewritten import Rewriter
from .session import PytestSession
from .stops import Request, next_message

if TYPE_CHECKING:
    from sandboxes.guest import door
else:
    from ramify_door import door  # put there before this program starts

TIMEOUT_S = 120.0
"""Time limit for the base state's session to reach the point where it is stopped."""
KEPT = 8
"""Maximum number of stopped sessions; the oldest is dropped first."""


def begin(workspace: str) -> None:
    """Serve as the template on the connection that this process was started with. Never returns."""
    connection = socket.socket(fileno=door.SOCKET)
    keep_compiled(workspace)
    Rewriter().begin()
    load_plugins()
    early = [name for name, module in list(sys.modules.items()) if of_workspace(workspace, module)]
    if early:
        sys.exit("%s of the workspace is imported before any test" % early[0])
    TemplateProcess(connection, workspace).serve()


def load_plugins() -> None:
    """Run a session without tests: it imports pytest's plugins with rewritten assertions, as pytest does."""
    path, options = list(sys.path), os.environ.pop("PYTEST_ADDOPTS", None)
    with tempfile.TemporaryDirectory() as empty:
        settings = os.path.join(empty, "pytest.ini")
        with open(settings, "w") as file:
            file.write("[pytest]\n")
        pytest.main(["-q", "--collect-only", "-p", "no:cacheprovider", "--rootdir", empty, "-c", settings, empty])
    sys.path[:] = path
    if options is not None:
        os.environ["PYTEST_ADDOPTS"] = options


class Stopped:
    """A stopped session of the base state, as the template sees it."""

    def __init__(self, key: str, connection: socket.socket) -> None:
        self.key, self.connection = key, connection
        self.before: Optional[str] = None
        """The file that it was about to read; None: collection is complete."""
        self.read: Set[str] = set()
        self.facts: Dict[str, Any] = {}

    def wait(self) -> str:
        """Wait until it is stopped. Returns why nothing can be copied from it, else ""."""
        self.connection.settimeout(TIMEOUT_S)
        try:
            _, descriptors = door.receive(self.connection)
        except EOFError:
            return "it died"
        except OSError:
            return "it took too long"
        self.facts = facts = marshal.loads(door.content(descriptors[0]))
        os.close(descriptors[0])
        self.before, self.read = facts["before"], set(facts["read"])
        return str(facts["unfit"])


class TemplateProcess:
    """The template itself."""

    def __init__(self, connection: socket.socket, workspace: str) -> None:
        self.connection, self.workspace = connection, workspace
        self.stopped: List[Stopped] = []
        self.unfit: Set[str] = set()
        self.looked_at: Set[str] = set()

    def serve(self) -> NoReturn:
        """Serve requests for copies until the connection closes."""
        while True:
            facts, descriptors = next_message(self.connection)
            order = door.order_of(facts, descriptors)
            request = json.loads(order.text)
            source = self.source(request)
            if source is not None:
                door.send(source.connection, facts, list(descriptors))
                door.close(order)
            elif door.admit(order):
                self.leave()
                PytestSession(self.workspace, request).run_from_start()

    def leave(self) -> None:
        """In a copy: close every connection."""
        for connection in (self.connection, *(each.connection for each in self.stopped)):
            connection.close()

    def source(self, request: Request) -> Optional[Stopped]:
        """Return the stopped session to copy the run from; None: it starts from the imported packages."""
        key = json.dumps(request["session"])
        if request["changed"] is None:
            return None
        if key not in self.looked_at:
            self.look_ahead(key, request)
        if key in self.unfit:
            return None
        changed = set(request["changed"])
        fit = [each for each in self.stopped if each.key == key and not each.read & changed]
        best = max(fit, key=lambda each: len(each.read), default=None)
        if best is None or (best.before is not None and best.before not in changed):
            best = self.further(best, key, request)
        return best

    def look_ahead(self, key: str, request: Request) -> None:
        """Let one session run until its tests are collected, and do in advance what every later one would do."""
        self.looked_at.add(key)
        whole = self.further(None, key, {**request, "changed": [], "whole": True})
        if whole is not None:
            self.stopped.remove(whole)
            whole.connection.close()
            import_ahead(whole.facts["installed"], self.workspace)
            unpack(whole.facts)

    def further(self, start: Optional[Stopped], key: str, request: Request) -> Optional[Stopped]:
        """Continue a session, or start one, that stops before the first changed file."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if start is not None:
            door.send(start.connection, {"until": request["changed"]}, [theirs.fileno()])
        elif os.fork() == 0:
            self.leave()
            ours.close()
            PytestSession(self.workspace, request).run_until(theirs)
        theirs.close()
        new = Stopped(key, ours)
        why = new.wait()
        if why:
            sys.stderr.write("a session cannot be copied: %s\n" % why)
            sys.stderr.flush()
            self.unfit.add(key)
            ours.close()
            return None
        self.stopped.append(new)
        if len(self.stopped) > KEPT:
            self.stopped.pop(0).connection.close()
        return new
