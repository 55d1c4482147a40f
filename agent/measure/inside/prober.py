"""The pytest plugin that reports, besides outcomes, the values on the way to the first failure.

It is written with the reporter into a package of a random name, and writes to the same report.
PYTEST_DONT_REWRITE
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from .reporter import Reporter, first_hook, started
from .watching import Watch

TESTS = 10
"""Maximum number of watched tests."""


class Prober:
    """The plugin's hooks."""

    def __init__(self, request: dict[str, Any], reporter: Reporter) -> None:
        self.request, self.reporter = request, reporter
        self.left = TESTS
        self.watch: Watch | None = None

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.watch = Watch(self.request["root"], self.request["probes"]) if self.left > 0 else None
        self.left -= 1
        yield
        if self.watch is not None:
            self.reporter.say("values", id=item.nodeid, **self.watch.facts())
            if self.watch.error is not None:
                self.left = 0

    def watched(self) -> Iterator[None]:
        before = sys.gettrace()
        if self.watch is not None:
            sys.settrace(self.watch.enter)
        try:
            yield
        finally:
            if self.watch is not None and sys.gettrace() != self.watch.enter:
                self.watch.stopped = self.watch.stopped or "too many calls were nested, or the code under test ended it"
            sys.settrace(before)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_setup(self) -> Iterator[None]:
        yield from self.watched()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self) -> Iterator[None]:
        yield from self.watched()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Iterator[None]:
        result: Any = yield
        if self.watch is not None and self.watch.error is None and call.excinfo and result.get_result().failed:
            self.watch.learn(call.excinfo.value)


def begin(request: dict[str, Any]) -> Callable[[pytest.Config], None]:
    """Like the reporter's `begin`, with this plugin added."""
    reporter = started(request)
    return first_hook(reporter, request["plugins"], Prober(request, reporter))
