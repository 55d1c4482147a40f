"""What a person should know before the search and after the first test run: how the tests are run, which of them have
to pass, and which modules are missing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator

from agent.counting import counted, first_of
from agent.measure import SuiteReport
from agent.measure.ids import file_of
from agent.measure.messages import INSTALL, missing_package

NAMED = 3
"""How many tests or modules a line names."""
_MISSING = re.compile(r"No module named '(\w+)")


def goal_line(goals: tuple[str, ...]) -> str:
    """Which tests have to pass."""
    return f"goal     {counted(len(goals), 'test has', 'tests have')} to pass: {first_of(goals, NAMED)}"


def missing_modules(root: SuiteReport, goals: Collection[str]) -> Iterator[str]:
    """Yield a line that names the modules that the tests cannot import, the most frequent first, one with the remedy,
    and one if such tests are not among the goals; nothing if no module is missing."""
    texts = root.messages.values() if root.messages else (root.output,)
    wanted = Counter(module for text in texts for module in dict.fromkeys(_MISSING.findall(text)))
    if wanted:
        modules = [f"{module} ({counted(count, 'failure')})" for module, count in wanted.most_common()]
        yield f"missing  modules that the tests import: {first_of(modules, NAMED)}"
        yield f"         {INSTALL}"
    wished = {*goals, *map(file_of, goals)}
    lacking = [test for test in root.failures if missing_package(root.messages.get(test, "")) and test not in wished]
    if goals and lacking:
        yield f"         {counted(len(lacking), 'test lacks', 'tests lack')} them and cannot be repaired: not goals"
