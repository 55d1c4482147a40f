"""Kill -9 of Ramify or of a guest, in the middle of things: nothing goes on running, nothing stays mounted, and the run
goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agent.run.events import Failed
from agent.run.journal import read_events
from sandboxes.docker import provider as docker_sandbox
from sandboxes.docker.client import connect
from sandboxes.forking.guest_bundle import LOADER, STARTED, package
from sandboxes.namespace.provider import probe
from tests.processes import guests
from tests.projects import TESTS, means

KINDS = [pytest.param("namespace", marks=pytest.mark.namespace), pytest.param("docker", marks=pytest.mark.docker)]


@pytest.fixture
def repo(tmp_path):
    """The small project, with a test that takes its time."""
    repo = means(tmp_path / "repo")
    slow = "import time\n\n\ndef test_slow():\n    time.sleep(0.5)\n\n\n"
    (repo / "test_means.py").write_text(slow + TESTS)
    return repo


@pytest.fixture
def running(repo, tmp_path):
    """Starts a search with two workers; kills it and removes its states at the end, whatever happens."""
    started = []

    def start(kind):
        why = probe(tmp_path) if kind == "namespace" else docker_sandbox.probe()
        if why:
            pytest.skip(why)
        mark = f"MARK-{os.getpid()}-{tmp_path.name}"
        run = tmp_path / "run"
        settings = f'sandbox.env={{PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", MARK="{mark}"}}'
        command = [sys.executable, "-m", "agent", "solve", "--issue", "x", "--repo", repo, "--out", run, "--json",
                   "--workers", "2", "--sandbox", kind, "-c", settings]  # fmt: skip
        process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        started.append((process, run))
        return process, run, mark

    yield start
    for process, run in started:
        process.kill()
        process.communicate()
        if (run / "store" / "volume").exists():
            remove_volume(run)


def remove_volume(run):
    client = connect()
    wait_for(lambda: not containers(client, run))
    client.volumes.get((run / "store" / "volume").read_text()).remove()
    client.close()


def containers(client, run):
    label = f"ramify.run={(run / 'store' / 'volume').read_text()}"
    return client.containers.list(all=True, filters={"label": label}, ignore_removed=True)


def traces(run, mark):
    """Processes that belong to a run's sandboxes, by their arguments, environment or mounts."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        if int(entry.name) == os.getpid():
            continue
        try:
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            known = (entry / "cmdline").read_bytes() + (entry / "mountinfo").read_bytes()
            if state != "Z" and (mark.encode() in (entry / "environ").read_bytes() or os.fsencode(run) in known):
                found.append(entry.name)
        except OSError:
            continue
    return found


def in_an_action(process, run, mark, nodes=2):
    """Whether a command runs in a sandbox after so many nodes."""
    assert process.poll() is None, process.stdout.read()
    journal = run / "journal.jsonl"
    done = journal.read_bytes().count(b'"added"') if journal.exists() else 0
    return done >= nodes and set(traces(run, mark)) - {str(process.pid)}


def groups_of(processes):
    """Our control groups that those are in."""
    found = set()
    for process in processes:
        try:
            lines = Path(f"/proc/{process}/cgroup").read_text().splitlines()
        except OSError:
            continue
        for _, kinds, path in (line.split(":", 2) for line in lines):
            if "/ramify." in path:
                found.add(Path("/sys/fs/cgroup", kinds.partition(",")[0], path.lstrip("/")))
    return found


def resumed(run):
    done = subprocess.run(
        [sys.executable, "-m", "agent", "resume", str(run), "--json"], capture_output=True, check=True
    )
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_search_leaves_nothing_running_and_goes_on(running, kind):
    process, run, mark = running(kind)
    wait_for(lambda: in_an_action(process, run, mark))
    groups = groups_of(traces(run, mark))
    process.send_signal(signal.SIGSTOP)  # whatever it might still do on its way out, it does not
    process.kill()
    process.wait()
    wait_for(lambda: not traces(run, mark))
    assert not any(
        mark.encode() in line or os.fsencode(run) in line for line in Path("/proc/mounts").read_bytes().split()
    )
    if kind == "docker":
        client = connect()
        wait_for(lambda: not containers(client, run))
        client.close()
    left = list((run / "store").glob("leases/*"))
    assert resumed(run)["status"] == "solved"
    assert not any(lease.exists() for lease in left)
    assert traces(run, mark) == []
    assert not any(group.exists() for group in groups)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_search_survives_the_death_of_its_guests(running, kind):
    process, run, mark = running(kind)
    wait_for(lambda: in_an_action(process, run, mark))
    if kind == "docker":
        client = connect()
        for box in containers(client, run):
            box.kill()
        client.close()
    else:
        alive = guests(process.pid)
        for guest in alive:
            os.kill(guest, signal.SIGKILL)
        assert alive
    out, _ = process.communicate(timeout=200)
    assert json.loads(out)["status"] == "solved"
    assert any(isinstance(event, Failed) for event in read_events(run / "journal.jsonl"))
    assert traces(run, mark) == []


@pytest.mark.namespace
def test_a_guest_that_nobody_talks_to_ends(namespaces):
    """The connection to an engine on another machine can be lost without being closed."""
    config = {"store": f"{namespaces}/s", "environments": f"{namespaces}/e", "name": "s", "network": False, "idle_s": 1}
    command = [sys.executable, "-BIS", "-c", LOADER, json.dumps(config)]
    guest = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    assert guest.stdout.read(len(STARTED)) == STARTED
    guest.stdin.write(package())
    guest.stdin.flush()
    assert guest.wait(100) == 0
    guest.communicate()


def wait_for(claim, seconds=100):
    deadline = time.monotonic() + seconds
    while not claim():
        assert time.monotonic() < deadline
        time.sleep(0.02)
