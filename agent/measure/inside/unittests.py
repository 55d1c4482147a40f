"""Runs unittest's own program, and reports from inside the sandbox how each test ended.

It is written into a package of a random name and run with `python -m`. Stdlib only, Python 3.8 and later.
Invariant: each outcome is decided here and passed on to unittest's own result, so that both agree.
"""

from __future__ import annotations

import os
import sys
import unittest
from collections.abc import Callable, Iterator
from typing import Any

from .account import Account, Attempt, clock, getpid, open_channel
from .alarm import OutOfTime
from .failures import Failures
from .wanted import covers, numbered

FIXTURES = ("_handleClassSetUp", "_handleModuleFixture", "_tearDownPreviousClass", "_handleModuleTearDown")
"""Methods of a suite that call the fixtures of classes and modules."""

REMOTE = "said in another process"
"""The first argument of an error from another process; its other arguments are the outcome and the message."""
RUNNER: Any = unittest.TextTestRunner
SUITE: Any = unittest.TestSuite
CASE: Any = unittest.TestCase
LOADER: Any = unittest.TestLoader
PROGRAM: Any = unittest.TestProgram
HOLDER: Any = getattr(unittest.suite, "_ErrorHolder")  # noqa: B009  # what suites have for such errors
"""Classes of unittest with private parts that are changed here."""

realpath, relpath = os.path.realpath, os.path.relpath


class UnittestSession:
    """The outermost run of a unittest runner, one per process."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.account = Account(request, open_channel(request))
        self.root = request["root"]
        self.wanted = frozenset(request["wanted"])
        self.files = frozenset(realpath(os.path.join(self.root, each.split("::")[0])) for each in self.wanted)
        self.names = Names(self.root)
        self.failures = Failures(self.root)
        self.planned: dict[str, tuple[Any, str]] = {}
        """By id: the class of a test, and its title."""
        self.failed: dict[str, str] = {}
        """Errors of classes and modules whose set-up failed, by dotted name."""
        self.skipped: dict[str, str] = {}
        self.late: set[str] = set()
        """Classes and modules whose fixtures there was no time for, by dotted name."""
        self.before: Callable[[], None] | None = None
        """Called when the tests are known."""
        self.results: tuple[type, ...] = (ReportingResult,)
        """The result classes of tests with an alarm."""
        self.process = getpid()
        self.running = self.parallel = self.done = False

    def attach(self) -> None:
        """Make the first runner report its tests."""
        original = RUNNER.run

        def run(runner: Any, test: Any) -> Any:
            return original(runner, test) if self.running or self.done else self.run(runner, test, original)

        RUNNER.run = run
        for name in FIXTURES:
            setattr(SUITE, name, self.guarded(name, getattr(SUITE, name)))
        CASE.__call__ = self.called(CASE.__call__)

    def run(self, runner: Any, test: Any, original: Callable[[Any, Any], Any]) -> Any:
        """Run those of these tests that are wanted, with a reporting result."""
        make = runner._makeResult

        def made() -> Any:
            result = make()
            result.__class__ = type("Result", (ReportingResult, type(result)), {"session": self})
            result.begin()
            return result

        runner._makeResult = made
        self.take(test)
        self.parallel = hasattr(test, "subsuites")
        self.running = True
        result = original(runner, test)
        self.running, self.done = False, True
        self.finish()
        return result

    def take(self, suite: Any) -> None:
        """Reduce a suite to the wanted tests, and record what is known about them."""
        if self.before is not None:
            self.before()
        if self.wanted:
            narrow(suite, lambda each: covers(self.wanted, self.names.known(each)))
        self.planned.clear()
        names = Names(self.root)
        for test in leaves(suite):
            self.planned[names.name(test)] = (type(test), title(test))

    def finish(self) -> None:
        """Report why tests did not run."""
        for test, (kind, words) in self.planned.items():
            if test in self.account.reported:
                continue
            holders = ("%s.%s" % (kind.__module__, kind.__qualname__), kind.__module__)
            failed = next((self.failed[each] for each in holders if each in self.failed), None)
            skipped = next((self.skipped[each] for each in holders if each in self.skipped), None)
            if failed is not None:
                self.account.end(test, "error", failed, title=words)
            elif skipped is not None:
                self.account.end(test, "skipped", skipped, title=words)
            elif self.late.intersection(holders):
                self.account.interrupt(test, words)
            elif self.account.finished:
                self.account.leave_out(test, words)
            else:
                self.account.end(test, "error", "the test was not run", title=words)

    @property
    def guards(self) -> bool:
        """Whether this process has an alarm because it runs tests itself."""
        return self.running and (not self.parallel or getpid() != self.process)

    def guarded(self, name: str, fixture: Callable[..., None]) -> Callable[..., None]:
        """Run a fixture of a class or module with the time of one test."""

        def call(suite: Any, *arguments: Any) -> None:
            result = arguments[-1]
            if not self.guards or self.account.alarm.armed or not isinstance(result, self.results):
                return fixture(suite, *arguments)
            self.account.arm()
            try:
                fixture(suite, *arguments)
            except OutOfTime:
                self.account.alarm.disarm()
                self.out_of_time(name, type(arguments[0]), result)
            finally:
                self.account.alarm.disarm()

        return call

    def out_of_time(self, name: str, kind: type, result: Any) -> None:
        """Record that a fixture timed out: that of the next test's class or module, whose tests then do not run, or
        that of the previous class."""
        holder = "%s.%s" % (kind.__module__, kind.__qualname__)
        if name == "_handleClassSetUp":
            kind._classSetupFailed = True  # type: ignore[attr-defined]  # where suites look
            what = "setUpClass (%s)" % holder
        elif name == "_handleModuleFixture":
            result._moduleSetUpFailed = True
            what = "setUpModule (%s)" % kind.__module__
        else:
            before = getattr(result, "_previousTestClass", None) or kind
            what = "tearDownClass (%s.%s)" % (before.__module__, before.__qualname__)
        result.addError(HOLDER(what), sys.exc_info())

    def called(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Return a replacement for the call of a test that catches the alarm, which may ring between the parts of the
        test."""

        def call(test: Any, *arguments: Any, **options: Any) -> Any:
            try:
                return original(test, *arguments, **options)
            except OutOfTime:
                if not (arguments and isinstance(arguments[0], self.results)):
                    raise

        return call

    def text(self, test: Any, err: Any) -> str:
        """The message of a failure."""
        try:
            remote = _remote_error(err)
            if remote is not None:
                return remote[1]
            return self.failures.message(err[1], file_of(test))
        except Exception:  # the candidate's own exception may break code that inspects it
            return self.failures.plain(str(err[0]))


class ReportingResult:
    """A mixin that reports tests; it comes first among the base classes of a result. A failure stays a failure,
    whatever follows."""

    session: UnittestSession

    def begin(self) -> None:
        self.attempt = Attempt("")
        """The running test; empty: none."""
        self.errors_reported = 0

    @property
    def shouldStop(self) -> bool:  # noqa: N802  # unittest's name
        return self.session.account.finished

    @shouldStop.setter
    def shouldStop(self, stop: bool) -> None:  # noqa: N802
        """Ignore it: all tests run, whatever fails."""

    @property
    def failfast(self) -> bool:
        return False

    @failfast.setter
    def failfast(self, fast: bool) -> None:
        """Ignore it."""

    def startTest(self: Any, test: Any) -> None:  # noqa: N802
        self.attempt = Attempt(self.session.names.name(test))
        self.errors_reported, self.seconds = 0, None
        self.session.account.begin(self.attempt.test)
        super().startTest(test)  # type: ignore[misc]  # of the runner's own result
        if self.session.guards:
            self.session.account.arm()

    def stopTest(self: Any, test: Any) -> None:  # noqa: N802
        account, attempt = self.session.account, self.attempt
        account.alarm.disarm()
        if not attempt.test:
            super().stopTest(test)  # type: ignore[misc]
            return
        seconds = clock() - attempt.began if self.seconds is None else self.seconds
        if account.alarm.rang and not account.interrupted:
            if not self.errors_reported:  # the test swallowed the alarm
                super().addError(test, (OutOfTime, OutOfTime("ran out of time"), None))  # type: ignore[misc]
            attempt.outcome = "timeout"
        super().stopTest(test)  # type: ignore[misc]
        if account.interrupted or attempt.outcome == "late":
            account.interrupt(attempt.test, title(test))
        else:
            outcome = attempt.outcome or "error"
            account.end(attempt.test, outcome, attempt.message, seconds, title(test), attempt.unexpected)
        self.attempt, account.alarm.rang = Attempt(""), False

    def addDuration(self: Any, test: Any, elapsed: float) -> None:  # noqa: N802
        self.seconds = elapsed
        if hasattr(unittest.TestResult, "addDuration"):  # from Python 3.12 on
            super().addDuration(test, elapsed)  # type: ignore[misc]

    def addSuccess(self: Any, test: Any) -> None:  # noqa: N802
        if not self.session.account.interrupted:
            super().addSuccess(test)  # type: ignore[misc]
            self.attempt.learn("passed")

    def addError(self: Any, test: Any, err: Any) -> None:  # noqa: N802
        outcome = "late" if self.session.account.interrupted else (_remote_error(err) or ("error", ""))[0]
        if outcome == "late":
            self.attempt.outcome = outcome
            if not self.attempt.test:
                self.session.late.add(_where(test))
            return
        super().addError(test, err)  # type: ignore[misc]
        if self.attempt.test and hasattr(test, "_testMethodName"):
            self.errors_reported += 1
            self.attempt.learn(outcome, self.session.text(test, err))
        else:
            self.broke(test, self.session.text(test, err))

    def broke(self: Any, test: Any, message: str) -> None:
        """Record that set-up or tear-down of a class or module failed."""
        if hasattr(test, "_testMethodName"):  # of a class in another process
            what, where = "", "%s.%s" % (type(test).__module__, type(test).__qualname__)
        else:
            what, where = str(test.id()), _where(test)
        if what.startswith("tearDown"):
            self.session.account.say("broken", id=what, message=message)
        else:
            self.session.failed[where] = message

    def addFailure(self: Any, test: Any, err: Any) -> None:  # noqa: N802
        if not self.session.account.interrupted:
            self.errors_reported += 1
            super().addFailure(test, err)  # type: ignore[misc]
            self.attempt.learn("failed", self.session.text(test, err))

    def addSubTest(self: Any, test: Any, subtest: Any, err: Any) -> None:  # noqa: N802
        if self.session.account.interrupted:
            return
        super().addSubTest(test, subtest, err)  # type: ignore[misc]
        if err is not None:
            self.errors_reported += 1
            self.attempt.learn("failed", self.session.text(test, err))

    def addSkip(self: Any, test: Any, reason: str) -> None:  # noqa: N802
        super().addSkip(test, reason)  # type: ignore[misc]
        if not self.attempt.test and not hasattr(test, "_testMethodName"):
            self.session.skipped[_where(test)] = reason
        elif not self.attempt.test:  # Python 3.12.1 starts no test that is skipped
            self.session.account.end(self.session.names.name(test), "skipped", reason, title=title(test))
            if self.session.parallel:  # if another process skips a class, it reports one of the tests
                self.session.skipped["%s.%s" % (type(test).__module__, type(test).__qualname__)] = reason
        else:
            self.attempt.learn("skipped", reason)

    def addExpectedFailure(self: Any, test: Any, err: Any) -> None:  # noqa: N802
        if not self.session.account.interrupted:
            super().addExpectedFailure(test, err)  # type: ignore[misc]
            self.attempt.learn("passed")

    def addUnexpectedSuccess(self: Any, test: Any) -> None:  # noqa: N802
        super().addUnexpectedSuccess(test)  # type: ignore[misc]
        self.attempt.learn("passed")
        self.attempt.unexpected = True


class Names:
    """The ids of tests: `file::Class::test`, with the file relative to the workspace; for a module that cannot be
    imported, its file."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.seen: dict[str, int] = {}

    def name(self, test: Any) -> str:
        """Return the id of a test. A repeated id is another test, for example of a class that two modules share."""
        return numbered(self.known(test), self.seen)

    def known(self, test: Any) -> str:
        if type(test).__name__ == "_FailedTest":
            return self.unread(str(test.id()).partition("._FailedTest.")[2])
        if not hasattr(test, "_testMethodName"):
            return str(test.id())
        documented = getattr(test, "_dt_test", None)
        if documented is not None:
            return "%s::%s" % (self.relative_path(documented.filename or ""), documented.name)
        file = file_of(test)
        where = self.relative_path(file) if file else type(test).__module__
        return "%s::%s::%s" % (where, type(test).__qualname__, str(test.id()).rpartition(".")[2])

    def relative_path(self, file: str) -> str:
        return relpath(realpath(file), self.root)

    def unread(self, module: str) -> str:
        """The file of a module, if it has one."""
        path = module.replace(".", os.sep)
        for folder in [self.root, *sys.path]:
            for file in (path + ".py", os.path.join(path, "__init__.py")):
                whole = realpath(os.path.join(folder, file))
                if os.path.isfile(whole) and whole.startswith(self.root + os.sep):
                    return relpath(whole, self.root)
        return path + ".py"


class Program(PROGRAM):  # type: ignore[misc]  # as above
    """unittest's program, which imports only the files of wanted tests if possible."""

    session: UnittestSession

    def createTests(self, *arguments: Any, **options: Any) -> None:  # noqa: N802
        session = self.session
        if not session.files:
            super().createTests(*arguments, **options)
            return
        names: Any = getattr(self, "testNames", None)
        if names and not arguments and not options:
            self.testNames = [each for each in names if _may_hold(each, session.files)]
        with OnlyFiles(session.files):
            super().createTests(*arguments, **options)
        for file in self.missing():
            self.test.addTests(self.testLoader.loadTestsFromName(_dotted(file)))
        if self.missing():  # another file creates them
            self.testNames = names
            super().createTests(*arguments, **options)

    def missing(self) -> list[str]:
        """The wanted files without a test."""
        known = [self.session.names.known(test) for test in leaves(self.test)]
        there = {realpath(os.path.join(self.session.root, each.split("::")[0])) for each in known}
        return sorted(self.session.files - there)


class OnlyFiles:
    """Limits unittest's discovery to these files while active."""

    def __init__(self, files: frozenset[str]) -> None:
        self.files = files
        self.original = LOADER._match_path

    def __enter__(self) -> None:
        original, files = self.original, self.files

        def match(loader: Any, path: str, full_path: str, pattern: str) -> bool:
            return bool(original(loader, path, full_path, pattern)) and realpath(full_path) in files

        LOADER._match_path = match

    def __exit__(self, *error: object) -> None:
        LOADER._match_path = self.original


def leaves(suite: Any) -> Iterator[Any]:
    """The tests in a suite of any kind."""
    held = _held(suite)
    if held is None:
        yield suite
    else:
        for each in held:
            if each is not None:
                yield from leaves(each)


def narrow(suite: Any, keep: Callable[[Any], bool]) -> bool:
    """Reduce a suite to the tests to keep. Returns whether any is left."""
    held = _held(suite)
    if held is None:
        return keep(suite)
    held[:] = [each for each in held if each is not None and narrow(each, keep)]
    return bool(held)


def _held(suite: Any) -> Any:
    """The list of tests in a suite; None for a test."""
    held = getattr(suite, "subsuites", None)
    return held if held is not None else getattr(suite, "_tests", None)


def title(test: Any) -> str:
    """The first line of a test's documentation."""
    try:
        return str(test.shortDescription() or "")
    except Exception:  # from the candidate's own code
        return ""


def file_of(test: Any) -> str:
    """The file of a test's class; "" if it has none."""
    return getattr(sys.modules.get(type(test).__module__), "__file__", None) or ""


def _where(holder: Any) -> str:
    """The dotted name of the class or module that a suite's error is about."""
    return str(holder.id()).rstrip(")").partition(" (")[2]


def _remote_error(err: Any) -> tuple[str, str] | None:
    """The outcome of a test in another process, and its message."""
    arguments = err[1].args if isinstance(err[1], RuntimeError) else ()
    return (str(arguments[1]), str(arguments[2])) if len(arguments) == 3 and arguments[0] == REMOTE else None


def _may_hold(name: str, files: frozenset[str]) -> bool:
    """Whether a dotted name may be a test in one of these files; a name without a known file may be one, too."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        path = realpath(os.path.join(*parts[:end]))
        if os.path.isfile(path + ".py"):
            return path + ".py" in files
        if os.path.isdir(path):
            return any(file.startswith(path + os.sep) for file in files)
    return True


def _dotted(file: str) -> str:
    """The module name of a file, as imported from here."""
    return os.path.splitext(relpath(file))[0].replace(os.sep, ".")


def main(request: dict[str, Any]) -> None:
    """Run the rest of the command line like `python -m unittest`."""
    session = Program.session = UnittestSession(request)
    session.attach()
    sys.argv[0] = "python -m unittest"
    program = Program(module=None, exit=False)
    status = 0 if program.result.wasSuccessful() else 1
    session.account.close(status)
    sys.exit(status)
