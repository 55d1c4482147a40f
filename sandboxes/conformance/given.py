"""What every test of the contract starts from."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sandboxes import ExecResult, Limits, Provider, Sandbox, Snapshot, Workspace

LIMITS = Limits(memory_bytes=256 << 20, pids=64, output_bytes=100_000, disk_bytes=16 << 20)
"""What the provider under test has to be made with."""

SECRET = "a-secret-of-this-machine"  # noqa: S105 - it is the bait


def sh(box: Sandbox, script: str, timeout_s: float = 100) -> ExecResult:
    """Run a shell script."""
    return box.exec(["sh", "-c", script], timeout_s=timeout_s)


def said(box: Sandbox, script: str) -> str:
    """What a shell script that succeeds prints."""
    done = sh(box, script)
    assert done.exit_code == 0, done
    return done.stdout.decode().strip()


def python(box: Sandbox, program: str, timeout_s: float = 100) -> ExecResult:
    """Run a Python program."""
    return box.exec(["python3", "-c", textwrap.dedent(program)], timeout_s=timeout_s)


_WALK = """
import hashlib, json, os, stat, sys
def holes(file, size):
    found, here = [], 0
    while here < size:
        here = os.lseek(file, here, os.SEEK_HOLE)
        try:
            end = os.lseek(file, here, os.SEEK_DATA)
        except OSError:
            end = size
        found.append((here, end))
        here = end
    return found
def look(path):
    facts = os.lstat(path)
    kind = stat.S_IFMT(facts.st_mode)
    content = attributes = ''
    if stat.S_ISREG(facts.st_mode):
        file = os.open(path, os.O_RDONLY)
        content = [hashlib.sha256(open(path, 'rb').read()).hexdigest(), facts.st_size, holes(file, facts.st_size)]
        os.close(file)
    elif stat.S_ISLNK(facts.st_mode):
        content = os.fsencode(os.readlink(path)).hex()
    if kind in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFIFO):
        attributes = sorted((name, os.getxattr(path, name).hex()) for name in os.listxattr(path))
    links = 0 if stat.S_ISDIR(facts.st_mode) else facts.st_nlink
    return [facts.st_mode, facts.st_uid, facts.st_gid, facts.st_mtime_ns, content, attributes, links]
mounted = {line.split()[4] for line in open('/proc/self/mountinfo')}  # over a state, no part of it
disturbed = {os.path.dirname(place) for place in mounted}  # an engine that mounts a file moves the time of its folder
found = {}
for root in sys.argv[1:]:
    for here, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if os.lstat(here + '/' + name).st_dev == os.lstat(here).st_dev)
        for name in folders + sorted(files) + ['.']:
            path = os.path.join(here, name)
            if os.path.normpath(path) not in (*mounted, '/etc/mtab'):
                found[path] = look(path)
            if os.path.normpath(path) in disturbed and path in found:
                found[path][3] = 0
if sys.stdin.read():
    print(json.dumps(found))
print(hashlib.sha256(json.dumps(sorted(found.items())).encode()).hexdigest(), len(found))
"""


def fingerprint(box: Sandbox) -> str:
    """Of names, types, modes, owners, times, contents with their holes, extended attributes and how many names a
    file has, in every place that an action likes to write to.
    """
    return fingerprint_of(box, box.workdir, "/tmp", "/root", "/etc", "/dev/shm", "/opt", "/usr/local/bin")


def fingerprint_of(box: Sandbox, *places: str) -> str:
    """As `fingerprint`, in some directories."""
    done = box.exec(["python3", "-IS", "-c", _WALK, *places], timeout_s=200)
    assert done.exit_code == 0, done
    return done.stdout.decode()


def running(mark: str) -> list[str]:
    """Processes of this machine that have `mark` among their arguments."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark.encode() in path.read_bytes().split(b"\0"):
                found.append(str(path))
        except OSError:
            continue
    return found


class Given:
    """What a provider's test supplies: `reopen` makes a provider on one store, each time it is called a new one.

    All tests of a class share a provider and a base state, as searches do; none of them may leave a mark on it.
    """

    @pytest.fixture(scope="class")
    @classmethod
    def reopen(cls) -> Callable[[], Provider]:
        raise NotImplementedError

    @pytest.fixture(scope="class")
    @classmethod
    def workspace(cls) -> Workspace:
        raise NotImplementedError

    @pytest.fixture(scope="class")
    @classmethod
    def provider(cls, reopen: Callable[[], Provider]) -> Iterator[Provider]:
        provider = reopen()
        yield provider
        provider.close()

    @pytest.fixture(scope="class")
    @classmethod
    def base(cls, provider: Provider, workspace: Workspace) -> Snapshot:
        return provider.create(workspace)

    @pytest.fixture
    def box(self, provider: Provider, base: Snapshot) -> Iterator[Sandbox]:
        with provider.at(base) as box:
            yield box

    @pytest.fixture
    def rogue(self, provider: Provider, base: Snapshot) -> Iterator[Sandbox]:
        """A fork to do harm in. Whatever was done, its sibling is as it was and a new fork is as good as ever."""
        with provider.at(base) as sibling:
            before = said(sibling, _CONDITION)
            with provider.at(base) as box:
                yield box
            assert said(sibling, _CONDITION) == before
            with provider.at(base) as fresh:
                assert said(fresh, _CONDITION) == before


_CONDITION = """
find . /tmp /root /dev -xdev -printf '%p %y %m %l\\n' | sort | cksum; cat src/app.py; umask; id; hostname
cat /proc/sys/kernel/core_pattern /proc/sys/kernel/hostname; stat -c '%a %u' /dev/null
"""
