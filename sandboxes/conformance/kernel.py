"""The kernel, as an action sees it: nothing to set, nothing to gain. What might do harm is opened and never written."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from sandboxes import Sandbox
from sandboxes.conformance.given import Given, python, said, sh

_CALL = """
import ctypes, errno, platform
c = ctypes.CDLL(None, use_errno=True)
x86 = platform.machine() == 'x86_64'
def call(on_x86, elsewhere, *arguments):
    result = c.syscall(on_x86 if x86 else elsewhere, *arguments)
    return 'allowed' if result >= 0 else errno.errorcode[ctypes.get_errno()]
"""

REFUSED = {
    "keyctl": "call(250, 219, 0, -3, 1)", "add_key": "call(248, 217, b'user', b'leak', b'x', 1, -3)",
    "request_key": "call(249, 218, b'user', b'leak', None, -3)", "ptrace": "call(101, 117, 0, 0, 0, 0)",
    "process_vm_readv": "call(310, 270, 1, None, 0, None, 0, 0)",
    "process_vm_writev": "call(311, 271, 1, None, 0, None, 0, 0)", "io_uring_setup": "call(425, 425, 1, None)",
    "userfaultfd": "call(323, 282, 1)", "bpf": "call(321, 280, 0, None, 0)",
    "perf_event_open": "call(298, 241, None, 0, -1, -1, 0)", "unshare": "call(272, 97, 0x10000000)",
    "clone into a namespace": "call(56, 220, 0x10000011, 0, 0, 0, 0)", "setns": "call(308, 268, 0, 0)",
    "mount": "call(165, 40, b'x', b'/tmp', b'tmpfs', 0, 0)", "umount": "call(166, 39, b'/proc', 0)",
    "pivot_root": "call(155, 41, b'.', b'.')", "chroot": "call(161, 51, b'/tmp')",
    "fsopen": "call(430, 430, b'tmpfs', 0)", "open_tree": "call(428, 428, -100, b'/', 1)",
    "mount_setattr": "call(442, 442, -100, b'/', 0, None, 0)", "open_by_handle_at": "call(304, 265, -100, None, 0)",
    "init_module": "call(175, 105, None, 0, b'')", "kexec_load": "call(246, 104, 0, 0, None, 0)",
    "reboot": "call(169, 142, 0, 0, 0, None)", "syslog": "call(103, 116, 2, None, 0)",
    "swapon": "call(167, 224, b'x', 0)", "sethostname": "call(170, 161, b'x', 1)",
    "settimeofday": "call(164, 170, None, None)", "pidfd_getfd": "call(438, 438, 0, 0, 0)",
    "open_tree_attr": "call(467, 467, -100, b'/', 1, None, 0)", "fspick": "call(433, 433, -100, b'/', 0)",
    "move_mount": "call(429, 429, -100, b'/', -100, b'/', 0)", "fsmount": "call(432, 432, 0, 0, 0)",
    "fsconfig": "call(431, 431, 0, 0, None, None, 0)", "io_uring_enter": "call(426, 426, 0, 0, 0, 0, None, 0)",
    "io_uring_register": "call(427, 427, 0, 0, None, 0)", "fanotify_init": "call(300, 262, 0, 0)",
    "finit_module": "call(313, 273, 0, b'', 0)", "delete_module": "call(176, 106, b'none', 0)",
    "kexec_file_load": "call(320, 294, 0, 0, 0, b'', 0)", "acct": "call(163, 89, b'/no/file')",
    "swapoff": "call(168, 225, b'x')", "quotactl": "call(179, 60, 0, None, 0, None)",
    "quotactl_fd": "call(443, 443, 0, 0, 0, None)", "clock_settime": "call(227, 112, 0, None)",
    "clock_adjtime": "call(305, 266, 0, None)", "adjtimex": "call(159, 171, None)", "vhangup": "call(153, 58)",
    "setdomainname": "call(171, 162, b'x', 1)", "setgroups": "call(116, 159, 1, bytes(4))",
    "setgid": "call(106, 144, 1)", "real time": "call(144, 119, 0, 1, b'\\1' + bytes(3))",
    "kcmp": "call(312, 272, 1, 1, 0, 0, 0)", "setuid": "call(105, 146, 1)",
    "mknod": "call(259, 33, -100, b'device', 0o20666, 0x103)", "setpriority": "call(141, 140, 0, 0, -20)",
}  # fmt: skip
PROGRAMS = (
    "mount -t tmpfs x /tmp", "umount /proc", "mount -o remount,rw /proc", "unshare -U true", "unshare -m true",
    "mknod d c 1 1", "hostname x", "nsenter -t 1 -m true", "chown 1:1 crlf.txt",
)  # fmt: skip


class Unprivileged(Given):
    """What programs of the image try."""

    @pytest.mark.parametrize("attempt", PROGRAMS)
    def test_no_program_leads_to_a_privilege(self, box: Sandbox, attempt: str) -> None:
        assert sh(box, attempt).exit_code not in (0, 127)

    def test_file_operations_cannot_reach_the_kernel(self, box: Sandbox) -> None:
        for path in ("/proc/sys/kernel/core_pattern", "/proc/self/environ", "/proc/sysrq-trigger", "/sys/power/state"):
            with pytest.raises(OSError):  # noqa: PT011
                box.read(path)
        assert sh(box, "ln -s /proc/sys/kernel/core_pattern aim").exit_code == 0
        harmless = Path("/proc/sys/kernel/core_pattern").read_bytes()
        for path in ("/proc/sys/kernel/core_pattern", "aim"):
            with pytest.raises(OSError):  # noqa: PT011
                box.write(path, harmless)


class Kernel(Unprivileged):
    """No privilege, nothing of the machine."""

    def test_an_action_has_no_capability_and_gets_none(self, box: Sandbox) -> None:
        status = said(box, "cat /proc/self/status")
        assert {line.split()[1] for line in status.splitlines() if line.startswith("Cap")} == {"0" * 16}
        assert {"NoNewPrivs:\t1", "Seccomp:\t2"} <= set(status.splitlines())

    def test_no_system_call_leads_to_a_privilege(self, box: Sandbox) -> None:
        program = _CALL + "\n".join(f"print({name!r}, {attempt}, sep=':')" for name, attempt in REFUSED.items())
        done = python(box, program)
        found = dict(line.split(":") for line in done.stdout.decode().splitlines())
        assert list(found) == list(REFUSED), done
        assert {name: why for name, why in found.items() if why not in ("EPERM", "EACCES")} == {}

    def test_a_namespace_is_not_to_be_had_by_the_call_whose_flags_no_filter_sees(self, box: Sandbox) -> None:
        assert python(box, _CALL + "print(call(435, 435, bytes(88), 88))").stdout == b"ENOSYS\n"

    @pytest.mark.skipif(platform.machine() != "x86_64", reason="only these processors have more than one way in")
    def test_no_other_way_into_the_kernel_is_open(self, box: Sandbox) -> None:
        """The numbers of the x32 interface, and the 32-bit entry: a filter has to know of them."""
        done = python(box, _CALL + "print(call(0x40000000 + 39, 0))")
        assert (done.exit_code, done.stdout) in ((0, b"EPERM\n"), (128 + 31, b"")), done
        entry = """
            import ctypes, mmap
            page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
            page.write(bytes.fromhex('b814000000cd80c3'))  # getpid
            print(ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))())
        """
        done = python(box, entry)
        assert (done.exit_code in (128 + 31, 128 + 11), done.stdout) == (True, b""), done

    def test_no_program_gets_capabilities_by_an_attribute_of_its_file(self, box: Sandbox) -> None:
        give = """
            import os
            try: os.setxattr('tool.sh', 'security.capability', bytes.fromhex('0100000200000020' + '00' * 12))
            except OSError as error: print(error.strerror)
        """
        assert python(box, give).stdout == b"Operation not permitted\n"

    def test_no_terminal_is_typed_into(self, box: Sandbox) -> None:
        type_into = """
            import fcntl
            for place in (0, 1, 2, '/dev/tty', '/dev/console', '/dev/tty0'):
                try: fcntl.ioctl(place if isinstance(place, int) else open(place), 0x5412, b'x')
                except OSError: continue
                print(place)
        """
        assert python(box, type_into).stdout == b""

    def test_programs_that_run_as_another_user_gain_nothing(self, box: Sandbox) -> None:
        make = "cp $(readlink -f $(command -v cat)) mine; chmod 6755 mine; ./mine /proc/self/status | grep -h ^Cap"
        assert set(said(box, make).split()[1::2]) == {"0" * 16}
        for program in ("su nobody -s /bin/sh -c true", "newgrp nogroup", "mount --bind /tmp /mnt", "sudo -n true"):
            assert sh(box, program).exit_code != 0, program

    def test_a_file_of_another_user_that_a_fork_leaves_is_nobodys_way_up(self, box: Sandbox) -> None:
        assert sh(box, "cp /bin/sh root-shell; chmod 4755 root-shell").exit_code == 0
        box.snapshot()
        assert said(box, "./root-shell -pc 'grep CapEff /proc/self/status'").endswith("0" * 16)

    def test_no_file_of_the_kernel_opens_for_writing(self, box: Sandbox) -> None:
        walk = """
            import os, stat
            null = os.stat('/dev/null').st_rdev
            def opens(path):
                try: os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW))
                except OSError: return False
                return os.stat(path).st_rdev != null
            tried = 0
            for top in ('/proc', '/sys'):
                for here, folders, files in os.walk(top):
                    if here == '/proc':
                        folders[:] = [name for name in folders if not name.isdigit() or name in ('1', str(os.getpid()))]
                    folders[:] = [name for name in folders if name not in ('task', 'fd', 'map_files', 'net')]
                    tried += len(files)
                    print(*(path for path in (here + '/' + name for name in files) if opens(path)), end='')
            print(tried > 500)
        """
        assert python(box, walk, timeout_s=200).stdout == b"True\n"

    def test_what_tells_of_the_machine_is_empty_or_absent(self, box: Sandbox) -> None:
        hidden = ("kcore", "keys", "kmsg", "kallsyms", "timer_list", "vmallocinfo", "modules", "slabinfo")
        assert said(box, f"cd /proc; cat {' '.join(hidden)} 2>/dev/null | wc -c") == "0"
        assert said(box, "ls -A /sys 2>/dev/null | wc -l") == "0"
        assert sh(box, "dmesg").exit_code != 0

    def test_the_machines_devices_are_used_and_never_changed(self, box: Sandbox) -> None:
        """They are the same as outside: a mode that is set here would be set there. It is set to what it is."""
        change = """
            import os, stat
            for name in ('null', 'zero', 'full', 'random', 'urandom', 'tty'):
                facts = os.stat('/dev/' + name)
                for act in (lambda: os.chmod('/dev/' + name, stat.S_IMODE(facts.st_mode)),
                            lambda: os.utime('/dev/' + name, ns=(facts.st_atime_ns, facts.st_mtime_ns)),
                            lambda: os.unlink('/dev/' + name)):
                    try: act()
                    except OSError: continue
                    print(name, 'changed')
        """
        assert python(box, change).stdout == b""
        assert said(box, "echo x > /dev/null; head -c 3 /dev/zero | wc -c; echo y > /dev/stdout") == "3\ny"
        assert sh(box, ": > /dev/leak").exit_code != 0
