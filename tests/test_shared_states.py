"""Environments and set-ups that runs share: built whole or not at all, and kept while anybody stands on them."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from sandboxes import Workspace
from sandboxes.conformance import sample
from sandboxes.forking.environment_cache import Entry, surplus
from sandboxes.namespace.provider import namespace_provider, shared_leftovers

pytestmark = [pytest.mark.namespace, pytest.mark.usefixtures("namespaces")]

CREATE = """
import sys
from pathlib import Path
from sandboxes import Workspace
from sandboxes.namespace.provider import namespace_provider
store, checkout, command = sys.argv[1:]
namespace_provider(Path(store)).create(Workspace(path=Path(checkout), setup=(command,)))
"""


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An area of its own for shared states."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "ramify" / "environments"


@pytest.fixture
def checkout(tmp_path):
    return sample(tmp_path / "checkout")


def held(lease):
    """Whether the guest that made the directory lives."""
    descriptor = os.open(lease, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def contents(area):
    return {name: sorted(os.listdir(area / name)) for name in ("states", "layers", "imports", "users", "building")}


def test_a_set_up_that_was_killed_half_way_does_not_count_and_leaves_nothing(cache, checkout, tmp_path):
    gate = f"echo {tmp_path} > /opt/half; sleep 200; echo whole > /opt/whole"
    store = tmp_path / "store"
    process = subprocess.Popen([sys.executable, "-c", CREATE, str(store), str(checkout), gate])
    wait_for(lambda: list(cache.glob("leases/*/*/upper/*/opt/half")) or process.poll())
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_for(lambda: not any(held(lease) for lease in cache.glob("leases/*")))
    whole = Workspace(path=checkout, setup=("echo whole > /opt/whole",))
    with namespace_provider(store) as provider, provider.at(provider.create(whole)) as box:
        assert box.exec(["ls", "/opt"], timeout_s=100).stdout == b"whole\n"
    found = contents(cache)
    assert [len(found[name]) for name in ("states", "imports", "users")] == [1, 1, 1]
    assert len(found["layers"]) == 1


@pytest.mark.slow
def test_a_set_up_that_another_process_is_making_is_waited_for(cache, checkout, tmp_path):
    command = f"echo {tmp_path}; sleep 2; date +%s%N > /opt/stamp"
    process = subprocess.Popen([sys.executable, "-c", CREATE, str(tmp_path / "one"), str(checkout), command])
    wait_for(lambda: list(cache.glob("building/*")) or process.poll())
    with namespace_provider(tmp_path / "other") as provider:
        provider.create(Workspace(path=checkout, setup=(command,)))
        assert process.wait(100) == 0
    assert len(contents(cache)["states"]) == 1


@pytest.mark.slow
def test_a_builder_that_dies_is_replaced_by_who_waits_for_it(cache, checkout, tmp_path):
    command = f"echo {tmp_path}; test -e /opt/never || sleep 3"
    process = subprocess.Popen([sys.executable, "-c", CREATE, str(tmp_path / "one"), str(checkout), command])
    wait_for(lambda: list(cache.glob("building/*")) or process.poll())
    waiting = subprocess.Popen([sys.executable, "-c", CREATE, str(tmp_path / "other"), str(checkout), command])
    time.sleep(1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert waiting.wait(100) == 0


def test_the_longest_unused_goes_first_and_nothing_that_a_store_stands_on():
    young, old, held = (
        Entry("young", 10, 90.0, ()),
        Entry("old", 10, 10.0, ("gone",)),
        Entry("held", 10, 5.0, ("here",)),
    )
    fresh = Entry("fresh", 10, 200.0, ())

    def going(bound, *entries):
        return [entry.name for entry in surplus(list(entries), lambda store: store == "here", bound, 100.0)]

    assert going(30, young, old, held) == []
    assert going(20, young, old, held) == ["old"]
    assert going(0, young, held, old) == ["old", "young"]
    assert going(0, fresh, replace(old, used=100.0)) == []


def wait_for(claim):
    deadline = time.monotonic() + 100
    while not claim():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_store_finds_its_base_after_the_cache_was_used_by_others(cache, checkout, tmp_path):
    setup = ("echo whole > /opt/whole",)
    with namespace_provider(tmp_path / "one") as provider:
        base = provider.create(Workspace(path=checkout, setup=setup))
    with namespace_provider(tmp_path / "two") as provider:
        provider.discard(provider.create(Workspace(path=checkout, setup=setup)))
    with namespace_provider(tmp_path / "one") as provider, provider.at(base) as box:
        assert box.read("/opt/whole") == b"whole\n"
    assert {Path(p.read_text()).name for p in cache.glob("users/*/*")} == {"one", "two"}


def test_cleaning_takes_a_set_up_once_no_store_stands_on_it(cache, checkout, tmp_path):
    store = tmp_path / "store"
    with namespace_provider(store) as provider:
        base = provider.create(Workspace(path=checkout, setup=("head -c 3000000 /dev/urandom > /opt/big",)))
    assert list(shared_leftovers(0)) == []
    shutil.rmtree(store)
    assert list(shared_leftovers(3600)) == []
    for left in shared_leftovers(0):
        assert left.size_bytes > 3_000_000
        assert left.remove()
    wait_for(lambda: not any(contents(cache).values()))
    with namespace_provider(store) as provider:
        assert provider.create(Workspace(path=checkout, setup=("true",))) != base


def test_what_somebody_began_to_use_meanwhile_stays(cache, checkout, tmp_path):
    wanted = Workspace(path=checkout, setup=("echo x > /opt/x",))
    with namespace_provider(tmp_path / "one") as provider:
        provider.create(wanted)
    shutil.rmtree(tmp_path / "one")
    for left in shared_leftovers(0):
        with namespace_provider(tmp_path / "two") as provider:
            base = provider.create(wanted)
            assert not left.remove()
            with provider.at(base) as box:
                assert box.read("/opt/x") == b"x\n"
