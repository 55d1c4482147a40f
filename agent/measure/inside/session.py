"""One run of pytest in a copy of the template."""

from __future__ import annotations

import atexit
import os
import socket
import sys
import threading
from typing import Any, Dict, NoReturn, Optional

from .account import clean_environment
from .ahead import installed, packed
from .copies import FrozenImports, clear_caches, reseed
from .reporter import Reporter, first_hook
from .scripts import run_as_main
from .stops import Request, Stopper

OURS = ("ramify_door", "ramify_inside")
"""Packages that are hidden from tests."""


class PytestSession:
    """One run of pytest: a candidate's from its start, or the base state's until it is stopped and copied."""

    def __init__(self, workspace: str, request: Request) -> None:
        self.workspace, self.request = workspace, request
        self.reporter = Reporter(request["session"])
        self.stops: Optional[Stopper] = None

    def run_from_start(self) -> NoReturn:
        """Turn this process into a candidate's run."""
        clear_caches()
        reseed()
        self.reporter.start(self.request["run"])
        self.reporter.say("copied", at="packages")
        self._run()

    def run_until(self, connection: socket.socket) -> NoReturn:
        """Turn this process into the base state's run, which is copied before it reads a changed file, or else before
        the tests run."""
        self.stops = Stopper(self.workspace, connection, set(self.request["changed"]), self.reporter, self._more)
        sys.meta_path.insert(0, self.stops)
        sys.addaudithook(self.stops.notice)
        try:
            self._run()
        finally:
            if self.stops.active:
                self.stops.tell(None, "the session ended before it was stopped")
                os._exit(0)

    def _more(self) -> Dict[str, Any]:
        """What later sessions can prepare in advance, if this session is the one that finds it out."""
        if not self.request.get("whole"):
            return {}
        return {"installed": list(installed(self.workspace)), **packed()}

    def _run(self) -> NoReturn:
        self._load_plugin()
        sys.path[0] = os.getcwd()
        status = run_as_main(self.request["session"]["argv"])
        if not (self.stops and self.stops.active):
            end(status)
        sys.exit(status)

    def _load_plugin(self) -> None:
        """Make the reporter importable for pytest, as if it were a module."""
        name = self.request["session"]["plugin"]
        module = type(sys)(name, "PYTEST_DONT_REWRITE")
        clean_environment(name, [name])
        others = [FrozenImports(), *([self.stops] if self.stops else [])]
        module.pytest_load_initial_conftests = first_hook(self.reporter, [name, *OURS], *others)  # type: ignore[attr-defined]
        sys.modules[name] = module
        os.environ["PYTEST_ADDOPTS"] = ("-p %s %s" % (name, os.environ.get("PYTEST_ADDOPTS", ""))).strip()


def end(status: int) -> NoReturn:
    """End like the interpreter, but without freeing everything, which takes longer than most tests."""
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os._exit(status & 0xFF)
