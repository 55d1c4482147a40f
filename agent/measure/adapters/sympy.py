"""SymPy's own `bin/test`. From SymPy 1.13 on it runs pytest, which then gets Ramify's plugin."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from agent.measure.adapters import Adapter, read_sealed
from agent.measure.adapters.in_process import PYTHON, with_our_program

NAMED = re.compile(rf"(?<!\S)(?P<by>{PYTHON})?(?P<what>(?:\./)?bin/test)(?!\S)")
OF_SYMPY = re.compile(r"\bsympy\b|\s(-C|--no-cache|--verbose)\b")


def _replaced(command: str, package: str) -> str:
    return NAMED.sub(lambda found: f"{found['by'] or 'python3 '}-m {package} {found['what']}", command)


def fits(repo: Path | None, command: str) -> bool:
    """Whether this is SymPy: other projects have a `bin/test` too."""
    return (repo / "sympy").is_dir() if repo else OF_SYMPY.search(command) is not None


SYMPY = Adapter(
    name="sympy",
    command="python3 bin/test",
    named=NAMED,
    fits=fits,
    invocation=partial(with_our_program, ("installed", "rewritten", "reporter", "sympy"), _replaced),
    read=read_sealed,
    config_files=("bin/test",),
    manifests=("sympy/testing/runtests.py", "sympy/utilities/runtests.py"),
    selects=True,
)
