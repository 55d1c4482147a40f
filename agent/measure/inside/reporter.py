"""The pytest plugin that says, from inside the sandbox, how each test ended.

It is planted in a package of a random name, which calls `begin`. Stdlib and pytest >= 6 only, Python 3.8 and later.
Law: nothing that is printed counts. A line of the report counts with its seal, and a run with its closing line.
PYTEST_DONT_REWRITE
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Collection, Generator, Iterator
from fnmatch import fnmatch
from typing import Any
from zlib import crc32

import pytest

from .alarm import Alarm, OutOfTime
from .channel import Channel
from .failures import Failures
from .wanted import Wanted

TRACEBACKS = ("ExceptionChainRepr", "ReprExceptionInfo")
"""What pytest makes of an exception that no item or plugin has words of its own for."""
SELECTION = {
    **dict.fromkeys(("keyword", "markexpr"), ""),
    **dict.fromkeys(("deselect", "ignore", "ignore_glob")),
    "pyargs": False,
}
"""Options by which a command selects tests, and what they are without it."""
NOTHING_COLLECTED = 5
FUNCTION = re.compile(r"^[ \t]*(?:async )?def (test\w*)", re.M)
SHARED_FILES = ("__init__.py", "conftest.py")
FAILURES = ("error", "failed", "timeout", "late")
SHORTEST_S = 0.1
"""What a test has that began just before the time of the run was up."""

# Tests patch this (frozen clocks); the report must not depend on what they leave there.
clock = time.perf_counter


class Attempt:
    """What is known of the test that is running."""

    def __init__(self, nodeid: str) -> None:
        self.nodeid = nodeid
        self.outcome = ""
        self.message = ""
        self.unexpected = False
        self.began = clock()

    def learn(self, outcome: str, message: str = "") -> None:
        """A failure stands whatever follows; of the rest the last word counts."""
        if self.outcome not in FAILURES:
            self.outcome, self.message = outcome, message


class Reporter:
    """The hooks."""

    def __init__(self, orders: dict[str, Any]) -> None:
        self.channel = Channel()
        self.say = self.channel.say
        self.wanted = Wanted(orders["wanted"])
        self.by_path = orders.get("by_path", False)
        self.part, self.parts = orders.get("part", (0, 1))
        """Which part of all files this process runs, and how many there are; each process runs one."""
        self.attempt: Attempt | None = None
        self.root = ""
        self.unread_late = False
        """Whether there was no time to read a file of tests."""
        self.patterns: list[str] = []
        self.alarm: Alarm | None = None
        self.failures = Failures()
        self.unread: dict[str, str] = {}
        """What is wrong with files that cannot be collected."""
        self.found = 0
        self.told: set[str] = set()
        self.left_out: set[str] = set()
        self.ends_at = float("inf")
        """When the time of the run is up, by `clock`."""
        self.late_s, self.began = float("inf"), 0.0
        """How long a test may run, and when what runs began."""
        self.broken: list[str] = []
        self.say("open")

    def start(self, orders: dict[str, Any]) -> None:
        """Open the report; before a test can run."""
        self.timeouts_left = orders["max_timeouts"]
        self.must_pass = frozenset(orders["must_pass"])
        self.regressions_left = orders["max_regressions"]
        self.alarm = Alarm(orders["cpu_s"], orders["wall_s"])
        self.ends_at = clock() + orders["run_s"]
        self.late_s = orders["late_s"]
        self.channel.open(orders["report"], orders["nonce"])

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
        """Whether a file or folder is passed over: no wanted test is in it, or another process runs it."""
        if self.elsewhere(path) and os.path.isfile(path) and os.path.basename(path) not in SHARED_FILES:
            return True
        if self.wanted.ignores(path):
            return True
        if clock() >= self.ends_at and self.has_tests(path):
            file = os.path.relpath(path, self.root).replace(os.sep, "/")
            for name in _functions(path) or [""]:
                self.say("late", id=file + name)
            self.unread_late = True
            return True
        return None

    def has_tests(self, path: str) -> bool:
        """Whether the file is named as files of tests are."""
        return any(fnmatch(os.path.basename(path), pattern) for pattern in self.patterns) and os.path.isfile(path)

    def elsewhere(self, path: str) -> bool:
        """Whether the file is another process's."""
        return bool(self.parts > 1 and crc32(path.encode("utf-8", "surrogateescape")) % self.parts != self.part)

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makeitem(self, collector: pytest.Collector, name: str) -> list[pytest.Item] | None:
        """A function or class is passed over when no wanted test is in it."""
        return [] if self.wanted.passes_over(collector, name) else None

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Iterator[None]:
        items[:] = [item for item in items if not self.elsewhere(_file(item))]
        self.found = len(items)
        yield
        if self.wanted.ids:
            items[:] = [item for item in items if self.wanted.covers(item.nodeid)]

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Iterator[None]:
        result: Any = yield from self.guarded(cpu=False)
        report = result.get_result()
        if report.failed and self.is_late():  # the time was up while the file was imported
            report.outcome, report.longrepr, report.result = "passed", None, []
            self.say("late", id=report.nodeid)
        call = getattr(report, "call", None)  # there until this hook ends
        if report.failed and call is not None and call.excinfo is not None:
            error = call.excinfo.value
            cause = error.__cause__ if isinstance(error, pytest.Collector.CollectError) else error
            told = isinstance(cause, (ImportError, SyntaxError)) or cause is error
            self.unread[report.nodeid] = self.text(report, cause if told else None, collector)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            message = self.unread.pop(report.nodeid, None)
            message = self.text(report) if message is None else message
            self.say("broken", id=report.nodeid or ".", message=message)
            self.broken.append(report.nodeid + "::")

    # -- the tests

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> None:
        self.regressions_left -= sum(each.startswith(tuple(self.broken)) for each in self.must_pass)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        if self.regressions_left <= 0:
            self.left_out.add(item.nodeid)
            self.say("left", id=item.nodeid)
            return True
        if clock() >= self.ends_at:
            self.say("late", id=item.nodeid)
            return True
        if self.timeouts_left <= 0:
            self.attempt = Attempt(item.nodeid)
            self.attempt.learn("skipped", "not run: too many tests before it ran out of time")
            self.finish(self.attempt)
            return True
        self.say("start", id=item.nodeid)
        self.attempt = Attempt(item.nodeid)
        return None

    def guarded(self, *, cpu: bool = True) -> Generator[None, Any, Any]:
        """Until the alarm rings; at the latest when the time of the run is up. A template has no alarm."""
        if self.alarm is None:
            return (yield)
        self.began = clock()
        self.alarm.arm(max(min(self.ends_at - clock(), self.late_s), SHORTEST_S), cpu=cpu)
        try:
            return (yield)
        finally:
            self.alarm.disarm()

    def is_late(self) -> bool:
        """Whether what runs was ended for the sake of the others, and not because it took longer than a test may."""
        now = clock()
        return self.rang and (now >= self.ends_at or now - self.began >= self.late_s)

    @property
    def rang(self) -> bool:
        """Whether the alarm has ended what was running."""
        return self.alarm is not None and self.alarm.rang

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        self.attempt = Attempt(item.nodeid)  # a plugin that runs a failed test again begins here
        if self.alarm is not None:
            self.alarm.rang = False
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
        if self.attempt is not None and self.attempt.nodeid == item.nodeid:
            if self.attempt.outcome == "late" or self.is_late():
                report.outcome, report.longrepr = "skipped", (item.nodeid, 0, "the time of the run is up")
                self.attempt.outcome = "late"
                return
            outcome = self.judge(report, call)
            if outcome == "failed" and _is_unexpected_pass(item, report, call):
                outcome, self.attempt.unexpected = "passed", True
            if outcome == "timeout" and report.passed:  # the test swallowed the alarm
                report.outcome, report.longrepr = "failed", "ran out of time"
            # That a set-up or a tear-down passed says nothing of the test.
            if outcome != "passed" or report.when == "call" or hasattr(report, "wasxfail"):
                error = call.excinfo.value if call.excinfo is not None else None
                self.attempt.learn(outcome, self.text(report, error, item) if outcome != "passed" else "")

    def text(self, report: Any, error: BaseException | None = None, node: Any = None) -> str:
        """What a failure says."""
        said = report.longrepr
        if isinstance(said, tuple):  # skipped: where, and why
            return str(said[-1])
        generic = not said or type(said).__name__ in TRACEBACKS or type(error).__name__ == "UnexpectedException"
        generic = generic or isinstance(error, (ImportError, SyntaxError))
        try:
            if generic and error is not None:
                return self.failures.told(error, str(getattr(node, "path", None) or getattr(node, "fspath", "")))
        except Exception:  # an exception of the candidate's may break whatever looks at it
            pass
        return self.failures.plain(str(said) if said else "")

    def judge(self, report: pytest.TestReport, call: pytest.CallInfo[None]) -> str:
        raised = call.excinfo
        if self.rang or (report.failed and raised is not None and _is_timeout(raised.value)):
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
        if attempt is None or attempt.nodeid != report.nodeid or (attempt.unexpected and report.when == "call"):
            return
        if report.failed:
            attempt.learn("failed", self.text(report))

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        if self.attempt is not None and self.attempt.nodeid == nodeid:
            self.finish(self.attempt)

    def finish(self, done: Attempt) -> None:
        self.attempt = None
        if done.outcome == "late":
            self.say("late", id=done.nodeid)
            return
        if not done.outcome:
            done.learn("error", "the test was not called")
        self.timeouts_left -= done.outcome == "timeout"
        self.regressions_left -= done.outcome != "passed" and done.nodeid in self.must_pass
        self.told.add(done.nodeid)
        self.say(
            "test",
            id=done.nodeid,
            outcome=done.outcome,
            seconds=round(clock() - done.began, 6),
            message=done.message,
            unexpected=done.unexpected and done.outcome == "passed",
        )

    # -- after the tests

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Iterator[None]:
        yield
        if self.attempt is not None:
            self.finish(self.attempt)
        if self.unread_late and not self.found and session.exitstatus == NOTHING_COLLECTED:
            session.exitstatus, self.found = 0, 1  # there are tests, and there was no time to collect one
        self.say(
            "end", exit=int(session.exitstatus), collected=self.found, tests=len(self.told), left_out=len(self.left_out)
        )


def _functions(path: str) -> list[str]:
    """The tests in a file, as far as a look at its lines tells."""
    try:
        with open(path, encoding="utf-8", errors="replace") as text:
            return ["::" + name for name in FUNCTION.findall(text.read())]
    except OSError:
        return []


def _file(item: Any) -> str:
    return str(getattr(item, "path", None) or item.fspath)


def _is_unexpected_pass(item: pytest.Item, report: pytest.TestReport, call: pytest.CallInfo[None]) -> bool:
    """Whether a test that is marked as a strict expected failure passed. Where it could be pretended, by raising what
    unittest raises, the test would pass by any failure too."""
    if call.excinfo is None:
        return report.when == "call" and str(report.longrepr).startswith("[XPASS(strict)]")
    said = str(call.excinfo.value) if isinstance(call.excinfo.value, pytest.fail.Exception) else ""
    places = (getattr(item, "obj", None), getattr(item, "cls", None))
    marked = any(getattr(place, "__unittest_expecting_failure__", False) for place in places)
    return marked and said.startswith("Unexpected success")


def _is_timeout(error: BaseException) -> bool:
    """The alarm's, or that of a plugin that ends slow tests."""
    said = str(error) if isinstance(error, pytest.fail.Exception) else ""
    return isinstance(error, OutOfTime) or re.match(r"Timeout \(?>", said) is not None


def begin(orders: dict[str, Any]) -> Callable[[pytest.Config], None]:
    """Called once: open the report, and return the hook that sets it all to work."""
    return first_hook(started(orders), orders["plugins"])


def started(orders: dict[str, Any]) -> Reporter:
    """A reporter whose report is open; what was planted is deleted."""
    for copy in orders["copies"]:
        shutil.rmtree(copy, ignore_errors=True)
    clean_environment(orders["folder"], orders["plugins"])
    reporter = Reporter(orders)
    reporter.start(orders)
    return reporter


def first_hook(reporter: Reporter, names: Collection[str], *others: object) -> Callable[[pytest.Config], None]:
    """The hook that sets the reporter, and other plugins, to work, and hides the modules of these names."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
        for module in [m for m in sys.modules if m.split(".")[0] in names]:
            del sys.modules[module]
        if hasattr(early_config.known_args_namespace, "cov_source"):
            early_config.known_args_namespace.cov_source = None  # a coverage threshold is no test
        for plugin in (reporter, *others):
            early_config.pluginmanager.register(plugin)

    return pytest_load_initial_conftests


def clean_environment(folder: str, plugins: Collection[str]) -> None:
    """Take back what made pytest find the planted plugins, so that tests and what they start do not see them."""
    if "PYTHONPATH" in os.environ:
        rest = [entry for entry in os.environ["PYTHONPATH"].split(os.pathsep) if entry != folder]
        _set("PYTHONPATH", os.pathsep.join(rest))
    sys.path[:] = [entry for entry in sys.path if entry != folder]
    _set("PYTEST_PLUGINS", ",".join(p for p in os.environ.get("PYTEST_PLUGINS", "").split(",") if p not in plugins))
    options = os.environ.get("PYTEST_ADDOPTS", "")
    for name in plugins:
        options = options.replace("-p " + name, "")
    _set("PYTEST_ADDOPTS", options.strip())


def _set(variable: str, value: str) -> None:
    if value:
        os.environ[variable] = value
    else:
        os.environ.pop(variable, None)
