"""A sweep runs the tests of a project on many versions of its files, at a fraction of the cost of separate runs.

It is for facts in bulk, such as which mutants the tests kill. It trusts the code under test more than the measurements
of a search do (`agent.measure`), and never decides whether a patch is good.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from agent.errors import UsageError
from sandboxes import Provider, Sandbox, Snapshot

Version = Mapping[str, str]
"""The new texts of files, by path."""

PROGRAM = "/tmp/ramify-sweep.py"  # noqa: S108 - the sandbox's own
ORDER, REPORT = "/tmp/ramify-order.json", "/tmp/ramify-report.jsonl"  # noqa: S108 - the same
_VARIABLE = re.compile(r"\w+=")


@dataclass(frozen=True, slots=True)
class Tested:
    """How the tests of a version ended."""

    outcomes: Mapping[str, str]
    """`passed`, `failed` or `skipped` by test id; empty if there is a problem."""
    problem: str = ""

    @property
    def passed(self) -> frozenset[str]:
        """The tests that passed."""
        return frozenset(test for test, outcome in self.outcomes.items() if outcome == "passed")


@dataclass(frozen=True, slots=True)
class Sweep:
    """Runs the tests of a snapshot's workspace."""

    provider: Provider
    base: Snapshot
    test_command: str
    """Runs pytest, from the root of the workspace."""
    timeout_s: float = 10.0
    """The time limit for one version."""

    def __call__(self, versions: Sequence[Version]) -> Iterator[Tested]:
        """Run the tests with the files of each version in place, in order, all in one fork.

        Raises:
            UsageError: the command does not run pytest, or the tests cannot be run with it.
        """
        variables, arguments = parsed(self.test_command)
        order = {"arguments": arguments, "timeout_s": self.timeout_s, "versions": [dict(v) for v in versions]}
        with self.provider.at(self.base) as box:
            box.write(PROGRAM, (Path(__file__).parent / "inside.py").read_bytes())
            box.write(ORDER, json.dumps(order).encode())
            limit_s = 60 + self.timeout_s * len(versions)
            done = box.exec(["env", *variables, "python3", "-B", PROGRAM, ORDER, REPORT], timeout_s=limit_s)
            lines = lines_of(box, REPORT)
            if len(lines) < len(versions):
                stderr = done.stderr[-500:].decode(errors="replace").strip()
                raise UsageError(
                    f"the tests cannot be run by {self.test_command!r}; the sandbox's python3 needs pytest and what "
                    f"they import (--requirement, or --image): {stderr}"
                )
        yield from (_tested(json.loads(line)) for line in lines)


def lines_of(box: Sandbox, report: str) -> list[bytes]:
    """The lines of a report that a program wrote in the sandbox; none if the program ended before writing it."""
    try:
        return box.read(report).splitlines()
    except OSError:
        return []


def _tested(line: Mapping[str, object]) -> Tested:
    if isinstance(tests := line.get("tests"), dict):
        return Tested(tests)
    return Tested({}, "timeout" if line.get("timeout") else str(line.get("broken")))


def parsed(command: str) -> tuple[list[str], list[str]]:
    """The variables that a command such as `A=1 python3 -m pytest -q tests` sets, and the arguments of pytest.

    Raises:
        UsageError: it does not run pytest.
    """
    words = shlex.split(command)
    for place, word in enumerate(words):
        if Path(word).name in ("pytest", "py.test"):
            return [*takewhile(_VARIABLE.match, words)], words[place + 1 :]
    raise UsageError(f"{command!r} does not run pytest: only such tests can be swept")
