"""A small repository in a real sandbox, measured and judged as a search does it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from agent.evaluate.scorer import StagedScorer
from agent.evaluate.value import EvaluationInput
from agent.evaluate.value.tests import PassingTests
from agent.measure import SuiteReport
from agent.measure.measurer import Measurer, find_baseline
from agent.run.tree.evaluation import Evaluation
from agent.run.tree.node import Node
from agent.task import Task
from sandboxes import Provider, Snapshot, Workspace

ENV = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": "."}
"""The plugins of the Python that runs these tests take seconds to load, and none is needed."""
PYTEST = f"{sys.executable} -m pytest -q -p no:cacheprovider"

CALC = '''"""A calculator."""


def add(a, b):
    return a - b


def double(a):
    return 2 * a
'''
FIXED = CALC.replace("a - b", "a + b")
TESTS = """from calc import add, double


def test_add():
    assert add(1, 2) == 3


def test_double():
    assert double(2) == 4


def test_double_of_nothing():
    assert double(0) == 0
"""
GOAL = "tests/test_calc.py::test_add"
CONFTEST = "import pathlib, sys\n\nsys.path.insert(0, str(pathlib.Path(__file__).parent))\n"
PROJECT = {"calc.py": CALC, "tests/test_calc.py": TESTS, "conftest.py": CONFTEST}

FIXED_PORT = """import socket


def test_a_round_trip():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 8771))
        server.listen()
        with socket.create_connection(("127.0.0.1", 8771)) as client:
            server.accept()[0].close()
            assert client.recv(1) == b""
"""
"""A test of a server that hangs up first: its port is not to be had again for a minute."""


class Lab:
    """A repository and everything that measures its states."""

    def __init__(
        self,
        provider: Provider,
        folder: Path,
        files: Mapping[str, str],
        command: str = PYTEST,
        goals: tuple[str, ...] = (),
        *,
        framework: str = "",
        setup: tuple[str, ...] = (),
        mount: str | None = None,
    ) -> None:
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.provider = provider
        self.task = Task(
            "lab", "It is wrong.", Workspace(path=folder, env=ENV, setup=setup, mount=mount), command, goals
        )
        self.task = replace(self.task, framework=framework, goal_failing=True)
        self.base = provider.create(self.task.workspace)

    def measurer(self) -> Measurer:
        return Measurer(self.provider, self.task, self.base, self.baseline)

    def state(self, files: Mapping[str, str | None]) -> Snapshot:
        """The base state with these files written, or removed where the text is None."""
        with self.provider.at(self.base) as box:
            for name, text in files.items():
                if text is None:
                    box.remove(name)
                else:
                    box.write(name, text.encode())
            return box.snapshot()

    def report(self, files: Mapping[str, str | None], tests: tuple[str, ...] = ()) -> SuiteReport:
        return self.measurer().measure(self.state(files), tests)

    @cached_property
    def baseline(self) -> SuiteReport:
        """The report of the base state."""
        return find_baseline(self.provider, self.task, self.base)

    @cached_property
    def scorer(self) -> StagedScorer:
        """What a search measures and verifies states by."""
        return StagedScorer(self.provider, self.task, self.base, self.baseline, PassingTests())

    def evaluate(self, report: SuiteReport) -> tuple[Evaluation, Evaluation]:
        """The worth of a state with this report, and that of the base state."""
        return PassingTests().evaluate(EvaluationInput(self.scorer.task, (self.root,), report)), self.scorer.root

    def judge(self, snapshot: Snapshot) -> tuple[Evaluation, Evaluation]:
        """The guarded evaluation of a state by all tests, and that of the base state."""
        return self.scorer.assess(snapshot, (self.root,), self.baseline).evaluation, self.scorer.root

    @property
    def root(self) -> Node:
        """The base state as a search has it."""
        return Node(0, (), (), self.base, self.baseline, self.scorer.root)
