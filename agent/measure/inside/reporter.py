"""The pytest plugin that reports, from inside the sandbox, how each test ended.

It is written into a package of a random name, which calls `begin`. Stdlib and pytest >= 6 only, Python 3.8 and later.
Invariant: printed text does not count. A line of the report counts only with its seal, and a run only with its closing
line.
PYTEST_DONT_REWRITE
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Collection, Generator, Iterator
from fnmatch import fnmatch
from typing import Any
from zlib import crc32

import pytest

from .account import Account, Attempt, clean_environment, clock
from .alarm import OutOfTime
from .channel import Channel
from .failures import Failures
from .installed import copies
from .rewritten import Rewriter
from .wanted import Wanted, functions_in

TRACEBACKS = ("ExceptionChainRepr", "ReprExceptionInfo")
"""pytest's representations of an exception without special text from an item or plugin."""
SELECTION = {
    **dict.fromkeys(("keyword", "markexpr"), ""),
    **dict.fromkeys(("deselect", "ignore", "ignore_glob")),
    "pyargs": False,
}
"""Options that select tests, with their defaults."""
NOTHING_COLLECTED = 5
FUNCTION = re.compile(r"^[ \t]*(?:async )?def (test\w*)", re.M)
SHARED_FILES = ("__init__.py", "conftest.py")
REWRITING, ARCHIVING = 0.05, 0.3
"""Maximum share of the run's time for rewriting assertions, and the share if the rewritten files are archived for later
runs. Rewriting all files of SymPy takes longer than a run may."""


class Reporter:
    """The plugin's hooks."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.channel = Channel()
        self.say = self.channel.say
        self.wanted = Wanted(request["wanted"])
        self.by_path = request.get("by_path", False)
        self.part, self.parts = request.get("part", (0, 1))
        """Which part of all files this process runs, and the number of parts."""
        self.account: Account | None = None
        """None: the report is not open, as in a template, which has no time limit and runs no test."""
        self.attempt: Attempt | None = None
        self.root = ""
        self.unread_late = False
        """Whether there was no time to read some test file."""
        self.patterns: list[str] = []
        self.failures = Failures()
        self.unread: dict[str, str] = {}
        """Errors of files that cannot be collected."""
        self.found = 0
        self.broken: list[str] = []
        self.rewriter: Rewriter | None = None
        self.say("open")

    def start(self, request: dict[str, Any]) -> None:
        """Open the report, before any test can run."""
        self.account = Account(request, self.channel)
        self.channel.open(request["report"], request["nonce"])

    def limit_rewriting(self, request: dict[str, Any]) -> None:
        """Reuse the rewritten test files in archives, and rewrite others only during a part of the run's time."""
        archive = request.get("archive", "")
        self.rewriter = Rewriter((ARCHIVING if archive else REWRITING) * request["run_s"], archive)
        self.rewriter.read(request.get("archives", ()))
        self.rewriter.begin()

    # -- before the tests

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        option = config.option
        option.maxfail = 0
        option.continue_on_collection_errors = True
        option.tbstyle = "native"  # pytest's own takes seconds for a thousand frames of a recursion
        if hasattr(option, "numprocesses"):  # xdist: its workers would not report here
            option.numprocesses, option.dist, option.tx = None, "no", []
        root = self.root = str(config.rootpath)
        self.patterns = config.getini("python_files")
        self.failures = Failures(root, os.getcwd())
        self.wanted.look_in(root)
        if self.by_path and self.wanted.ids:
            config.args = self.wanted.paths(root)
            for name, unset in SELECTION.items():
                if hasattr(option, name):
                    setattr(option, name, unset)

    if hasattr(pytest, "version_tuple"):

        def pytest_ignore_collect(self, collection_path: object) -> bool | None:
            return self.ignores(str(collection_path))

    else:  # pytest 6

        def pytest_ignore_collect(self, path: object) -> bool | None:  # type: ignore[misc]  # pytest goes by the name
            return self.ignores(str(path))

    def ignores(self, path: str) -> bool | None:
        """Skip a file or folder that contains no wanted test, or belongs to another process."""
        if self.elsewhere(path) and os.path.isfile(path) and os.path.basename(path) not in SHARED_FILES:
            return True
        if self.wanted.ignores(path):
            return True
        if self.account is not None and self.account.time_is_up and self.has_tests(path):
            file = os.path.relpath(path, self.root).replace(os.sep, "/")
            for test in [file + "::" + name for name in functions_in(path, FUNCTION)] or [file]:
                self.say("late", id=test)
            self.unread_late = True
            return True
        return None

    def has_tests(self, path: str) -> bool:
        """Whether the file is named like a test file."""
        return any(fnmatch(os.path.basename(path), pattern) for pattern in self.patterns) and os.path.isfile(path)

    def elsewhere(self, path: str) -> bool:
        """Whether the file belongs to another process."""
        return bool(self.parts > 1 and crc32(path.encode("utf-8", "surrogateescape")) % self.parts != self.part)

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makeitem(self, collector: pytest.Collector, name: str) -> list[pytest.Item] | None:
        """Skip a function or class that contains no wanted test."""
        return [] if self.wanted.passes_over(collector, name) else None

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Iterator[None]:
        if self.rewriter is not None:
            self.rewriter.end()
        items[:] = [item for item in items if not self.elsewhere(_file(item))]
        self.found = len(items)
        yield
        if self.wanted.ids:
            items[:] = [item for item in items if self.wanted.covers(item.nodeid)]

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Iterator[None]:
        result: Any = yield from self.guarded(cpu=False)
        report = result.get_result()
        if report.failed and self.interrupted:  # the time was up while the file was imported
            report.outcome, report.longrepr, report.result = "passed", None, []
            self.say("late", id=report.nodeid)
        call = getattr(report, "call", None)  # there until this hook ends
        if report.failed and call is not None and call.excinfo is not None:
            error = call.excinfo.value
            cause = error.__cause__ if isinstance(error, pytest.Collector.CollectError) else error
            informative = isinstance(cause, (ImportError, SyntaxError)) or cause is error
            self.unread[report.nodeid] = self.text(report, cause if informative else None, collector)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            message = self.unread.pop(report.nodeid, None)
            message = self.text(report) if message is None else message
            self.say("broken", id=report.nodeid or ".", message=message)
            self.broken.append(report.nodeid + "::")

    # -- the tests

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> None:
        if self.account is not None:
            lost = sum(each.startswith(tuple(self.broken)) for each in self.account.must_pass)
            self.account.regressions_left -= lost

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        if self.account is not None:
            if self.account.finished:
                self.account.leave_out(item.nodeid)
                return True
            self.account.begin(item.nodeid)
        self.attempt = Attempt(item.nodeid)
        return None

    def guarded(self, *, cpu: bool = True) -> Generator[None, Any, Any]:
        """Run what follows with the alarm of the account."""
        if self.account is None:
            return (yield)
        self.account.arm(cpu=cpu)
        try:
            return (yield)
        finally:
            self.account.alarm.disarm()

    @property
    def interrupted(self) -> bool:
        """See `Account.interrupted`."""
        return self.account is not None and self.account.interrupted

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        self.attempt = Attempt(item.nodeid)  # a plugin that runs a failed test again starts here
        yield from self.guarded()

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_call(self) -> Iterator[None]:
        yield from self.guarded()

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self) -> Iterator[None]:
        yield from self.guarded()

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
        result: Any = yield
        report = result.get_result()
        if self.attempt is not None and self.attempt.test == item.nodeid:
            if self.attempt.outcome == "late" or self.interrupted:
                report.outcome, report.longrepr = "skipped", (item.nodeid, 0, "the time of the run is up")
                self.attempt.outcome = "late"
                return
            outcome = self.judge(report, call)
            if outcome == "failed" and _is_unexpected_pass(item, report, call):
                outcome, self.attempt.unexpected = "passed", True
            if outcome == "timeout" and report.passed:  # the test swallowed the alarm
                report.outcome, report.longrepr = "failed", "ran out of time"
            # A set-up or tear-down that passed says nothing about the test.
            if outcome != "passed" or report.when == "call" or hasattr(report, "wasxfail"):
                error = call.excinfo.value if call.excinfo is not None else None
                self.attempt.learn(outcome, self.text(report, error, item) if outcome != "passed" else "")

    def text(self, report: Any, error: BaseException | None = None, node: Any = None) -> str:
        """The message of a failure."""
        shown = report.longrepr
        if isinstance(shown, tuple):  # skipped: where, and why
            return str(shown[-1])
        generic = not shown or type(shown).__name__ in TRACEBACKS or type(error).__name__ == "UnexpectedException"
        generic = generic or isinstance(error, (ImportError, SyntaxError))
        try:
            if generic and error is not None:
                return self.failures.message(error, str(getattr(node, "path", None) or getattr(node, "fspath", "")))
        except Exception:  # the candidate's own exception may break code that inspects it
            pass
        return self.failures.plain(str(shown) if shown else "")

    def judge(self, report: pytest.TestReport, call: pytest.CallInfo[None]) -> str:
        raised, rang = call.excinfo, self.account is not None and self.account.alarm.rang
        if rang or (report.failed and raised is not None and _is_timeout(raised.value)):
            return "timeout"
        if report.failed:
            return "failed" if report.when == "call" else "error"
        if hasattr(report, "wasxfail"):
            return "passed"
        if report.skipped:
            return "skipped"
        return "passed" if raised is None else "failed"  # something turned an exception into a pass

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        attempt = self.attempt
        if attempt is None or attempt.test != report.nodeid or (attempt.unexpected and report.when == "call"):
            return
        if report.failed:
            attempt.learn("failed", self.text(report))

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        if self.attempt is not None and self.attempt.test == nodeid:
            self.finish(self.attempt)

    def finish(self, done: Attempt) -> None:
        self.attempt = None
        if self.account is None:
            return
        if done.outcome == "late":
            self.account.interrupt(done.test)
            return
        if not done.outcome:
            done.learn("error", "the test was not called")
        seconds = clock() - done.began
        self.account.end(done.test, done.outcome, done.message, seconds, unexpected=done.unexpected)

    # -- after the tests

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Iterator[None]:
        yield
        if self.attempt is not None:
            self.finish(self.attempt)
        if self.unread_late and not self.found and session.exitstatus == NOTHING_COLLECTED:
            session.exitstatus, self.found = 0, 1  # there are tests, but there was no time to collect any
        if self.rewriter is not None:
            self.rewriter.write()
        if self.account is not None:
            installed = {} if self.wanted.ids else copies(self.root)
            self.account.close(int(session.exitstatus), collected=self.found, copies=installed)


def _file(item: Any) -> str:
    return str(getattr(item, "path", None) or item.fspath)


def _is_unexpected_pass(item: pytest.Item, report: pytest.TestReport, call: pytest.CallInfo[None]) -> bool:
    """Whether a test marked as a strict expected failure passed. Code could fake this by raising unittest's own
    exception, but only in a test that any failure makes pass anyway."""
    if call.excinfo is None:
        return report.when == "call" and str(report.longrepr).startswith("[XPASS(strict)]")
    message = str(call.excinfo.value) if isinstance(call.excinfo.value, pytest.fail.Exception) else ""
    owners = (getattr(item, "obj", None), getattr(item, "cls", None))
    marked = any(getattr(owner, "__unittest_expecting_failure__", False) for owner in owners)
    return marked and message.startswith("Unexpected success")


def _is_timeout(error: BaseException) -> bool:
    """Whether the failure comes from the alarm, or from a plugin that ends slow tests."""
    message = str(error) if isinstance(error, pytest.fail.Exception) else ""
    return isinstance(error, OutOfTime) or re.match(r"Timeout \(?>", message) is not None


def begin(request: dict[str, Any]) -> Callable[[pytest.Config], None]:
    """Open the report, and return the hook that starts everything. Called once."""
    return first_hook(started(request), request["plugins"])


def started(request: dict[str, Any]) -> Reporter:
    """Return a reporter with an open report, after deleting Ramify's files."""
    for copy in request["copies"]:
        shutil.rmtree(copy, ignore_errors=True)
    clean_environment(request["folder"], request["plugins"])
    reporter = Reporter(request)
    reporter.start(request)
    reporter.limit_rewriting(request)
    return reporter


def first_hook(reporter: Reporter, names: Collection[str], *others: object) -> Callable[[pytest.Config], None]:
    """Return the hook that registers the reporter and other plugins, and hides the modules of these names."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
        for module in [m for m in sys.modules if m.split(".")[0] in names]:
            del sys.modules[module]
        if hasattr(early_config.known_args_namespace, "cov_source"):
            early_config.known_args_namespace.cov_source = None  # a coverage threshold is not a test
        for plugin in (reporter, *others):
            early_config.pluginmanager.register(plugin)

    return pytest_load_initial_conftests
