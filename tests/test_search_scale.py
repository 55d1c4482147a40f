"""The trees that search_scale times: each algorithm grows its own, for ever."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from agent.search.registry import SEARCHES
from benchmarks.perf.search_scale import CHAINS, ENDLESS, Growth, chained


@pytest.mark.parametrize("name", ENDLESS)
def test_a_tree_has_the_nodes_that_were_asked_for_and_nothing_in_flight(name):
    made = Growth(ENDLESS[name](), 40)
    assert len(made.tree) == 40
    made.grow(5)
    assert 41 <= len(made.tree) <= 45
    assert made.tree.in_flight == 0


@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_is_grown_and_resumed_by_every_algorithm(name):
    half, whole, resumed = chained(CHAINS[name](), 20)
    assert 0 <= half <= whole
    assert resumed >= 0


def test_every_algorithm_is_timed_but_those_that_end_and_the_one_that_has_a_row_of_its_own():
    assert set(SEARCHES) - set(ENDLESS) <= {"auto", "linear", "strategies"}
    assert set(SEARCHES) - set(CHAINS) <= {"strategies"}


def test_it_says_what_it_takes():
    command = [sys.executable, "-m", "benchmarks.perf.search_scale", "--help"]
    root = Path(__file__).parent.parent
    said = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    assert "--treequest" in said.stdout
