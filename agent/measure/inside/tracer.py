"""The pytest plugin that records, from inside the sandbox, which lines each test executes.

It is written beside the reporter into its own package, which calls `begin`. It uses the sandbox's own coverage package,
or the copy written with it.
PYTEST_DONT_REWRITE
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest


class Tracer:
    """Records coverage of the workspace with one context for each test, and the empty context for code outside the
    tests."""

    def __init__(self, coverage: Any, request: dict[str, Any]) -> None:
        self.request = request
        self.tracing = coverage.Coverage(
            data_file=None, config_file=False, include=[request["root"] + "/*"], omit=request["omit"]
        )
        self.tracing.start()

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.tracing.switch_context(item.nodeid)
        yield
        self.tracing.switch_context("")

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Iterator[None]:
        yield
        self.tracing.stop()
        data, root = self.tracing.get_data(), self.request["root"]
        lines: dict[str, dict[str, list[int]]] = {}
        for file in data.measured_files():
            for line, contexts in data.contexts_by_lineno(file).items():
                for context in contexts:
                    lines.setdefault(context, {}).setdefault(os.path.relpath(file, root), []).append(line)
        with open(self.request["lines"], "w") as output:
            json.dump(lines, output)


def find_coverage(folder: str) -> Any:
    """The coverage package; None if this Python cannot import one."""
    try:
        import coverage
    except ImportError:
        sys.path.append(folder)
        try:
            import coverage
        except (ImportError, SyntaxError):  # the copy needs a newer Python
            return None
        finally:
            sys.path.remove(folder)
    return coverage


def begin(request: dict[str, Any]) -> Callable[[pytest.Config], Iterator[None]]:
    """Start tracing if possible, and return the hook that continues it. Called once."""
    coverage = find_coverage(request["library"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tracer = None if coverage is None else Tracer(coverage, request)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_load_initial_conftests(early_config: pytest.Config) -> Iterator[None]:
        if tracer is not None:
            early_config.known_args_namespace.no_cov = True  # pytest-cov would replace this tracer
            early_config.pluginmanager.register(tracer)
        yield

    return pytest_load_initial_conftests
