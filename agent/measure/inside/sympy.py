"""Runs SymPy's own program for tests (`bin/test`), and says how each test ended.

It is planted in a package of a random name and run as `python -m`, with the program as its argument. Stdlib only,
Python 3.8 and later. SymPy's loop over the files and functions stays its own; its reporter is listened to.
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
    from .reporter import Reporter, first_hook
except ImportError:  # there is no pytest, and SymPy's runner is its own
    Reporter = None  # type: ignore[assignment, misc]

from .account import Account, clock, opened
from .failures import Failures
from .scripts import Listener, run_as_main
from .wanted import covers

MODULES = ("sympy.testing.runtests", "sympy.utilities.runtests")
"""Where SymPy has its runner, from 1.6 on and before."""
BY_PYTEST = "sympy.testing.runtests_pytest"
"""What has pytest run the tests, from 1.13 on."""

FUNCTION = re.compile(r"^def (test_\w+)", re.MULTILINE)

realpath, relpath = os.path.realpath, os.path.relpath


class RanOutOfTime(Exception):
    """A test used more time than it was given. SymPy's loop goes on after an Exception and no other."""

    __module__ = "builtins"  # messages show no name of this file


class Over(BaseException):
    """No further test of a file is run."""


class Session:
    """A run of SymPy's tests."""

    def __init__(self, orders: dict[str, Any], channel: Any) -> None:
        self.account = Account(orders, channel, RanOutOfTime)
        self.root = orders["root"]
        self.wanted = frozenset(orders["wanted"])
        self.failures = Failures(self.root)
        self.file = self.path = self.current = ""
        """The file that is read or run, relative to the workspace and as SymPy has it, and the test that runs."""
        self.selected: list[str] = []
        """The tests of the file."""
        self.taken: dict[str, int] = {}
        self.run: dict[str, int] = {}
        """How often a name has come up."""
        self.began = 0.0

    # -- the run

    def listen(self, module: Any) -> None:
        """Take part in what this module runs."""
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
        """The whole run: of the wanted files, where any are."""
        if self.wanted:
            files = sorted({realpath(os.path.join(self.root, each.split("::")[0])) for each in self.wanted})
            known = {realpath(file): file for file in tests.get_test_files("sympy")}
            tests._testfiles[:] = [known.get(file, file) for file in files]
            tests._kw = ()
        return original(*arguments, **options)

    def test_file(
        self, original: Callable[..., Any], tests: Any, filename: str, *arguments: Any, **options: Any
    ) -> Any:
        """One file; of one for which there is no time the functions are listed."""
        self.file, self.path, self.selected, self.current = self.place(filename), filename, [], ""
        if self.account.over:
            for name in _functions(filename):
                self.take(name, tests._kw)
        else:
            with contextlib.suppress(Over):
                original(filename, *arguments, **options)
        for test in self.selected:
            if test not in self.account.told:
                self.account.leave(test)

    def matches(self, original: Callable[..., Any], tests: Any, function: Any) -> bool:
        return self.take(function.__name__, tests._kw)

    def take(self, name: str, keywords: Any) -> bool:
        """Whether a function of the file is one of the tests to run."""
        test = "%s::%s" % (self.file, name)
        taken = covers(self.wanted, test) if self.wanted else _matches(keywords, name)
        if taken:
            self.selected.append(_numbered(test, self.taken))
        return taken

    # -- the tests

    def entering_test(self, original: Callable[..., Any], reporter: Any, function: Any) -> None:
        """A test begins."""
        if self.account.over:
            raise Over
        original(function)
        test = "%s::%s" % (self.file, function.__name__)
        self.current = _numbered(test, self.run)
        self.account.begin(self.current)
        self.began = clock()
        self.account.arm()

    def test_pass(self, original: Callable[..., Any], reporter: Any, *arguments: Any) -> None:
        """Or a test failed as it was expected to, or passed although it was not."""
        self.end(original, reporter, arguments, "passed")

    def test_skip(self, original: Callable[..., Any], reporter: Any, reason: Any = None) -> None:
        self.end(original, reporter, (reason,), "skipped", "" if reason is None else str(reason))

    def test_fail(self, original: Callable[..., Any], reporter: Any, exc_info: Any) -> None:
        self.end(original, reporter, (exc_info,), "failed", self.text(exc_info))

    def test_exception(self, original: Callable[..., Any], reporter: Any, exc_info: Any) -> None:
        """In a test, or in a file while it is read."""
        if self.current:
            self.end(original, reporter, (exc_info,), "error", self.text(exc_info))
        else:
            self.broke(self.file, exc_info)
            original(exc_info)

    def import_error(self, original: Callable[..., Any], reporter: Any, filename: str, exc_info: Any) -> None:
        self.broke(self.place(filename), exc_info)
        original(filename, exc_info)

    def broke(self, file: str, exc_info: Any) -> None:
        self.account.say("broken", id=file, message=self.text(exc_info))

    def end(
        self, original: Callable[..., Any], reporter: Any, arguments: tuple[Any, ...], outcome: str, message: str = ""
    ) -> None:
        """A test ended so, unless the alarm says otherwise. SymPy's reporter is told what is told here."""
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
        """What a failure says."""
        try:
            return self.failures.told(exc_info[1], self.path)
        except Exception:  # an exception of the candidate's may break whatever looks at it
            return self.failures.plain(str(exc_info[0]))

    def place(self, filename: str) -> str:
        return relpath(realpath(filename), self.root)


def _wrap(kind: Any, **own: Callable[..., Any]) -> None:
    """Put methods in the place of a class's own, which they get as their first argument."""
    for name, method in own.items():
        setattr(kind, name, _around(getattr(kind, name), method))


def _around(original: Callable[..., Any], method: Callable[..., Any]) -> Callable[..., Any]:
    def call(one: Any, *arguments: Any, **options: Any) -> Any:
        return method(functools.partial(original, one), one, *arguments, **options)

    return call


def _numbered(test: str, seen: dict[str, int]) -> str:
    """A test that comes up again is another."""
    seen[test] = seen.get(test, 0) + 1
    return test if seen[test] == 1 else "%s (%d)" % (test, seen[test])


def _raised(error: BaseException) -> Any:
    """What there is to say of an exception that was raised."""
    try:
        raise error
    except type(error):
        return sys.exc_info()


def _functions(filename: str) -> list[str]:
    """The names of the test functions in a file, which is not run, nor parsed: some take seconds."""
    try:
        with open(filename, encoding="utf-8", errors="replace") as file:
            return FUNCTION.findall(file.read())
    except OSError:
        return []


def _matches(keywords: Any, name: str) -> bool:
    """As SymPy's `-k`."""
    return not keywords or any(each.lower() in name.lower() for each in keywords)


class Opened:
    """A channel that somebody has opened."""

    def __init__(self, channel: Any) -> None:
        self.say = channel.say

    def open(self, path: str, nonce: str) -> None:
        """It is."""


def by_pytest(module: Any, orders: dict[str, Any], channel: Any) -> None:
    """Have the plugin for pytest in the run that this module starts."""
    original = module.pytest.main

    def run(args: Any = None, plugins: Any = None) -> Any:
        reporter: Any = Reporter(orders)
        reporter.channel, reporter.say = Opened(channel), channel.say
        reporter.start(orders)
        plugin: Any = types.ModuleType("plugin")
        plugin.pytest_load_initial_conftests = first_hook(reporter, [])
        return original(args, [*(plugins or ()), plugin])

    module.pytest = types.SimpleNamespace(main=run)


def main(orders: dict[str, Any]) -> None:
    """Run the program that the rest of the command line names."""
    channel = opened(orders)
    session = Session(orders, channel)
    closed = []

    def listen(module: Any) -> None:
        if getattr(module, "SymPyTests", None) is not None and module.SymPyTests.__module__ == module.__name__:
            session.listen(module)

    def have_pytest(module: Any) -> None:
        if Reporter is not None:
            by_pytest(module, orders, channel)
            closed.append(True)

    sys.meta_path.insert(0, Listener(MODULES, listen))
    sys.meta_path.insert(0, Listener([BY_PYTEST], have_pytest))
    status = run_as_main(sys.argv[1:])
    if not closed:
        session.account.close(status)
    sys.exit(status)
