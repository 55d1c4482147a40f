"""What our parsers read in logs against what SWE-bench's own, of 5.0.2, read in the same."""

from __future__ import annotations

import json
import subprocess
from random import Random
from typing import Any

import pytest

from agent.measure import Outcome
from agent.measure.logs import parse
from benchmarks.data.sources.swebench import parser_of
from benchmarks.grading.harness.official import Harness
from tests.swebench.logs import FORMS, VERSIONS, written

pytestmark = pytest.mark.swebench

LOGS = 100
"""Of each parser."""
WORDS = {"XFAIL": "PASSED", "ERROR": "FAILED"}
READ = """
import contextlib, io, json, sys
from types import SimpleNamespace
from swebench.harness.log_parsers import PARSER_REGISTRY

def read(name, log, version):
    spec = SimpleNamespace(instance_id="owner__repo-1", version=version)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return PARSER_REGISTRY[name](log, spec)
    except IndexError:  # a suite that ends where none is open
        return None

print(json.dumps([list(PARSER_REGISTRY), [read(*case) for case in json.load(sys.stdin)]]))
"""


@pytest.mark.parametrize("harness", ["5.0.2"], indirect=True)
def test_every_parser_of_the_official_harness_is_here_and_reads_the_same(harness: Harness) -> None:
    rng = Random(0)
    cases = [(name, written(name, rng), VERSIONS.get(name, "")) for name in FORMS for _ in range(LOGS)]
    argv = [harness.python, "-c", READ]
    done = subprocess.run(argv, input=json.dumps(cases), capture_output=True, text=True, check=True)
    registered, theirs = json.loads(done.stdout)
    for name in registered:
        parse(parser_of(name, row("8047" if "jekyll" in name else "2006")), "")
    compared = [(ours(name, log, version), told(log, said)) for (name, log, version), said in paired(cases, theirs)]
    assert len(compared) > LOGS * (len(FORMS) - 1)
    for mine, other in compared:
        assert mine == other


def row(number: str, version: str = "") -> dict[str, Any]:
    return {"instance_id": f"owner__repo-{number}", "version": version}


def paired(cases: list[Any], theirs: list[Any]) -> list[tuple[Any, Any]]:
    """Those that the other did not fail at."""
    return [(case, said) for case, said in zip(cases, theirs, strict=True) if said is not None]


def ours(name: str, log: str, version: str) -> tuple[str, dict[str, str]]:
    found = parse(parser_of(name, row("1", version)), log)
    return log, {test: "FAILED" if end is Outcome.ERROR else end.name for test, end in found.items()}


def told(log: str, said: dict[str, str]) -> tuple[str, dict[str, str]]:
    return log, {test: WORDS.get(end, end) for test, end in said.items() if test}
