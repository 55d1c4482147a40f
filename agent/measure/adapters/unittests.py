"""Python's unittest: Ramify's program runs in place of `python -m unittest` and seals the results.

pytest runs the same tests, is measured with more care, and is the default.
"""

from __future__ import annotations

import re
from functools import partial

from agent.measure.adapters import Adapter, read_sealed
from agent.measure.adapters.in_process import with_our_program

NAMED = re.compile(r"-m\s+unittest\b")


def _replaced(command: str, package: str) -> str:
    return NAMED.sub(f"-m {package}", command)


UNITTEST = Adapter(
    name="unittest",
    command="python3 -m unittest",
    named=NAMED,
    invocation=partial(with_our_program, ("unittests",), _replaced),
    read=read_sealed,
    selects=True,
)
