"""What an action does is seen where its state is kept, and nowhere else: each way in which other tools leak."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from sandboxes import Provider, Sandbox, Snapshot
from sandboxes.conformance.given import Given, python, said, sh

_SITE = "$(python3 -c 'import pytest, os; print(os.path.dirname(os.path.dirname(pytest.__file__)))')"
_GIT = "git -c user.name=n -c user.email=e@example.invalid"
_XATTR = "python3 -c \"import os; os.{}xattr('crlf.txt', 'user.{}'{})\""
_DATABASE = "import sqlite3; base = sqlite3.connect('build/app.db')"

LEAKS = {
    "a file in /tmp": ("echo x > /tmp/leak", "test -e /tmp/leak"),
    "a file in /dev/shm": ("echo x > /dev/shm/leak", "test -e /dev/shm/leak"),
    "a dotfile in HOME": ("echo x > ~/.leakrc", "test -e ~/.leakrc"),
    "a line in /etc": ("echo 192.0.2.7 evil >> /etc/hosts", "grep -q evil /etc/hosts"),
    "an installed package": (f"echo x = 5 > {_SITE}/leaked.py", "python3 -c 'import leaked'"),
    "a python before python": (
        "f=${PATH%%:*}/python3; rm -f $f; printf '#!/bin/sh\necho shadow\n' > $f; chmod +x $f",
        'test "$(python3)" = shadow',
    ),
    "an ignored database": (
        f"""python3 -c "{_DATABASE}; base.execute('create table leak (x)'); base.commit()" """,
        "grep -q leak build/app.db",
    ),
    "an ignored build artefact": ("echo new > build/out.o", "grep -q new build/out.o"),
    "a commit": (f"{_GIT} commit -q --allow-empty -m leak", "git log --oneline | grep -q leak"),
    "a branch": ("git checkout -q -b leak", "git branch | grep -q leak"),
    "a hook": ("echo evil > .git/hooks/post-checkout", "test -e .git/hooks/post-checkout"),
    "a pipe": ("mkfifo leak", "test -p leak"),
    "an empty directory": ("mkdir leak", "test -d leak"),
    "a mode": ("chmod 600 crlf.txt", 'test "$(stat -c %a crlf.txt)" = 600'),
    "a clone in the workspace": ("git clone -q --no-hardlinks . nested", "test -d nested/.git"),
    "a packed repository": ("git gc -q", "ls .git/objects/pack | grep -q idx"),
    "a setting of git": ("git config leak.leak x", "git config leak.leak"),
    "a staged file": ("echo x > leak; git add leak", "git ls-files | grep -q leak"),
    "a tracked file": ("echo leak >> crlf.txt", "grep -q leak crlf.txt"),
    "a removed file": ("rm crlf.txt", "! test -e crlf.txt"),
    "an untracked file": ("echo x > leak", "test -e leak"),
    "a file that was moved": ("mv crlf.txt leak", "test -e leak"),
    "a setuid bit": ("chmod 4755 tool.sh", "test -u tool.sh"),
    "a sticky bit": ("chmod 1777 pkg", "test -k pkg"),
    "a link": ("ln -s src leak", "test -L leak"),
    "a link that leads elsewhere": ("ln -sfn pkg link", 'test "$(readlink link)" = pkg'),
    "a second name of a file": ("ln crlf.txt leak", 'test "$(stat -c %h crlf.txt)" = 2'),
    "a file made a directory": ("rm crlf.txt; mkdir crlf.txt", "test -d crlf.txt"),
    "a directory made a file": ("rm -r pkg; echo x > pkg", "test -f pkg"),
    "a directory made a link": ("rm -r pkg; ln -s src pkg", "test -L pkg"),
    "a link made a directory": ("rm link; mkdir link", "test -d link && ! test -L link"),
    "a socket": ("python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('leak')\"", "test -S leak"),
    "a hole": ("truncate -s 5M leak", "test -e leak"),
    "a name of two lines": ("touch \"$(printf 'a\\nb')\"", "test -e \"$(printf 'a\\nb')\""),
    "a name that is no UTF-8": ("touch \"$(printf '\\377')\"", "test -e \"$(printf '\\377')\""),
    "a name like an option": ("touch ./--leak", "test -e ./--leak"),
    "the time of a file": ("touch -d @7 crlf.txt", 'test "$(stat -c %Y crlf.txt)" = 7'),
    "the time of a directory": ("touch -d @7 pkg", 'test "$(stat -c %Y pkg)" = 7'),
    "an edit whose time was put back": (
        "touch -r crlf.txt /tmp/t; tr o 0 < crlf.txt > /tmp/c; cat /tmp/c > crlf.txt; touch -r /tmp/t crlf.txt",
        "grep -q 0 crlf.txt",
    ),
    "an extended attribute": (_XATTR.format("set", "leak", ", b'x'"), _XATTR.format("get", "leak", "")),
    "an attribute of overlays": (
        _XATTR.format("set", "overlay.opaque", ", b'y'"),
        _XATTR.format("get", "overlay.opaque", ""),
    ),
    "a file in /var": ("echo x > /var/leak", "test -e /var/leak"),
    "a file in the root directory": ("echo x > /leak", "test -e /leak"),
    "a path in the packages": (
        f"mkdir /opt/leak; touch /opt/leak/leaked.py; echo /opt/leak > {_SITE}/leak.pth",
        "python3 -c 'import leaked'",
    ),
    "a removed program": ("rm -f $(command -v tail)", "! tail /dev/null"),
}

PASSING = {
    "a server on a port": (
        "kept = socket.create_server(('127.0.0.1', 8772))",
        "socket.create_connection(('127.0.0.1', 8772))",
    ),
    "a server of datagrams": (
        "kept = socket.socket(type=socket.SOCK_DGRAM); kept.bind(('127.0.0.1', 0x2245))",
        "assert ':2245' in open('/proc/net/udp').read()",
    ),
    "a server without a path": (
        "kept = socket.socket(socket.AF_UNIX); kept.bind(chr(0) + 'leak'); kept.listen()",
        "socket.socket(socket.AF_UNIX).connect(chr(0) + 'leak')",
    ),
    "a server with a path": (
        "kept = socket.socket(socket.AF_UNIX); kept.bind('/tmp/leak'); kept.listen()",
        "socket.socket(socket.AF_UNIX).connect('/tmp/leak')",
    ),
    "a lock": (
        "kept = open('crlf.txt'); fcntl.flock(kept, fcntl.LOCK_EX)",
        "assert refused(lambda: fcntl.flock(open('crlf.txt'), fcntl.LOCK_EX | fcntl.LOCK_NB))",
    ),
    "a lock of a range": (
        "kept = open('crlf.txt', 'r+'); fcntl.lockf(kept, fcntl.LOCK_EX, 1)",
        "assert refused(lambda: fcntl.lockf(open('crlf.txt', 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB, 1))",
    ),
    "a deleted file that is open": (
        "kept = open('leak', 'w'); os.unlink('leak')",
        "assert any('leak (deleted)' in os.path.realpath(file) for file in glob.glob('/proc/[2-9]*/fd/*'))",
    ),
    "a mapping that is shared": (
        "kept = mmap.mmap(-1, 4096); kept[:4] = b'leak'",
        "assert any('/dev/zero (deleted)' in open(file).read() for file in glob.glob('/proc/[2-9]*/maps'))",
    ),
}
"""What lives as long as a process: what one holds, and how others see it. Python, in which what is not there raises."""

_HOLD = """
import fcntl, glob, mmap, os, socket, sys, time
def refused(act):
    try:
        act()
    except OSError:
        return True
hold, look = sys.argv[1:]
ready, done = os.pipe()
if hold and os.fork() == 0:
    exec(hold)
    os.write(done, b'x')
    time.sleep(1000)
os.close(done)
assert not hold or os.read(ready, 1)
exec(look)
"""


class Leaks(Given):
    """Backtracking forgets everything, and going on forgets nothing."""

    @pytest.mark.parametrize("leak", LEAKS)
    def test_what_is_left_is_seen_by_children_alone(self, provider: Provider, base: Snapshot, leak: str) -> None:
        act, look = LEAKS[leak]
        with provider.at(base) as acted, provider.at(base) as sibling:
            assert sh(acted, look).exit_code != 0
            assert sh(acted, act).exit_code == 0
            after = acted.snapshot()
            assert sh(sibling, look).exit_code != 0
        with provider.at(after) as child:
            done = sh(child, look)
            assert done.exit_code == 0, done
        with provider.at(base) as again:
            assert sh(again, look).exit_code != 0

    @pytest.mark.parametrize("leak", PASSING)
    def test_what_a_process_holds_is_seen_until_its_command_ends(
        self, provider: Provider, base: Snapshot, leak: str
    ) -> None:
        hold, look = PASSING[leak]

        def seen(box: Sandbox, hold: str = "") -> bool:
            return box.exec(["python3", "-c", _HOLD, hold, look], timeout_s=100).exit_code == 0

        with provider.at(base) as box, provider.at(base) as sibling:
            assert seen(box, hold)
            assert not seen(box)
            after = box.snapshot()
            assert not seen(sibling)
        for state in (after, base):
            with provider.at(state) as box:
                assert not seen(box)

    def test_byte_code_of_another_state_is_never_run(self, provider: Provider, base: Snapshot) -> None:
        run = "env -u PYTHONDONTWRITEBYTECODE python3 -c 'import module; print(module.x)'"
        with provider.at(base) as box:
            assert said(box, f"echo x = 1 > module.py; {run}") == "1"
            first = box.snapshot()
            assert said(box, f"echo x = 2 > module.py; touch -r /etc/hosts module.py; {run}") == "2"
            second = box.snapshot()
        for state, seen in ((first, "1"), (second, "2"), (first, "1")):
            with provider.at(state) as box:
                assert said(box, run) == seen

    def test_what_a_shell_is_told_ends_with_it(self, provider: Provider, base: Snapshot) -> None:
        tell = "cd /tmp; export LEAK=1; umask 077; ulimit -n 64; leak() { :; }; "
        look = "pwd; echo LEAK=$LEAK; umask; ulimit -n; command -v leak || true"
        with provider.at(base) as box:
            usual = said(box, look)
            told = said(box, tell + look).split()
            assert (told[:4], told[4:]) == (["/tmp", "LEAK=1", "0077", "64"], ["leak"])
            assert said(box, look) == usual
            after = box.snapshot()
        for state in (after, base):
            with provider.at(state) as box:
                assert said(box, look) == usual

    def test_shared_memory_and_queues_end_with_the_command(self, box: Sandbox) -> None:
        find = """
            import ctypes, os
            c = ctypes.CDLL(None, use_errno=True)
            flags, create = {}, {}
            found = [c.shmget(77, 4096, flags), c.msgget(77, flags), c.semget(77, 1, flags)]
            found.append(c.mq_open(b'/leak', os.O_RDWR | create, 0o600, None))
            print(*(each >= 0 for each in found))
        """
        made, left = find.format("0o1600", "os.O_CREAT"), find.format("0o600", "0")
        assert python(box, made).stdout.split() == [b"True"] * 4
        assert python(box, left).stdout.split() == [b"False"] * 4

    def test_nobody_can_be_watched(self, provider: Provider, base: Snapshot) -> None:
        watch = """
            import ctypes, os, select
            c = ctypes.CDLL(None, use_errno=True)
            assert c.fanotify_init(0, 0) < 0
            watch = c.inotify_init1(os.O_NONBLOCK)
            for place in ('.', '/tmp', '/usr/bin', '/etc'):
                assert c.inotify_add_watch(watch, place.encode(), 0xfff) >= 0
            {}
            print(bool(select.select([watch], [], [], 1)[0]))
        """
        act = "for i in $(seq 20); do date > seen; date > /tmp/seen; cat /etc/passwd > /dev/null; sleep 0.05; done"
        with provider.at(base) as watching, provider.at(base) as acting, ThreadPoolExecutor(1) as meanwhile:
            assert python(watching, watch.format("open('own', 'w').close()")).stdout == b"True\n"
            done = meanwhile.submit(sh, acting, act)
            seen = python(watching, watch.format(""))
            assert (seen.stdout, done.result().exit_code) == (b"False\n", 0), seen
