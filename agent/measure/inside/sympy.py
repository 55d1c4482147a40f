"""Runs SymPy's own test program (`bin/test`), and reports how each test ended.

It is written into a package of a random name and run with `python -m`, with the program as its argument. Stdlib only,
Python 3.8 and later. SymPy's loop over files and functions is kept; its reporter is observed.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import sys
import types
from collections.abc import Callable
from typing import Any

try:
    import pytest
except ImportError:  # SymPy has its own runner
    pytest = None  # type: ignore[assignment]

from .account import Account, clock, open_channel
from .failures import Failures
from .scripts import ImportListener, run_as_main
from .wanted import covers, functions_in, numbered

if pytest is not None:
    from .reporter import Reporter, first_hook

MODULES = ("sympy.testing.runtests", "sympy.utilities.runtests")
"""The module of SymPy's runner, from 1.6 on and before."""
BY_PYTEST = "sympy.testing.runtests_pytest"
"""The module that runs pytest, from 1.13 on."""

FUNCTION = re.compile(r"^def (test_\w+)", re.MULTILINE)

realpath, relpath = os.path.realpath, os.path.relpath


class RanOutOfTime(Exception):
    """A test exceeded its time. SymPy's loop continues only after an Exception."""

    __module__ = "builtins"  # so that messages do not name this file


class EndOfFile(BaseException):
    """Raised to run no further test of a file."""


class SympySession:
    """A run of SymPy's tests."""

    def __init__(self, request: dict[str, Any], channel: Any) -> None:
        self.account = Account(request, channel, RanOutOfTime)
        self.root = request["root"]
        self.wanted = frozenset(request["wanted"])
        self.failures = Failures(self.root)
        self.file = self.path = self.current = ""
        """The current file, relative to the workspace and as SymPy has it, and the current test."""
        self.selected: list[str] = []
        """The tests of the current file."""
        self.taken: dict[str, int] = {}
        self.run: dict[str, int] = {}
        """How often each name has occurred."""
        self.began = 0.0

    # -- the run

    def listen(self, module: Any) -> None:
        """Hook into the runner in this module."""
        if hasattr(module, "run_in_subprocess_with_hash_randomization"):  # it has to run in this process
            module.run_in_subprocess_with_hash_randomization = lambda *arguments, **options: False
        self.reporter = module.PyTestReporter
        self.fail = self.reporter.test_exception
        _wrap(module.SymPyTests, test=self.test, test_file=self.test_file, matches=self.matches)
        _wrap(
            self.reporter,
            entering_test=self.entering_test,
            import_error=self.import_error,
            test_exception=self.test_exception,
            test_fail=self.test_fail,
            test_pass=self.test_pass,
            test_skip=self.test_skip,
            test_xfail=self.test_pass,
            test_xpass=self.test_pass,
        )

    def test(self, original: Callable[..., Any], tests: Any, *arguments: Any, **options: Any) -> Any:
        """The whole run, limited to the wanted files if there are any."""
        if self.wanted:
            files = sorted({realpath(os.path.join(self.root, each.split("::")[0])) for each in self.wanted})
            known = {realpath(file): file for file in tests.get_test_files("sympy")}
            tests._testfiles[:] = [known.get(file, file) for file in files]
            tests._kw = ()
        return original(*arguments, **options)

    def test_file(
        self, original: Callable[..., Any], tests: Any, filename: str, *arguments: Any, **options: Any
    ) -> Any:
        """Run one file; if there is no time for it, only list its functions."""
        self.file, self.path, self.selected, self.current = self.relative_path(filename), filename, [], ""
        if self.account.finished:
            for name in functions_in(filename, FUNCTION):
                self.take(name, tests._kw)
        else:
            with contextlib.suppress(EndOfFile):
                original(filename, *arguments, **options)
        for test in self.selected:
            if test not in self.account.reported:
                self.account.leave_out(test)

    def matches(self, original: Callable[..., Any], tests: Any, function: Any) -> bool:
        return self.take(function.__name__, tests._kw)

    def take(self, name: str, keywords: Any) -> bool:
        """Whether a function of the file is a test to run."""
        test = "%s::%s" % (self.file, name)
        taken = covers(self.wanted, test) if self.wanted else _matches(keywords, name)
        if taken:
            self.selected.append(numbered(test, self.taken))
        return taken

    # -- the tests

    def entering_test(self, original: Callable[..., Any], reporter: Any, function: Any) -> None:
        """Report that a test starts."""
        if self.account.finished:
            raise EndOfFile
        original(function)
        test = "%s::%s" % (self.file, function.__name__)
        self.current = numbered(test, self.run)
        self.account.begin(self.current)
        self.began = clock()
        self.account.arm()

    def test_pass(self, original: Callable[..., Any], reporter: Any, *arguments: Any) -> None:
        """Also called when a test failed as expected, or passed unexpectedly."""
        self.end(original, reporter, arguments, "passed")

    def test_skip(self, original: Callable[..., Any], reporter: Any, reason: Any = None) -> None:
        self.end(original, reporter, (reason,), "skipped", "" if reason is None else str(reason))

    def test_fail(self, original: Callable[..., Any], reporter: Any, exc_info: Any) -> None:
        self.end(original, reporter, (exc_info,), "failed", self.text(exc_info))

    def test_exception(self, original: Callable[..., Any], reporter: Any, exc_info: Any) -> None:
        """Report an exception in a test, or while a file is read."""
        if self.current:
            self.end(original, reporter, (exc_info,), "error", self.text(exc_info))
        else:
            self.broke(self.file, exc_info)
            original(exc_info)

    def import_error(self, original: Callable[..., Any], reporter: Any, filename: str, exc_info: Any) -> None:
        self.broke(self.relative_path(filename), exc_info)
        original(filename, exc_info)

    def broke(self, file: str, exc_info: Any) -> None:
        self.account.say("broken", id=file, message=self.text(exc_info))

    def end(
        self, original: Callable[..., Any], reporter: Any, arguments: tuple[Any, ...], outcome: str, message: str = ""
    ) -> None:
        """Report how a test ended, unless the alarm rang; SymPy's reporter gets the same outcome."""
        account, test = self.account, self.current
        account.alarm.disarm()
        seconds = clock() - self.began
        if account.interrupted:
            account.interrupt(test)
        elif account.alarm.rang:
            if outcome in ("failed", "error"):
                original(*arguments)
            else:  # the test swallowed the alarm
                self.fail(reporter, _raised(RanOutOfTime("ran out of time")))
            account.end(test, "timeout", message or "ran out of time", seconds)
        else:
            original(*arguments)
            account.end(test, outcome, message, seconds)
        self.current, account.alarm.rang = "", False

    def text(self, exc_info: Any) -> str:
        """The message of a failure."""
        try:
            return self.failures.message(exc_info[1], self.path)
        except Exception:  # the candidate's own exception may break code that inspects it
            return self.failures.plain(str(exc_info[0]))

    def relative_path(self, filename: str) -> str:
        return relpath(realpath(filename), self.root)


def _wrap(kind: Any, **own: Callable[..., Any]) -> None:
    """Replace methods of a class; each replacement gets the original as its first argument."""
    for name, method in own.items():
        setattr(kind, name, _around(getattr(kind, name), method))


def _around(original: Callable[..., Any], method: Callable[..., Any]) -> Callable[..., Any]:
    def call(instance: Any, *arguments: Any, **options: Any) -> Any:
        return method(functools.partial(original, instance), instance, *arguments, **options)

    return call


def _raised(error: BaseException) -> Any:
    try:
        raise error
    except type(error):
        return sys.exc_info()


def _matches(keywords: Any, name: str) -> bool:
    """Like SymPy's `-k`."""
    return not keywords or any(each.lower() in name.lower() for each in keywords)


def by_pytest(module: Any, request: dict[str, Any], channel: Any) -> None:
    """Load the pytest plugin in the run that this module starts."""
    original = module.pytest.main

    def run(args: Any = None, plugins: Any = None) -> Any:
        reporter = Reporter(request)
        reporter.say, reporter.account = channel.say, Account(request, channel)  # it is open already
        reporter.limit_rewriting(request)
        plugin: Any = types.ModuleType("plugin")
        plugin.pytest_load_initial_conftests = first_hook(reporter, [])
        return original(args, [*(plugins or ()), plugin])

    module.pytest = types.SimpleNamespace(main=run)


def main(request: dict[str, Any]) -> None:
    """Run the program that the rest of the command line names."""
    channel = open_channel(request)
    session = SympySession(request, channel)
    closed = []

    def listen(module: Any) -> None:
        if getattr(module, "SymPyTests", None) is not None and module.SymPyTests.__module__ == module.__name__:
            session.listen(module)

    def have_pytest(module: Any) -> None:
        if pytest is not None:
            by_pytest(module, request, channel)
            closed.append(True)

    sys.meta_path.insert(0, ImportListener(MODULES, listen))
    sys.meta_path.insert(0, ImportListener([BY_PYTEST], have_pytest))
    status = run_as_main(sys.argv[1:])
    if not closed:
        session.account.close(status)
    sys.exit(status)
