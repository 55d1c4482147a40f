"""A small project with two bugs in one file, each with a failing test, for searches that bring edits together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import MappingProxyType

from agent.actions import Edit
from agent.policy import Position, Proposal
from agent.run.tree.choice import Choice
from agent.run.tree.tree import Tree
from tests.projects import RUNNER, commit

SOURCE = """def low(numbers):
    return max(numbers)


def twice(number):
    return 2 * number


def high(numbers):
    return min(numbers)
"""
TESTS = """from halves import high, low, twice


def test_low():
    assert low([1, 2]) == 1


def test_twice():
    assert twice(2) == 4


def test_high():
    assert high([1, 2]) == 2
"""
LOW = Edit("halves.py", "    return max(numbers)\n\n\ndef twice", "    return min(numbers)\n\n\ndef twice")
HIGH = Edit("halves.py", "def high(numbers):\n    return min", "def high(numbers):\n    return max")
SPOILT = Edit("halves.py", "    return max(numbers)\n\n\ndef twice", "    return 0\n\n\ndef twice")


def halves(repo: Path, files: Mapping[str, str] = MappingProxyType({})) -> Path:
    """The project, with `files` besides or in place of its own. `QUICK` runs its tests."""
    own = {"halves.py": SOURCE, "test_halves.py": TESTS, "run.py": RUNNER, ".gitignore": "__pycache__/\n"}
    return commit(repo, {**own, **files})


@dataclass(frozen=True)
class Planned:
    """A search that makes these choices, one after another."""

    choices: tuple[Choice, ...]

    def select(self, tree: Tree, rng: Random) -> Choice | None:
        if tree.in_flight or tree.ended_expansions >= len(self.choices):
            return None
        choice = self.choices[tree.ended_expansions]
        return choice if tree.expandable(choice.node) else None


@dataclass(frozen=True)
class Doing:
    """A policy that makes the n-th of these edits as the n-th child of any node that it applies to, if any."""

    edits: tuple[Edit, ...]
    policy_id: str = "doing/1"

    def propose(self, position: Position, rng: Random) -> Proposal:
        text = position.box.read("halves.py").decode()
        for edit in self.edits[position.index :]:
            if edit.old in text:
                return Proposal((edit,), label=f"{self.policy_id} {edit.new.split()[-1]}")
        return Proposal(())
