"""What a model reads in each kind of task, whole, as files that a person can read: `tests/golden`.

`RAMIFY_UPDATE_GOLDEN=1 pytest tests/test_golden_prompts.py` writes them anew; read the difference before you commit it.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agent.budget import Budget
from agent.engine.components import Components
from agent.evaluate.value.tests import PassingTests
from agent.policy.chat.policy import ChatPolicy
from agent.run.run import Run
from agent.search.auto import Auto
from agent.solver.solve import solve
from sandboxes import Provider
from tests.projects import BUG, FIX, SOURCE, TESTS, commit, task
from tests.scripted import ScriptedModel, answer
from tests.tiers import slow_but

GOLDEN = Path(__file__).parent / "golden"
GREEN = TESTS.replace("mean([]) == 0.0", "mean([4]) == 4")
UNITTEST = """import unittest

from means import mean


class TestMean(unittest.TestCase):
    def test_of_some(self):
        self.assertEqual(mean([1, 2, 3]), 2)
"""
UNRELATED = "def test_clock():\n    assert 1 == 2\n"
RIGHT = ("edit", {"path": "means.py", "old_str": BUG, "new_str": FIX})
IN_THE_SHELL = ("bash", {"command": "sed -i 's/len(numbers) < 0/len(numbers) <= 0/' means.py"})
OWN = {
    "path": "test_nothing.py",
    "file_text": "from means import mean\n\n\ndef test_nothing():\n    assert mean([]) == 0.0\n",
}


@dataclass(frozen=True)
class Mode:
    """A kind of task."""

    files: dict[str, str]
    changes: dict[str, Any] = field(default_factory=dict)


MODES = {
    "goals_known": Mode({"test_means.py": TESTS}, {"goal_failing": True}),
    "goals_unknown_green_base": Mode({"test_means.py": GREEN}),
    "goals_unknown_red_base": Mode({"test_means.py": GREEN, "test_clock.py": UNRELATED}),
    "unittest": Mode({"test_means.py": UNITTEST}, {"test_command": "python -m unittest", "framework": "unittest"}),
    "no_tests": Mode({}),
}


@pytest.mark.namespace
@pytest.mark.parametrize("name", slow_but(["goals_known"], MODES))
def test_a_model_reads_this(provider: Provider, tmp_path: Path, name: str) -> None:
    mode = MODES[name]
    repo = commit(tmp_path / "repo", {"means.py": SOURCE, **mode.files})
    own = [("create", OWN)] if name == "goals_unknown_green_base" else []
    tested = [answer("", RIGHT, *own, ("run_tests", {})), answer("", ("submit", {}))]
    submitted = [answer("", IN_THE_SHELL, ("submit", {})), answer("", ("submit", {}))]
    opening, told = list[str](), list[str]()
    for number, script in enumerate((tested, submitted)):
        model = ScriptedModel(script)
        wanted = task(repo, **({"goal_failing": False} | mode.changes))
        with Run.open(tmp_path / f"run{number}") as run:
            parts = Components(provider, ChatPolicy(model), Auto(), PassingTests(), Budget(), baseline_runs=1)
            assert solve(wanted, parts, run).resolved
            told.append(run.tree[1].steps[0].observations[-1].text)
        opening = [message["content"] for message in model.heard[0]]
    sections = {
        "The system prompt": opening[0],
        "The first message": opening[1],
        "What `run_tests` says after a right change": told[0],
        "What `submit` says to a change that was not shown": told[1],
    }
    text = "\n".join(f"## {title}\n\n{_steady(said)}\n" for title, said in sections.items())
    file = GOLDEN / f"{name}.md"
    if os.environ.get("RAMIFY_UPDATE_GOLDEN"):
        file.write_text(text)
    assert text == file.read_text()


def _steady(text: str) -> str:
    """Without what differs from run to run."""
    return re.sub(r"\b\d+\.\d s\b", "0.1 s", re.sub(r"about \d+ s", "about 1 s", text)).strip()
