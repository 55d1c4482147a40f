"""Fixtures that several test modules share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sandboxes import namespace

pytest.register_assert_rewrite("sandboxes.conformance")


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or fills the user's own cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def namespaces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory for stores; skips where user namespaces do not work."""
    place = tmp_path_factory.mktemp("stores")
    problem = namespace.probe(place)
    if problem:
        pytest.skip(problem)
    return place
