"""Templates: what a copy sees, what it may do, and what it cannot reach."""

from __future__ import annotations

import pytest

from sandboxes import ExecResult, Provider, Sandbox, SandboxLost, Snapshot, Template, TemplateLost
from sandboxes.conformance.given import Given
from sandboxes.conformance.network import TALK

RUN_THE_ORDER = """
import os, socket
from ramify_door import door
connection = socket.socket(fileno=door.SOCKET)
known = ["imported once", os.getpid()]
while True:
    order = door.order_of(*door.receive(connection))
    if door.admit(order):
        connection.close()
        break
exec(order.text.decode())
"""
TEMPLATE = Template(("python3", "-"), RUN_THE_ORDER, {"GIVEN": "by the template"})


def perform(box: Sandbox, order: str, timeout_s: float = 100) -> ExecResult:
    """Have a copy run this Python text."""
    return box.perform(order.encode(), timeout_s=timeout_s)


class Templates(Given):
    """A process whose copies go on in forks."""

    def test_a_copy_goes_on_in_the_fork_with_what_the_template_knows(self, provider: Provider, base: Snapshot) -> None:
        with provider.at(base) as box:
            box.write("here.txt", b"of the node")
            node = box.snapshot()
        with provider.scratch(node, base, (), TEMPLATE) as box:
            done = perform(box, "import os; print(known[0], open('here.txt').read(), os.environ['GIVEN'], os.getcwd())")
            assert done.stdout.decode().split() == [
                "imported",
                "once",
                "of",
                "the",
                "node",
                "by",
                "the",
                "template",
                box.workdir,
            ]
            perform(box, "open('left.txt', 'w').write('by a copy')")
            assert box.read("left.txt") == b"by a copy"
        with provider.scratch(node, base, (), TEMPLATE) as box, pytest.raises(FileNotFoundError):
            box.read("left.txt")

    def test_a_fork_that_stays_open_leaves_the_template_to_others(self, provider: Provider, base: Snapshot) -> None:
        template = Template(("python3", "-"), RUN_THE_ORDER.replace("os.getpid()", "os.urandom(8).hex()"), {})
        with provider.scratch(base, base, (), template) as box:
            mark = perform(box, "print(known[1])").stdout
            assert mark
        with provider.at(base), provider.scratch(base, base, (), template) as box:
            assert perform(box, "print(known[1])").stdout == mark

    def test_a_copy_ends_as_a_command_does(self, provider: Provider, base: Snapshot) -> None:
        with provider.scratch(base, base, (), TEMPLATE) as box:
            assert perform(box, "import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)").exit_code == 7
            assert perform(box, "import os; os.kill(os.getpid(), 9)").exit_code == 137
            assert perform(box, "raise ValueError('no')").exit_code == 1
            loud = perform(box, "import sys; print('out'); print('err', file=sys.stderr)")
            assert (loud.stdout, loud.stderr) == (b"out\n", b"err\n")

    def test_what_a_copy_leaves_running_is_dead_and_the_next_one_is_untouched(
        self, provider: Provider, base: Snapshot
    ) -> None:
        leave = "import subprocess; known.append('spoilt'); subprocess.Popen(['sleep', '1000'], start_new_session=True)"
        look = "import os; print(len(known), sorted(int(p) for p in os.listdir('/proc') if p.isdigit()))"
        with provider.scratch(base, base, (), TEMPLATE) as box:
            assert perform(box, leave).exit_code == 0
            assert perform(box, look).stdout == b"2 [1, 2]\n"

    def test_a_copy_has_a_loopback_that_no_other_has_used(self, provider: Provider, base: Snapshot) -> None:
        with provider.scratch(base, base, (), TEMPLATE) as box:
            for _ in range(2):
                done = perform(box, f"{TALK}\nprint(open('/proc/net/sockstat').read())")
                assert (done.exit_code, b"tw 1 " in done.stdout) == (0, True), done

    def test_a_copy_past_its_deadline_is_killed_and_the_template_lives(
        self, provider: Provider, base: Snapshot
    ) -> None:
        with provider.scratch(base, base, (), TEMPLATE) as box:
            assert perform(box, "while True: pass", timeout_s=0.3).timed_out
            with pytest.raises(SandboxLost):
                perform(box, "pass")
        with provider.scratch(base, base, (), TEMPLATE) as box:
            assert perform(box, "print(known[0])").stdout == b"imported once\n"

    def test_a_copy_has_no_privileges_and_no_way_to_the_template(self, provider: Provider, base: Snapshot) -> None:
        look = """
import ctypes, os
facts = dict(line.split(":", 1) for line in open("/proc/self/status"))
held = [int(facts[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")]
print(*held, facts["NoNewPrivs"].strip())
libc = ctypes.CDLL(None, use_errno=True)
print(libc.unshare(0x10000000), libc.mount(b"none", b"/tmp", b"tmpfs", 0, None), libc.setns(0, 0))
paths = filter(os.path.lexists, map("/proc/self/fd/".__add__, os.listdir("/proc/self/fd")))
print([path for path in paths if "socket" in os.readlink(path)])
try:
    os.kill(known[1], 0)
except (ProcessLookupError, PermissionError):
    print("nobody")
"""
        with provider.scratch(base, base, (), TEMPLATE) as box:
            said = perform(box, look).stdout.decode().splitlines()
        assert said == ["0 0 0 0 0 1", "-1 -1 -1", "[]", "nobody"]

    def test_the_template_itself_may_neither_mount_nor_leave_its_namespaces(
        self, provider: Provider, base: Snapshot
    ) -> None:
        tried = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
tried = [libc.unshare(0x20000), libc.unshare(0x10000000), libc.mount(b"none", b"/tmp", b"tmpfs", 0, None),
         libc.mount(b"proc", b"/proc", b"proc", 0, None), libc.umount2(b"/proc", 2), libc.chroot(b"/")]
tried += [libc.ioctl(4, kind) for kind in (0xB701, 0xB702, 0xB703)]  # of its own process id namespace
tried += [os.path.exists("/proc/self"), os.path.exists("/proc/sys/kernel")]
"""
        template = Template(("python3", "-"), tried + RUN_THE_ORDER)
        with provider.scratch(base, base, (), template) as box:
            assert perform(box, "print(*tried)").stdout == b"-1 -1 -1 -1 -1 -1 -1 -1 -1 False False\n"

    def test_a_template_that_does_not_serve_says_why_and_the_guest_goes_on(
        self, provider: Provider, base: Snapshot
    ) -> None:
        for program, why in (("raise SystemExit('no such luck')", "no such luck"), ("syntax error", "SyntaxError")):
            broken = Template(("python3", "-"), program)
            with provider.scratch(base, base, (), broken) as box, pytest.raises(TemplateLost, match=why):
                perform(box, "pass")
        with provider.scratch(base, base, (), Template(("no-such-python",), "")) as box, pytest.raises(TemplateLost):
            perform(box, "pass")
        with provider.at(base) as box:
            assert box.exec(["true"], timeout_s=100).exit_code == 0
            with pytest.raises(TemplateLost, match="no template"):
                perform(box, "pass")
