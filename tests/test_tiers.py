"""A quick run leaves out tests, but no law, no contract and no subject."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable
from pathlib import Path

import hypothesis
import pytest

from tests.conftest import COLLECTED, left_out

ELSEWHERE = ("ray", "swebench", "train", "vllm", "web")
"""The markers of tests that have a target of their own."""
NEEDS = ("docker", "browser")
BATCHES = ("test_bench_killed.py",)
"""Files of a single test, a whole batch in processes of its own; smaller ones are in `test_bench_batch.py`."""


def marked(item: pytest.Item, names: tuple[str, ...]) -> bool:
    return any(map(item.get_closest_marker, names))


@pytest.fixture
def collected(request: pytest.FixtureRequest) -> list[pytest.Function]:
    items = [item for item in request.config.stash[COLLECTED] if isinstance(item, pytest.Function)]
    if not set(Path(__file__).parent.rglob("test_*.py")) <= {item.path for item in items}:
        pytest.skip("this run has not collected all tests")
    return [item for item in items if not marked(item, ELSEWHERE)]


def only_left_out(items: list[pytest.Function], group: Callable[[pytest.Function], Hashable]) -> list[str]:
    """One test of each group that a quick run leaves out as a whole. A test that has no group counts in none."""
    groups = defaultdict(list)
    for item in items:
        if (key := group(item)) is not None:
            groups[key].append(item)
    return [each[0].nodeid for each in groups.values() if all(map(left_out, each))]


def test_every_law_has_a_quick_case(collected: list[pytest.Function]) -> None:
    """One that is looked at with Docker holds without it too, or is the engine's."""
    laws = [item for item in collected if hypothesis.is_hypothesis_test(item.function) and not marked(item, NEEDS)]
    assert len(laws) > 200
    assert not only_left_out(laws, lambda law: law.function.__code__)


def test_every_test_of_a_contract_has_a_quick_case(collected: list[pytest.Function]) -> None:
    """A contract's class is named for it, and a subclass runs its tests for one implementation."""
    kept = [item for item in collected if item.cls and any(c.__name__.endswith("Contract") for c in item.cls.__mro__)]
    assert len({item.path for item in kept}) >= 4
    assert not only_left_out(kept, lambda item: item.function.__code__)


def test_no_file_is_left_out_as_a_whole_where_it_needs_no_other_program(collected: list[pytest.Function]) -> None:
    here = [item for item in collected if not marked(item, NEEDS) and item.path.name not in BATCHES]
    assert not only_left_out(here, lambda item: item.path)
