"""Restricts an action: a system call filter, a masked /proc, and capabilities that it can never regain."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from functools import lru_cache
from typing import Sequence, Tuple

from .frames import Refused
from .kernel import LIBC, MS_BIND, MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_RDONLY, MS_REMOUNT, checked, mount, prctl

CLONE_NEW_ANY = 0x7E020000
AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
CLONE = {"x86_64": 56, "aarch64": 220}
CLONE3 = 435
SOCKET = {"x86_64": 41, "aarch64": 198}
FAMILIES = (1, 2, 10, 16)
"""The allowed socket families: local, IPv4, IPv6, netlink. One of the others, AF_VSOCK, would reach the host of a
virtual machine, and network namespaces do not contain it."""
IOCTL = {"x86_64": 16, "aarch64": 29}
OF_NAMESPACES = 0xB700
"""The kind of ioctl that returns a namespace's owner, parent or neighbours, which a template could then enter."""
FALLOCATE = {"x86_64": 285, "aarch64": 47}
"""This call can take gigabytes of disk space within a millisecond, before any check could notice."""
DENIED = {
    # mount umount2 pivot_root chroot unshare setns ptrace process_vm_readv/writev kcmp bpf keyctl add_key request_key
    # userfaultfd perf_event_open kexec_load kexec_file_load init/finit/delete_module open_by_handle_at acct swapon
    # swapoff reboot settimeofday clock_settime adjtimex clock_adjtime quotactl syslog sethostname setdomainname
    # vhangup lookup_dcookie; x86 also iopl ioperm
    "x86_64": "165 166 155 161 272 308 101 310 311 312 321 250 248 249 323 298 246 320 175 313 176 304 163 167 168 169 "
    "164 227 159 305 179 103 170 171 153 212 172 173",
    "aarch64": "40 39 41 51 97 268 117 270 271 272 280 219 217 218 282 241 104 294 105 273 106 265 89 224 225 142 170 "
    "112 171 266 60 116 161 162 58 18",
}
DENIED_ANYWHERE = "425 426 427 428 429 430 431 432 433 438 442 443 467"
"""io_uring, open_tree .. fspick, pidfd_getfd, mount_setattr, quotactl_fd, open_tree_attr."""


@lru_cache(maxsize=None)
def filter_program(spared: Tuple[int, ...] = ()) -> bytes:
    """Return the seccomp program of an action. It refuses namespaces, mounts, tracing, keys and kernel modules; clone3
    appears to be missing, and disk space cannot be reserved without writing. `spared` system calls are allowed."""
    machine = platform.machine()
    if machine not in DENIED:
        raise Refused("unavailable", "no system call filter for %s processors" % machine)
    allow, refuse, absent = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
    unsupported, no_family = 0x00050000 | errno.EOPNOTSUPP, 0x00050000 | errno.EAFNOSUPPORT
    load, equal, at_least, any_bit, bits, answer = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
    code = [(load, 0, 0, 4), (equal, 1, 0, AUDIT_ARCH[machine]), (answer, 0, 0, 0x80000000), (load, 0, 0, 0)]
    if machine == "x86_64":
        code += [(at_least, 0, 1, 0x40000000), (answer, 0, 0, refuse)]  # the x32 numbers
    for number in map(int, (DENIED[machine] + " " + DENIED_ANYWHERE).split()):
        if number not in spared:
            code += [(equal, 0, 1, number), (answer, 0, 0, refuse)]
    code += [(equal, 0, 1, CLONE3), (answer, 0, 0, absent)]  # its flags are in memory, which a filter cannot read
    code += [(equal, 0, 1, FALLOCATE[machine]), (answer, 0, 0, unsupported)]
    code += [(equal, 0, len(FAMILIES) + 2, SOCKET[machine]), (load, 0, 0, 16)]
    code += [(equal, len(FAMILIES) - number, 0, family) for number, family in enumerate(FAMILIES)]
    code += [(answer, 0, 0, no_family)]
    code += [(equal, 0, 4, IOCTL[machine]), (load, 0, 0, 24), (bits, 0, 0, 0xFF00)]
    code += [(equal, 0, 1, OF_NAMESPACES), (answer, 0, 0, refuse), (load, 0, 0, 0)]
    code += [(equal, 0, 3, CLONE[machine]), (load, 0, 0, 16), (any_bit, 0, 1, CLONE_NEW_ANY), (answer, 0, 0, refuse)]
    code += [(answer, 0, 0, allow)]
    return b"".join(struct.pack("HBBI", *instruction) for instruction in code)


SET_UP = (0, 1, 3, 4, 5, 6, 7)
"""CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID: the capabilities for installing packages. They apply to
the fork's files and processes only; mounts, devices and network settings stay closed."""


def give_up_privileges(program: bytes, keep: Sequence[int] = (), user: Tuple[int, int] = (0, 0)) -> None:
    """Become `user`, permanently drop all capabilities except `keep`, and load a seccomp program. `exec` cannot bring
    any privileges back."""
    for capability in range(64):
        if capability not in keep and LIBC.prctl(24, capability, 0, 0, 0) < 0:
            break
    if user != (0, 0):
        os.setgroups([user[1]])
        os.setresgid(user[1], user[1], user[1])
        os.setresuid(user[0], user[0], user[0])
    kept = sum(1 << capability for capability in keep)
    checked(LIBC.capset(struct.pack("Ii", 0x20080522, 0), struct.pack("6I", kept, kept, 0, 0, 0, 0)), "capset")
    prctl(38, 1)
    buffer = ctypes.create_string_buffer(program, len(program))
    loaded = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    checked(LIBC.prctl(22, 2, loaded, 0, 0), "seccomp")


LANDLOCK_CREATE_RULESET, LANDLOCK_RESTRICT_SELF = 444, 446
SCOPE_ABSTRACT_SOCKETS = 1


def close_abstract_sockets() -> None:
    """Cut the command off from the abstract local sockets of other processes in its network. Has no effect on Linux
    before 6.12 or without Landlock."""
    wanted = struct.pack("QQQ", 0, 0, SCOPE_ABSTRACT_SOCKETS)
    rules = LIBC.syscall(LANDLOCK_CREATE_RULESET, wanted, len(wanted), 0)
    if rules >= 0:
        checked(LIBC.syscall(LANDLOCK_RESTRICT_SELF, rules, 0), "landlock")
        os.close(rules)


def be_closed() -> None:
    """Keep processes without capabilities from reading this process's memory or using its descriptors. This ends when
    the process executes a program."""
    prctl(4, 0)


HIDDEN_PROC = ("kcore", "keys", "key-users", "timer_list", "timer_stats", "latency_stats", "sched_debug", "kmsg",
               "kallsyms", "kpagecount", "kpageflags", "kpagecgroup", "vmallocinfo", "slabinfo", "modules")  # fmt: skip


PROC_FLAGS = MS_NOSUID | MS_NODEV | MS_NOEXEC


def mount_proc() -> None:
    """Mount a /proc of this process id namespace, without the files that reveal facts about the machine."""
    mount("proc", "/proc", "proc", PROC_FLAGS)
    for name in HIDDEN_PROC:
        if os.path.exists("/proc/" + name):
            mount("/dev/null", "/proc/" + name, "", MS_BIND)


def close_proc() -> None:
    """Make /proc read-only: an action can change neither the kernel's settings, nor which process is killed first when
    memory runs out."""
    mount("", "/proc", "", MS_BIND | MS_REMOUNT | MS_RDONLY | PROC_FLAGS)
