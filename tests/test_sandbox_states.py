"""Any state, forked at any later time and in any order, is byte for byte what it was: whatever was done to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from sandboxes import Provider, Snapshot, Workspace
from sandboxes.conformance import LIMITS, fingerprint, sample, sh
from sandboxes.namespace import NamespaceProvider

pytestmark = pytest.mark.namespace

PATHS = (
    "a",
    "b",
    "d/x",
    "d/y",
    "d/e/z",
    "pkg",
    "pkg/deep",
    "pkg/deep/one.txt",
    "crlf.txt",
    "link",
    "/tmp/t",
    "/root/r",
)
paths = st.sampled_from(PATHS)
operations = st.one_of(
    st.builds("mkdir -p $(dirname {0}); echo {1} > {0}".format, paths, st.integers(0, 9)),
    st.builds("echo more >> {}".format, paths),
    st.builds("rm -rf {}".format, paths),
    st.builds("mkdir -p {}".format, paths),
    st.builds("mv {} {}".format, paths, paths),
    st.builds("ln -sfn {} {}".format, paths, paths),
    st.builds("ln {} {}".format, paths, paths),
    st.builds("cp -a {} {}".format, paths, paths),
    st.builds("chmod {1} {0}".format, paths, st.sampled_from(("700", "711", "755", "750"))),
    st.builds("mkfifo {}/pipe".format, paths),
)
steps = st.lists(st.tuples(st.integers(0, 9), st.lists(operations, min_size=1, max_size=5)), min_size=1, max_size=5)


@pytest.fixture(scope="module")
def provider(namespaces: Path) -> Iterator[Provider]:
    with NamespaceProvider(namespaces / "states", LIMITS) as provider:
        yield provider


@pytest.fixture(scope="module")
def base(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    return provider.create(Workspace(path=sample(tmp_path_factory.mktemp("states") / "checkout"), mount="/workspace"))


@pytest.mark.timeout(300)
@settings(max_examples=5, phases=[Phase.generate], deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=steps, order=st.randoms(use_true_random=False))
def test_every_state_stays_what_it_was(provider: Provider, base: Snapshot, steps: list, order: object) -> None:
    states = [(base, look(provider, base))]
    for parent, commands in steps:
        with provider.at(states[parent % len(states)][0]) as box:
            for command in commands:
                sh(box, command)
            seen = fingerprint(box)
            states.append((box.snapshot(), seen))
            assert fingerprint(box) == seen
    order.shuffle(states)
    for snapshot, seen in states:
        assert look(provider, snapshot) == seen
    contents = {snapshot.digest: contents_of(provider, snapshot) for snapshot, _ in states}
    assert len(set(contents.values())) == len(contents)
    assert all(contents[snapshot.digest] == contents_of(provider, snapshot) for snapshot, _ in states)
    for snapshot, _ in states:
        if snapshot != base:
            provider.discard(snapshot)
    assert look(provider, base) == next(seen for snapshot, seen in states if snapshot == base)


def look(provider: Provider, snapshot: Snapshot) -> str:
    with provider.at(snapshot) as box:
        return fingerprint(box)


def contents_of(provider: Provider, snapshot: Snapshot) -> bytes:
    """Names, types, modes and contents, without times: what a digest has to tell apart, and nothing else."""
    places = "find . /tmp /root -xdev"
    with provider.at(snapshot) as box:
        listing = f"{places} -printf '%p %m %y %l\\n' | sort; {places} -type f | sort | xargs -d '\\n' md5sum"
        return sh(box, listing).stdout
