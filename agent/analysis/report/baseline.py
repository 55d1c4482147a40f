"""What a person should know before the search and after the first test run: how the tests are run, which of them have
to pass, and which modules are missing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator

from agent.counting import counted, first_of
from agent.evaluate.goal_tests import lacking
from agent.measure import SuiteReport
from agent.measure.ids import file_of
from agent.measure.messages import INSTALL, OWN_COPY, missing_package
from ramify.packages import PACKAGES

NAMED = 3
"""How many tests or modules a line names."""
OURS = frozenset({"ramify", *PACKAGES})
"""Packages that hide the project's own packages of the same name if the tests run with the Python of this program."""
_MISSING = re.compile(r"No module named '(\w+)")


def goal_line(goals: tuple[str, ...]) -> str:
    """Which tests have to pass."""
    return f"goal     {counted(len(goals), 'test has', 'tests have')} to pass: {first_of(goals, NAMED)}"


def installed_copies(root: SuiteReport) -> Iterator[str]:
    """Yield a line for each package that the tests do not take from the checkout, and one with the remedy."""
    for name, file in root.copies.items():
        yield f"warning  the tests import {name} from {file}, not from the checkout: changes to it are not tested"
    if root.copies:
        yield f"         {OWN_COPY}"


def missing_modules(root: SuiteReport, goals: Collection[str]) -> Iterator[str]:
    """Yield a line that names the modules that the tests cannot import, the most frequent first, one with the remedy,
    one if goals are among such tests, and one if others are; nothing if no module is missing."""
    texts = root.messages.values() if root.messages else (root.output,)
    modules_missing = Counter(module for text in texts for module in dict.fromkeys(_MISSING.findall(text)))
    if modules_missing:
        modules = [f"{module} ({counted(count, 'failure')})" for module, count in modules_missing.most_common()]
        yield f"missing  modules that the tests import: {first_of(modules, NAMED)}"
        yield f"         {INSTALL}"
        for hidden in sorted(OURS & modules_missing.keys()):
            yield f"         Ramify also has a package {hidden}: use an environment without it (--python DIR)"
    wished = {*goals, *map(file_of, goals)}
    others = [test for test in root.failures if missing_package(root.messages.get(test, "")) and test not in wished]
    if missing := lacking(tuple(goals), root):
        fail = counted(len(missing), "goal fails", "goals fail")
        yield f"         {fail} only because they are missing: {first_of(tuple(missing), NAMED)}"
    if goals and others:
        fail = counted(len(others), "other test fails", "other tests fail")
        yield f"         {fail} because a package is missing, which no patch can repair: not goals"
