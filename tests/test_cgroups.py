"""Control groups: made by many processes at once, swept when their maker is gone, and only then."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sandboxes import Limits
from sandboxes.namespace import cgroups

pytestmark = pytest.mark.skipif(not cgroups.limited(), reason="this user can make no control groups")

_MANY = """
import subprocess
from sandboxes import Limits
from sandboxes.namespace import cgroups
for _ in range(15):
    group = cgroups.make(Limits(pids=7))
    joined = subprocess.run(["sh", "-c", 'for file in "$@"; do echo $$ >"$file" || exit 1; done', "sh", *group.joins])
    assert joined.returncode == 0, joined
    assert group.directories
    group.remove()
    assert not any(directory.exists() for directory in group.directories)
"""

_ONE = """
from sandboxes import Limits
from sandboxes.namespace import cgroups
print(*cgroups.make(Limits()).directories, flush=True)
input()
"""


def python(program: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", program], stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def test_many_processes_make_and_sweep_groups_at_once() -> None:
    makers = [python(_MANY) for _ in range(5)]
    said = [maker.communicate(timeout=500)[1] for maker in makers]
    assert [maker.returncode for maker in makers] == [0] * 5, said


def test_a_group_goes_when_its_maker_is_gone_and_not_before() -> None:
    maker = python(_ONE)
    assert maker.stdout
    directories = [Path(name) for name in maker.stdout.readline().split()]
    cgroups.make(Limits()).remove()
    assert all(directory.is_dir() for directory in directories)
    maker.send_signal(signal.SIGKILL)
    maker.communicate()
    cgroups.make(Limits()).remove()
    assert not any(directory.exists() for directory in directories)


def test_a_group_has_the_limits_and_a_little_more_for_the_guest() -> None:
    group = cgroups.make(Limits(memory_bytes=100 << 20, pids=20))
    try:
        said = {file.name: file.read_text().strip() for place in group.directories for file in place.glob("*.*")
                if file.name in ("memory.max", "memory.limit_in_bytes", "pids.max")}  # fmt: skip
    finally:
        group.remove()
    memory = said.get("memory.max") or said["memory.limit_in_bytes"]
    assert 100 << 20 <= int(memory) <= 200 << 20
    assert 20 <= int(said["pids.max"]) <= 40
