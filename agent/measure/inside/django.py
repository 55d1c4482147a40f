"""Runs Django's own test programs (`runtests.py`, `manage.py test`), and reports how each test ended.

It is written into a package of a random name and run with `python -m`, with the program as its argument. Stdlib only,
Python 3.8 and later.
"""

from __future__ import annotations

import argparse
import os
import sys
import unittest
from collections.abc import Callable
from typing import Any

from .account import clock
from .alarm import OutOfTime
from .scripts import ImportListener, run_as_main
from .unittests import REMOTE, OnlyFiles, UnittestSession, realpath

LABELS = {"modules": "failfast", "args": "testrunner"}
"""The option for labels in `runtests.py` and in `manage.py test`, each with an option that only that program has."""


def main(request: dict[str, Any]) -> None:
    """Run the program that the rest of the command line names."""
    session = UnittestSession(request)
    session.attach()
    narrowing = OnlyFiles(session.files)
    if session.files:
        narrowing.__enter__()
        session.before = lambda: narrowing.__exit__()
    take_options(session, request["jobs"])

    def change(module: Any) -> None:
        build_only_wanted(session, module.DiscoverRunner)
        send_messages(session, module.RemoteTestResult)

    sys.meta_path.insert(0, ImportListener(["django.test.runner"], change))
    status = run_as_main(sys.argv[1:])
    session.account.close(status)
    sys.exit(status)


def take_options(session: UnittestSession, jobs: int) -> None:
    """Replace the program's options: the labels by those of the wanted files, and the number of processes."""
    original = argparse.ArgumentParser.parse_args

    def parse_args(parser: Any, *arguments: Any, **options: Any) -> Any:
        parsed = original(parser, *arguments, **options)
        values = vars(parsed)
        name = next((each for each, other in LABELS.items() if each in values and other in values), None)
        if name is not None:
            argparse.ArgumentParser.parse_args = original  # type: ignore[method-assign]
            if session.files:
                relabel(values, name, sorted(session.files))
            if jobs > 1 and "parallel" in values:
                values["parallel"] = jobs
        return parsed

    argparse.ArgumentParser.parse_args = parse_args  # type: ignore[method-assign, assignment]


def build_only_wanted(session: UnittestSession, runner: Any) -> None:
    """Create databases only for the wanted tests, and none if there is no time for any test. Once the time is up,
    databases are not removed: the fork is thrown away."""
    original = runner.build_suite

    def build_suite(self: Any, *arguments: Any, **options: Any) -> Any:
        suite = original(self, *arguments, **options)
        if not session.running and not session.done:
            session.take(suite)
            if session.account.finished:
                session.finish()
                session.done = True
                sys.exit(0)
        return suite

    def teardown_databases(self: Any, *arguments: Any, **options: Any) -> None:
        if not session.account.time_is_up:
            undo(self, *arguments, **options)

    runner.build_suite, undo, runner.teardown_databases = build_suite, runner.teardown_databases, teardown_databases


def send_messages(session: UnittestSession, remote: Any) -> None:
    """Make the processes of a parallel run turn failures into text, use their own alarms, and report durations: an
    exception reaches another process only if its traceback does."""
    session.results += (remote,)
    account, start, stop = session.account, remote.startTest, remote.stopTest
    for name in ("addError", "addFailure", "addExpectedFailure"):
        setattr(remote, name, _with_message(session, getattr(remote, name)))

    def add_sub_test(self: Any, test: Any, subtest: Any, err: Any) -> None:
        if err is not None:
            (self.addError if account.alarm.rang else self.addFailure)(test, err)

    def start_test(self: Any, test: Any) -> None:
        start(self, test)
        self.began = clock()
        account.arm()

    def stop_test(self: Any, test: Any) -> None:
        account.alarm.disarm()
        if account.alarm.rang:
            self.addError(test, (OutOfTime, OutOfTime("ran out of time"), None))
        if not hasattr(unittest.TestResult, "addDuration"):  # before Python 3.12
            self.events.append(("addDuration", self.testsRun - 1, clock() - self.began))
        stop(self, test)
        account.alarm.rang = False

    remote.addSubTest, remote.startTest, remote.stopTest = add_sub_test, start_test, stop_test


def _with_message(session: UnittestSession, original: Callable[..., None]) -> Callable[..., None]:
    def add(self: Any, test: Any, err: Any) -> None:
        original(self, test, _remote_message(session, test, err))

    return add


def _remote_message(session: UnittestSession, test: Any, err: Any) -> Any:
    """Return an error that carries the message of another one, and the outcome that the test has because of it."""
    account = session.account
    outcome = "late" if account.interrupted else "timeout" if account.alarm.rang else "error"
    return RuntimeError, RuntimeError(REMOTE, outcome, session.text(test, err)), None


def relabel(values: dict[str, Any], name: str, files: list[str]) -> None:
    """Limit the discovery of `manage.py test` without labels to those files."""
    given = list(values[name] or ())
    if name == "modules" or given:
        values[name] = [label(file, given) for file in files]
    for other in ("start_at", "start_after"):
        if other in values:
            values[other] = None


def label(file: str, given: list[str]) -> str:
    """The dotted module of a file, starting at the program's folder, or at the start of the given labels."""
    folder = realpath(sys.path[0])
    dotted = os.path.splitext(os.path.relpath(file, folder))[0].replace(os.sep, ".").lstrip(".")
    begins = {each.replace(os.sep, ".").strip(".").split(".")[0] for each in given}
    parts = dotted.split(".")
    begin = next((number for number, part in enumerate(parts) if part in begins), 0)
    return ".".join(parts[begin:])
