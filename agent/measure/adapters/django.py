"""Django: `manage.py test`, and the `runtests.py` of Django itself and of packages for it."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from agent.measure.adapters import Adapter, read_sealed
from agent.measure.adapters.in_process import PYTHON, with_our_program

PROGRAM = r"(?:\S*/)?(?:runtests\.py(?!\S)|manage\.py(?=\s+test(?!\S)))"
MODULE = r"-m\s+django(?=\s+test(?!\S))"
TOOL = r"django-admin(?:\.py)?(?=\s+test(?!\S))"
COVERAGE = r"coverage\s+run(?:\s+-\S+)*\s+"
NAMED = re.compile(rf"(?<!\S)(?P<by>{PYTHON}|{COVERAGE})?(?P<what>{PROGRAM}|{MODULE}|{TOOL})")
OF_DJANGO = re.compile(r"\b(get_runner|DiscoverRunner|TEST_RUNNER|run_tests)\b|\bcall_command\(\s*[\"']test\b")


def _replaced(command: str, package: str) -> str:
    return NAMED.sub(lambda found: _run_by(found, package), command)


def _run_by(found: re.Match[str], package: str) -> str:
    what = "-m django" if found["what"].startswith("django-admin") else found["what"]
    return f"{found['by'] or 'python3 '}-m {package} {what}"


def fits(repo: Path | None, command: str) -> bool:
    """Whether `runtests.py`, if it can be read, looks like Django's: other projects have one of their own."""
    scripts = [found["what"] for found in NAMED.finditer(command) if found["what"].endswith("runtests.py")]
    if repo is None or not scripts:
        return True
    texts = [_text(path) for script in scripts for path in (repo / script, repo / "tests" / script)]
    return any(OF_DJANGO.search(text) for text in texts) or not any(texts)


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""


DJANGO = Adapter(
    name="django",
    command="python3 manage.py test",
    named=NAMED,
    fits=fits,
    invocation=partial(with_our_program, ("unittests", "django"), _replaced),
    read=read_sealed,
    tests=("tests.py",),
    config_files=("manage.py", "runtests.py"),
    selects=True,
)
