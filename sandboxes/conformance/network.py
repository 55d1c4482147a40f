"""An action has a loopback of its own and no other way out."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from sandboxes import Provider, Sandbox, Snapshot
from sandboxes.conformance.given import SECRET, Given, python, said, sh

_TRY = """
import socket
def attempt(name, family, kind, address):
    try:
        with socket.socket(family, kind) as s:
            s.settimeout(2)
            s.connect(address)
            if kind == socket.SOCK_DGRAM:
                s.send(b'x')
            print(name, 'reached')
    except OSError as error:
        print(name, 'refused')
"""

TALK = """
import socket
server = socket.socket()
server.bind(('127.0.0.1', 8769))
server.listen()
client = socket.create_connection(('127.0.0.1', 8769))
accepted = server.accept()[0]
accepted.close(), client.recv(1), client.close(), server.close()
"""
"""Traffic that leaves a port in TIME_WAIT, because its server hangs up first."""
TRACES = {
    "a port in TIME_WAIT": "! python3 -c \"import socket; socket.socket().bind(('127.0.0.1', 8769))\" 2> /dev/null",
    "counters of the protocol": "awk '/^Tcp: [0-9]/ && $6 { found = 1 } END { exit !found }' /proc/net/snmp",
    "bytes on the loopback": "awk '/lo:/ && $2 { found = 1 } END { exit !found }' /proc/net/dev",
    "statistics of sockets": "grep -q 'tw [1-9]' /proc/net/sockstat",
}


class Loopback(Given):
    """No interface but one."""

    def test_the_network_is_only_the_loopback(self, box: Sandbox) -> None:
        unreachable = """
            import socket
            try: socket.create_connection(('192.0.2.1', 80), 2)
            except OSError as error: print(error.errno)
        """
        assert python(box, unreachable).stdout == b"101\n"
        assert said(box, "tail -n +3 /proc/net/dev | cut -d: -f1").split() == ["lo"]


class Network(Loopback):
    """Isolation from every network, and from what others did on their loopbacks."""

    @pytest.mark.parametrize("trace", TRACES)
    def test_no_command_sees_what_the_network_remembers_of_another(
        self, provider: Provider, base: Snapshot, trace: str
    ) -> None:
        look = TRACES[trace]
        with provider.at(base) as box:
            done = box.exec(["sh", "-c", f'python3 -c "$1"; {look}', "sh", TALK], timeout_s=100)
            assert done.exit_code == 0, done
            assert sh(box, look).exit_code == 1
            after = box.snapshot()
            assert sh(box, look).exit_code == 1
        for state in (after, base):
            with provider.at(state) as box:
                assert sh(box, look).exit_code == 1

    def test_no_kind_of_socket_leads_out(self, box: Sandbox) -> None:
        ways = """
attempt('v4', 2, 1, ('192.0.2.1', 80))
attempt('v4-datagram', 2, 2, ('192.0.2.1', 53))
attempt('broadcast', 2, 2, ('255.255.255.255', 9))
attempt('v6', 10, 1, ('2001:db8::1', 80))
attempt('v6-link', 10, 2, ('ff02::1', 9))
attempt('raw', 2, 3, ('192.0.2.1', 0))
attempt('packet', 17, 3, ('eth0', 3))
attempt('hypervisor', 40, 1, (2, 1024))
attempt('bluetooth', 31, 1, ('00:00:00:00:00:00', 1))
attempt('kernel-crypto', 38, 5, ('hash', 'sha256'))
attempt('own-loopback', 2, 2, ('127.0.0.1', 9))
"""
        found = dict(line.split() for line in python(box, _TRY + ways).stdout.decode().splitlines())
        assert len(found) == 11
        assert [way for way, outcome in found.items() if outcome == "reached"] == ["own-loopback"]

    def test_no_other_socket_family_is_available(self, box: Sandbox) -> None:
        """A virtual machine's AF_VSOCK (40), for example, reaches the host from any network namespace."""
        attempts = """
            import itertools, socket
            for family, kind in itertools.product(range(50), (1, 2, 3, 5)):
                try: socket.socket(family, kind).close()
                except OSError: continue
                print(family)
        """
        assert set(python(box, attempts).stdout.split()) == {b"1", b"2", b"10", b"16"}

    def test_no_name_is_resolved_but_its_own(self, box: Sandbox) -> None:
        resolve = """
            import socket
            for name in ('localhost', socket.gethostname(), 'example.org', 'host.docker.internal', 'metadata'):
                try: print(socket.getaddrinfo(name, 80)[0][4][0])
                except OSError: print('unknown')
        """
        local, own, *others = python(box, resolve).stdout.decode().split()
        assert ({local, own} <= {"127.0.0.1", "::1"}, others) == (True, ["unknown"] * 3)

    def test_the_network_cannot_be_changed(self, box: Sandbox) -> None:
        change = """
            import socket, struct
            s = socket.socket(16, 3, 0)
            s.bind((0, 0))
            message = struct.pack('=BBHiII', 2, 0, 1, 1, 1, 1)  # a link up
            s.send(struct.pack('=IHHII', 16 + len(message), 16, 5, 1, 0) + message)
            print(struct.unpack('=i', s.recv(4096)[16:20])[0])
        """
        assert python(box, change).stdout == b"-1\n"
        assert sh(box, ": >> /proc/sys/net/ipv4/ip_forward").exit_code != 0

    def test_what_listens_on_this_machine_is_not_reached(self, box: Sandbox, tmp_path: Path) -> None:
        path, abstract = str(tmp_path / "door"), f"\0{SECRET}"
        with socket.create_server(("127.0.0.1", 0)) as listening, socket.socket(socket.AF_UNIX) as named, \
                socket.socket(socket.AF_UNIX) as unnamed:  # fmt: skip
            port = listening.getsockname()[1]
            for door, address in ((named, path), (unnamed, abstract)):
                door.bind(address)
                door.listen()
            ways = f"""
attempt('port', 2, 1, ('127.0.0.1', {port}))
attempt('path', 1, 1, {path!r})
attempt('abstract', 1, 1, {abstract!r})
"""
            socket.create_connection(("127.0.0.1", port)).close()
            with socket.socket(socket.AF_UNIX) as visitor:
                visitor.connect(abstract)
            assert python(box, _TRY + ways).stdout.count(b"refused") == 3
