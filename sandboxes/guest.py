"""The one program that runs inside: it keeps states, forks them, runs commands in the forks, and kills.

It needs nothing but Python 3.8 and a Linux kernel with overlay mounts in user namespaces (5.11). Start it with one
argument, a JSON object, and speak frames on its stdin and stdout; a closed stdin, or the death of the process that was
started, ends everything it ever started and leaves nothing mounted.

    {"store": DIR, "environments": DIR,      where states and shared environments live, on disk, writable
     "network": false,                       true: share the caller's network instead of an own, empty one
     "memory_events": FILE, "pids_events": FILE}   optional: cgroup counters that tell why a command ended

A frame is two big-endian 32-bit lengths, a JSON header of the first length, a payload of the second. The guest speaks
first: `{"guest": 1}`. Then one reply a request. A failure is `{"error": KIND, "message": TEXT}` with KIND one of
unavailable, missing, full, lost, sandbox, or os (then also `errno` and `path`).

Without a lease (`area` is "store" or "environments", "store" when left out):

    import   mounts [[TARGET, LOWER]], workdir; followed by tar bytes in frames {} + payload, ended by an empty payload
             -> {"layer": DIR relative to the store, "digest": HEX}; a layer that holds the workspace at its place
    found    area, mounts, workdir, env, key TEXT, environment ID or null, layer or null
             -> {"id", "digest"}; a state with nothing changed yet, `key` names its lower directories' content
    settle   area, id, as ID or null, tracked [PATH] or null, exclude TEXT
             -> {"id", "digest"}; the same state as a base that later ones are compared with
    info     area, id -> {"id", "digest", "workdir", "env", "depth"}
    compare  old, new, content -> {"changes": [[PATH, OLD, NEW]], "ignores", "exclude", "nested", "tracked"};
             OLD and NEW are null or [KIND, MODE, SIZE]; with content the payload holds each old, then new, SIZE bytes
    discard  area, id -> {}; removes the state and the layers that no other state needs
    lease    area, id, outside ID or null, put_back [PATH], borrowed {PATH: TEXT} -> {"workdir", "env"}
             `outside`: take everything but the workspace from that state, and in it the put_back paths;
             `borrowed`: files seen during this lease that are no part of the state

With a lease:

    exec     argv, cwd, env, timeout_s, output_bytes, memory_bytes, pids, disk_bytes; payload: stdin
             -> {"code", "stdout", "stdout_bytes", "stderr_bytes", "duration_s", "timed_out", "limit"};
             payload: `stdout` bytes of stdout, then stderr. After a time-out the lease is over.
    read     path, max_bytes -> {} + payload
    write    path, executable true, false or null; payload -> {}
    remove   path -> {}
    snapshot -> {"id", "digest"}; the lease is over
    close    -> {}; the lease is over, its changes are gone

On disk: `layers/ID/N` is the frozen upper directory of mount N, `states/ID.json` a state, `imports/ID` a copied
workspace, `leases/ID` a live guest's own, removed when its lock is free.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import gc
import hashlib
import io
import json
import os
import platform
import resource
import select
import shutil
import signal
import socket
import stat
import struct
import sys
import time
from contextlib import ExitStack, contextmanager
from typing import Any, Callable, Dict, Iterator, List, NoReturn, Optional, Tuple

Json = Dict[str, Any]
Entry = List[Any]
"""What is at a path: [kind, mode, content hash or link target, mtime in ns]; kind is f, l, d, o(ther) or gone."""

VERSION = 1
MAX_DEPTH = 100
"""Layers in a chain. The kernel's own limit is 500 with its new mount interface, about 170 with the old one."""
UNCOUNTED = ("__pycache__", ".pytest_cache")
"""Left out of digests: caches that hold nothing of their own."""
DISK_CHECK_S = 0.1
SPARE_BYTES = 64 << 20
OVER, CLOSE, FREEZE = 0, 10, 11
"""How a lease's process ends: all is said, or the server is to close the lease, or to freeze it."""


class Refused(Exception):
    """A request that fails; becomes an error frame."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


# ---------------------------------------------------------------------------------------------- frames


def read_exactly(size: int) -> bytes:
    """From stdin. Ends the process when the host is gone."""
    parts = []
    while size:
        part = os.read(0, min(size, 1 << 20))
        if not part:
            os._exit(OVER)
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def receive() -> Tuple[Json, bytes]:
    """The next request."""
    head, body = struct.unpack("!II", read_exactly(8))
    header: Json = json.loads(read_exactly(head))
    return header, read_exactly(body)


def reply(header: Json, payload: bytes = b"") -> None:
    """Send a frame. Ends the process when the host is gone."""
    head = json.dumps(header).encode()
    data = memoryview(struct.pack("!II", len(head), len(payload)) + head + payload)
    try:
        while data:
            data = data[os.write(1, data) :]
    except BrokenPipeError:
        os._exit(OVER)


def failure(error: Exception) -> Json:
    """The error frame that says it."""
    if isinstance(error, Refused):
        return {"error": error.kind, "message": str(error)}
    if isinstance(error, OSError):
        kind = "full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "os"
        path = error.filename if isinstance(error.filename, str) else ""
        return {"error": kind, "errno": error.errno or 0, "message": error.strerror or str(error), "path": path}
    return {"error": "sandbox", "message": "%s: %s" % (type(error).__name__, error)}


# ---------------------------------------------------------------------------------------------- kernel

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x20000, 0x4000000, 0x8000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
CLONE_NEW_ANY = 0x7E020000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND = 1, 2, 4, 8, 32, 4096
MS_REC, MS_PRIVATE = 16384, 1 << 18
MNT_DETACH = 2
OPEN_TREE, MOVE_MOUNT, FSOPEN, FSCONFIG, FSMOUNT = 428, 429, 430, 431, 432
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
CLONE = {"x86_64": 56, "aarch64": 220}
CLONE3 = 435
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


def checked(result: int, what: str) -> int:
    """Raise OSError when a system call failed."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, "%s: %s" % (what, os.strerror(number)))
    return result


def call(number: int, what: str, *arguments: Any) -> int:
    """A system call that libc has no function for."""
    return checked(LIBC.syscall(number, *arguments), what)


def unshare(flags: int) -> None:
    """Leave namespaces."""
    checked(LIBC.unshare(flags), "unshare")


def prctl(option: int, value: Any) -> None:
    """As the manual's page of that name."""
    checked(LIBC.prctl(option, value, 0, 0, 0), "prctl %d" % option)


def die_with_parent() -> None:
    """The kernel kills this process when its parent dies."""
    prctl(1, signal.SIGKILL)


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """As the manual's page of that name."""
    names = [os.fsencode(text) or None for text in (source, target, kind)]
    checked(LIBC.mount(*names, flags, os.fsencode(options) or None), "mount %s" % target)


def unmount(target: str) -> None:
    """Detach what is mounted there."""
    checked(LIBC.umount2(os.fsencode(target), MNT_DETACH), "unmount %s" % target)


def detached(kind: str, options: List[Tuple[str, str]], attributes: int = 0) -> int:
    """A file system that is mounted nowhere yet, as a descriptor. An option without a value is a flag."""
    context = call(FSOPEN, "fsopen " + kind, kind.encode(), 1)
    try:
        for name, value in options:
            text = os.fsencode(value) if value else None
            call(FSCONFIG, "%s %s=%s" % (kind, name, value), context, 1 if value else 0, name.encode(), text, 0)
        call(FSCONFIG, "%s create" % kind, context, 6, None, None, 0)
        return call(FSMOUNT, "fsmount " + kind, context, 1, attributes)
    finally:
        os.close(context)


def cloned(path: str) -> int:
    """What a path shows, as a mount that is mounted nowhere yet."""
    return call(OPEN_TREE, "open_tree " + path, -100, os.fsencode(path), 1 | os.O_CLOEXEC)


def attach(descriptor: int, path: str) -> None:
    """Mount what `detached` or `cloned` gave, and close it."""
    call(MOVE_MOUNT, "move_mount " + path, descriptor, b"", -100, os.fsencode(path), 4)
    os.close(descriptor)


def overlay(lowers: List[str], upper: str, work: str, spare: str) -> int:
    """A detached overlay; `lowers` top-most first. Kernels before 6.5 mount it at `spare` for a moment."""
    places = [("upperdir", upper), ("workdir", work)] if upper else []
    flags = [("userxattr", ""), ("volatile", "")] if upper else [("userxattr", "")]
    try:
        return detached("overlay", [("lowerdir+", lower) for lower in lowers] + places + flags)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOSYS):
            raise
        reason = error
    escaped = ":".join(lower.replace("\\", "\\\\").replace(":", "\\:").replace(",", "\\,") for lower in lowers)
    options = [("lowerdir", escaped), *places, *flags]
    try:
        mount("overlay", spare, "overlay", 0, ",".join("=".join(filter(None, option)) for option in options))
    except OSError:
        raise Refused("unavailable", "no overlay of %s (%s)" % (", ".join(lowers[-1:]), reason.strerror)) from reason
    descriptor = cloned(spare)
    unmount(spare)
    return descriptor


def filter_program() -> bytes:
    """The seccomp program of an action: no namespaces, mounts, tracing, keys, kernel modules; clone3 is not there."""
    machine = platform.machine()
    if machine not in DENIED:
        raise Refused("unavailable", "no system call filter for %s processors" % machine)
    allow, refuse, absent = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
    load, equal, at_least, any_bit, answer = 0x20, 0x15, 0x35, 0x45, 0x06
    code = [(load, 0, 0, 4), (equal, 1, 0, AUDIT_ARCH[machine]), (answer, 0, 0, 0x80000000), (load, 0, 0, 0)]
    if machine == "x86_64":
        code += [(at_least, 0, 1, 0x40000000), (answer, 0, 0, refuse)]  # the x32 numbers
    for number in (DENIED[machine] + " " + DENIED_ANYWHERE).split():
        code += [(equal, 0, 1, int(number)), (answer, 0, 0, refuse)]
    code += [(equal, 0, 1, CLONE3), (answer, 0, 0, absent)]  # its flags are in memory, out of a filter's sight
    code += [(equal, 0, 3, CLONE[machine]), (load, 0, 0, 16), (any_bit, 0, 1, CLONE_NEW_ANY), (answer, 0, 0, refuse)]
    code += [(answer, 0, 0, allow)]
    return b"".join(struct.pack("HBBI", *instruction) for instruction in code)


def give_up_privileges(program: bytes) -> None:
    """For good: no capability, none to be had by exec, and the filter."""
    for capability in range(64):
        if LIBC.prctl(24, capability, 0, 0, 0) < 0:
            break
    checked(LIBC.capset(struct.pack("Ii", 0x20080522, 0), struct.pack("6I", 0, 0, 0, 0, 0, 0)), "capset")
    prctl(38, 1)
    buffer = ctypes.create_string_buffer(program, len(program))
    loaded = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    checked(LIBC.prctl(22, 2, loaded, 0, 0), "seccomp")


# ---------------------------------------------------------------------------------------------- entering


def enter(network: bool) -> None:
    """Go into namespaces of our own. The caller stays outside and waits; what returns is their first process."""
    flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS
    enter_user_namespace(flags if network else flags | CLONE_NEWNET)
    server = os.fork()
    if server:
        os.close(0)
        os.close(1)
        os.waitpid(server, 0)
        os._exit(0)
    die_with_parent()
    mount("", "/", "", MS_REC | MS_PRIVATE)
    socket.sethostname("sandbox")
    if not network:
        with socket.socket() as loopback:
            fcntl.ioctl(loopback, 0x8914, struct.pack("16sH22x", b"lo", 0x41))


def enter_user_namespace(flags: int) -> None:
    """All users mapped to themselves when we may, else only our own, to root."""
    user, group = os.geteuid(), os.getegid()
    ready, done = os.pipe(), os.pipe()
    me = os.getpid()
    mapper = 0 if user else os.fork()
    if user == 0 and mapper == 0:
        os.close(ready[1])
        os.read(ready[0], 1)
        os._exit(0 if map_all(me) else 1)
    try:
        unshare(flags)
    except OSError as error:
        raise Refused("unavailable", "user namespaces are refused here (%s)" % error.strerror) from error
    os.write(ready[1], b"x")
    for end in ready + done:
        os.close(end)
    if user or os.waitpid(mapper, 0)[1]:
        write_text("/proc/self/setgroups", "deny")
        write_text("/proc/self/uid_map", "0 %d 1" % user)
        write_text("/proc/self/gid_map", "0 %d 1" % group)


def map_all(process: int) -> bool:
    """Give a process in a new user namespace every user and group that we have, each as itself."""
    try:
        for kind in ("uid_map", "gid_map"):
            with open("/proc/self/" + kind) as own:
                first = own.readline().split()
            write_text("/proc/%d/%s" % (process, kind), "0 0 %d" % min(int(first[2]), 65536))
    except OSError:
        return False
    return True


def write_text(path: str, text: str) -> None:
    """In one write, as the files of /proc want it."""
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


# ---------------------------------------------------------------------------------------------- states


def new_id() -> str:
    """A name that nobody has."""
    return os.urandom(8).hex()


def hashed(value: Any) -> str:
    """Of anything that JSON can say, whatever the order of its keys."""
    return hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=16).hexdigest()


class Store:
    """A directory of states and layers. Several guests use one at a time."""

    def __init__(self, path: str) -> None:
        self.path = os.path.realpath(path)
        for name in ("layers", "states", "imports", "leases", "repositories"):
            os.makedirs(os.path.join(self.path, name), exist_ok=True)

    def at(self, *names: str) -> str:
        """A path in the store."""
        return os.path.join(self.path, *names)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """No other guest saves, discards, sweeps or claims meanwhile."""
        descriptor = os.open(self.at("lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def load(self, name: str) -> Json:
        """A state."""
        try:
            with open(self.at("states", name + ".json")) as file:
                state: Json = json.load(file)
        except FileNotFoundError as error:
            raise Refused("missing", "there is no state %s" % name) from error
        return state

    def save(self, state: Json) -> Json:
        """Write a state whole; its id and digest."""
        self.write(self.at("states", state["id"] + ".json"), json.dumps(state))
        return {"id": state["id"], "digest": state["digest"]}

    def write(self, path: str, text: str) -> None:
        """A file, whole or not at all."""
        temporary = "%s.%s" % (path, new_id())
        with open(temporary, "w") as file:
            file.write(text)
        os.rename(temporary, path)

    def lowers(self, mount: Json, layers: Optional[int] = None) -> List[str]:
        """A mount's directories, top-most first, with only so many of its layers."""
        chain = mount["chain"] if layers is None else mount["chain"][:layers]
        return [self.at(name) for name in reversed(chain)] + [self.at(mount["lower"])]

    def discard(self, name: str) -> None:
        """Remove a state and the layers that no other state needs."""
        with self.locked():
            mine = directories(self.load(name))
            os.unlink(self.at("states", name + ".json"))
            for other in os.listdir(self.at("states")):
                if not mine:
                    return
                if other.endswith(".json"):
                    mine -= directories(self.load(other[:-5]))
        for path in mine:
            shutil.rmtree(self.at(path), ignore_errors=True)
            if path.startswith("layers/"):
                remove_empty(os.path.dirname(self.at(path)))

    def sweep(self) -> None:
        """Remove what guests left that are dead."""
        for name in os.listdir(self.at("leases")):
            descriptor = os.open(self.at("leases", name), os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(self.at("leases", name), ignore_errors=True)
            except BlockingIOError:
                continue
            finally:
                os.close(descriptor)


def directories(state: Json) -> set[str]:
    """What a state needs of its own store."""
    names = {name for mount in state["mounts"] for name in [*mount["chain"], mount["lower"]]}
    return {name for name in names if name.startswith(("layers/", "imports/"))}


def remove_empty(path: str) -> None:
    """A directory, if nothing is in it."""
    try:
        os.rmdir(path)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.ENOENT):
            raise


def digest_of(state: Json) -> str:
    """Of what differs from the base, and of the base; in any order, without times."""
    counted = [
        (mount["target"], path, entry[:3])
        for mount in state["mounts"]
        for path, entry in mount["delta"].items()
        if not any(name in UNCOUNTED for name in path.split("/"))
    ]
    return hashed([state["base"], sorted(counted)])


def describe(directory: int, name: str) -> Optional[Entry]:
    """What is there, None when nothing is; never through a symbolic link."""
    try:
        facts = os.lstat(name, dir_fd=directory)
    except (FileNotFoundError, NotADirectoryError):
        return None
    mode, content, kind = stat.S_IMODE(facts.st_mode), "", "o"
    if stat.S_ISREG(facts.st_mode):
        kind, content = "f", hash_file(directory, name)
    elif stat.S_ISLNK(facts.st_mode):
        kind, content = "l", os.readlink(name, dir_fd=directory)
    elif stat.S_ISDIR(facts.st_mode):
        kind = "d"
    else:
        content = "%o %d" % (stat.S_IFMT(facts.st_mode), facts.st_rdev)
    return [kind, mode, content, facts.st_mtime_ns]


def hash_file(directory: int, name: str) -> str:
    """Of a regular file's bytes."""
    summary = hashlib.blake2b(digest_size=16)
    with os.fdopen(open_at(directory, name), "rb", 0) as file:
        for part in iter(lambda: file.read(1 << 20), b""):
            summary.update(part)
    return summary.hexdigest()


def open_at(directory: int, name: str, flags: int = os.O_RDONLY) -> int:
    """Open without following a link or waiting for a pipe's other end."""
    return os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)


def open_directory(directory: int, name: str) -> Optional[int]:
    """None when it is no directory, or a link to one."""
    try:
        return open_at(directory, name, os.O_DIRECTORY)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            return None
        raise


@contextmanager
def parent_of(root: int, path: str) -> Iterator[Optional[Tuple[int, str]]]:
    """The directory that holds a relative path and the path's last name; None when there is no such directory."""
    *parents, name = path.split("/")
    with ExitStack() as opened:
        directory: Optional[int] = root
        for parent in parents:
            directory = open_directory(directory, parent) if directory is not None else None
            if directory is None:
                break
            opened.callback(os.close, directory)
        yield None if directory is None else (directory, name)


class Freeze:
    """Reads a mount's upper directory into what differs from the base, and drops from it what differs in nothing."""

    def __init__(self, delta: Dict[str, Entry]) -> None:
        self.delta = dict(delta)
        self.before = delta

    def absorb(self, upper: int, base: Optional[int], path: str, fresh: bool) -> bool:
        """Take in one directory; whether anything is left in it. `fresh`: no lower layer shows through it."""
        left = False
        for name in os.listdir(upper):
            here = path + "/" + name if path else name
            left |= self._absorb_one(upper, base, name, here, fresh)
        return left

    def _absorb_one(self, upper: int, base: Optional[int], name: str, path: str, fresh: bool) -> bool:
        facts = os.lstat(name, dir_fd=upper)
        if stat.S_ISCHR(facts.st_mode) and facts.st_rdev == 0:
            self.replace(path, base, name)
            if base is not None and exists(base, name):
                self.delta[path] = ["gone", 0, "", 0]
            return True
        if stat.S_ISDIR(facts.st_mode):
            return self._absorb_directory(upper, base, name, path, fresh)
        entry = describe(upper, name)
        original = describe(base, name) if base is not None else None
        if entry == self.before.get(path, original) and not fresh:
            os.unlink(name, dir_fd=upper)
            return False
        self.replace(path, base, name)
        self.put(path, entry, original)
        return True

    def _absorb_directory(self, upper: int, base: Optional[int], name: str, path: str, fresh: bool) -> bool:
        directory = open_at(upper, name, os.O_DIRECTORY)
        below = open_directory(base, name) if base is not None else None
        try:
            entry, original = describe(upper, name), describe(base, name) if base is not None else None
            fresh = fresh or is_opaque(directory)
            known = self.before.get(path, original)
            if fresh:
                self.replace(path, base, name)
                for child in os.listdir(below) if below is not None else []:
                    self.delta[path + "/" + child] = ["gone", 0, "", 0]
            self.put(path, entry, original)
            left = self.absorb(directory, below, path, fresh)
        finally:
            os.close(directory)
            if below is not None:
                os.close(below)
        if left or fresh or known is None or entry is None or known[:3] != entry[:3]:
            return True
        os.rmdir(name, dir_fd=upper)
        return False

    def put(self, path: str, entry: Optional[Entry], original: Optional[Entry]) -> None:
        """Note what is there now, unless it is what the base has."""
        assert entry is not None
        if original is not None and original[:3] == entry[:3]:
            self.delta.pop(path, None)
        else:
            self.delta[path] = entry

    def replace(self, path: str, base: Optional[int], name: str) -> None:
        """Forget all that was known at and below a path."""
        was = self.delta.pop(path, None)
        if (was and was[0] == "d") or (base is not None and is_directory(base, name)):
            for other in [other for other in self.delta if other.startswith(path + "/")]:
                del self.delta[other]


def exists(directory: int, name: str) -> bool:
    """Whether anything is there."""
    try:
        os.lstat(name, dir_fd=directory)
    except FileNotFoundError:
        return False
    return True


def is_directory(directory: int, name: str) -> bool:
    """Whether a real directory is there."""
    try:
        return stat.S_ISDIR(os.lstat(name, dir_fd=directory).st_mode)
    except FileNotFoundError:
        return False


def is_opaque(directory: int) -> bool:
    """Whether an upper directory hides the lower ones of its name."""
    try:
        return os.getxattr(directory, "user.overlay.opaque") == b"y"
    except OSError as error:
        if error.errno in (errno.ENODATA, errno.ENOTSUP):
            return False
        raise


# ---------------------------------------------------------------------------------------------- an action

READ_ONLY_PROC = ("sys", "irq", "bus", "fs", "acpi", "asound", "scsi", "sysrq-trigger", "driver", "dynamic_debug")
HIDDEN_PROC = ("kcore", "keys", "key-users", "timer_list", "timer_stats", "latency_stats", "sched_debug", "kmsg",
               "kallsyms", "kpagecount", "kpageflags", "kpagecgroup", "vmallocinfo", "slabinfo", "modules")  # fmt: skip


class Action:
    """One command: its own processes, /proc and IPC, no privileges, a deadline."""

    def __init__(self, request: Json, stdin: bytes, config: Json) -> None:
        self.request, self.stdin, self.config = request, stdin, config
        self.limit = int(request["output_bytes"])
        self.kept: Dict[int, bytearray] = {}
        self.written: Dict[int, int] = {}

    def run(self, uppers: List[int]) -> Tuple[Json, bytes]:
        """Run it to its end; the reply."""
        started = time.monotonic()
        counters = self.counters()
        out, err, status = os.pipe(), os.pipe(), os.pipe()
        init = start_init(lambda: self.become_init(out[1], err[1], status[1]))
        for end in (out[1], err[1], status[1]):
            os.close(end)
        problem, ended_by = self.watch(out[0], err[0], status[0], init, uppers, started + self.request["timeout_s"])
        code = exit_code(os.waitpid(init, 0)[1])
        self.drain(out[0], err[0])
        for end in (out[0], err[0], status[0]):
            os.close(end)
        if problem:
            raise Refused("sandbox", problem)
        limit = ended_by if ended_by == "disk" else self.why(code, counters)
        header = {
            "code": 124 if ended_by == "time" else code,
            "stdout": len(self.kept[out[0]]),
            "stdout_bytes": self.written[out[0]],
            "stderr_bytes": self.written[err[0]],
            "duration_s": time.monotonic() - started,
            "timed_out": ended_by == "time",
            "limit": "" if ended_by == "time" else limit,
        }
        return header, bytes(self.kept[out[0]] + self.kept[err[0]])

    def watch(self, out: int, err: int, status: int, init: int, uppers: List[int], deadline: float) -> Tuple[str, str]:
        """Collect output until the first process is gone; (what failed before the command began, what killed it)."""
        poll = select.poll()
        for descriptor in (out, err, status):
            os.set_blocking(descriptor, False)
            poll.register(descriptor, select.POLLIN)
        poll.register(0, select.POLLIN)
        self.kept = {out: bytearray(), err: bytearray()}
        self.written = {out: 0, err: 0}
        disk = Disk(uppers, int(self.request["disk_bytes"]))
        killed = problem = ""
        while True:
            now = time.monotonic()
            if not killed and (now >= deadline or disk.exceeded(now)):
                killed = "time" if now >= deadline else "disk"
                os.kill(init, signal.SIGKILL)
            for descriptor, _ in poll.poll(max(0.0, min(deadline - now, DISK_CHECK_S)) * 1000 if not killed else 1000):
                if descriptor == 0:  # nothing is asked for while a command runs: the host is gone
                    os._exit(OVER)
                data = os.read(descriptor, 1 << 16)
                if descriptor == status:
                    if not data:
                        return problem, killed
                    problem = data.decode()
                elif data:
                    self.keep(descriptor, data)
                else:
                    poll.unregister(descriptor)

    def keep(self, descriptor: int, data: bytes) -> None:
        """The head of the output, and how much it was in all."""
        room = self.limit - len(self.kept[descriptor])
        self.kept[descriptor] += data[: max(0, room)]
        self.written[descriptor] += len(data)

    def drain(self, *descriptors: int) -> None:
        """What is left in the pipes of processes that are all dead."""
        for descriptor in descriptors:
            try:
                for data in iter(lambda: os.read(descriptor, 1 << 16), b""):  # noqa: B023 - called at once
                    self.keep(descriptor, data)
            except BlockingIOError:
                continue

    def counters(self) -> Dict[str, int]:
        """How often each limit was hit so far."""
        found = {}
        for limit, word in (("memory", b"oom_kill"), ("pids", b"max")):
            descriptor = self.config.get(limit + "_fd")
            for line in os.pread(descriptor, 4096, 0).splitlines() if descriptor is not None else []:
                if line.split()[0] == word:
                    found[limit] = int(line.split()[1])
        return found

    def why(self, code: int, before: Dict[str, int]) -> str:
        """The limit that ended the command, "" when it is not known or none did."""
        if code == 128 + signal.SIGXFSZ:
            return "disk"
        after = self.counters() if code else {}
        return next((limit for limit in after if after[limit] > before.get(limit, 0)), "")

    def become_init(self, out: int, err: int, status: int) -> NoReturn:
        """Be the first process of the action: start the command, reap, and take everything along at the end."""
        try:
            die_with_parent()
            unshare(CLONE_NEWNS | CLONE_NEWIPC)
            mount_proc()
            stdin = self._stdin()
            for descriptor, number in ((stdin, 0), (out, 1), (err, 2), (status, 3)):
                os.dup2(descriptor, number, inheritable=number < 3)
            os.closerange(4, 1 << 16)
            write_text("/proc/self/oom_score_adj", "1000")
            self._set_limits()
            give_up_privileges(filter_program())
            os.umask(0o022)
        except (OSError, Refused) as error:
            os.write(status, ("an action cannot be isolated: %s" % error).encode())
            os._exit(1)
        os._exit(reap(self._spawn()))

    def _stdin(self) -> int:
        if not self.stdin:
            return os.open("/dev/null", os.O_RDONLY)
        descriptor = os.memfd_create("stdin")
        with open(os.dup(descriptor), "wb") as file:
            file.write(self.stdin)
        os.lseek(descriptor, 0, os.SEEK_SET)
        return descriptor

    def _set_limits(self) -> None:
        limits = {resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: int(self.request["disk_bytes"])}
        if self.config.get("memory_fd") is None:
            limits[resource.RLIMIT_AS] = int(self.request["memory_bytes"])
        if self.config.get("pids_fd") is None:
            limits[resource.RLIMIT_NPROC] = int(self.request["pids"])
        for kind, value in limits.items():
            hard = resource.getrlimit(kind)[1]
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(kind, (value, value))

    def _spawn(self) -> int:
        """Start the command; its process id, or minus the exit code when it cannot be started."""
        argv, env = self.request["argv"], self.request["env"]
        try:
            os.chdir(self.request["cwd"])
            return os.posix_spawn(
                find_program(argv[0], env.get("PATH", "")),
                argv,
                env,
                setsid=True,
                setsigdef=[signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT],
            )
        except OSError as error:
            name = os.fsencode(error.filename or argv[0])
            os.write(2, b"%s: %s\n" % (name, (error.strerror or "").encode()))
            return -127 if error.errno == errno.ENOENT and error.filename != self.request["cwd"] else -126


class Disk:
    """Watches what one command adds to the store."""

    def __init__(self, uppers: List[int], limit: int) -> None:
        self.uppers, self.limit = uppers, limit
        self.free = self._free_bytes()
        self.next = time.monotonic() + DISK_CHECK_S
        self.before: Optional[int] = None

    def _free_bytes(self) -> int:
        facts = os.fstatvfs(self.uppers[0])
        return facts.f_bavail * facts.f_frsize

    def exceeded(self, now: float) -> bool:
        """Looked at now and then: the uppers are measured only when the whole disk shrank by half the limit."""
        if now < self.next:
            return False
        self.next = now + DISK_CHECK_S
        free = self._free_bytes()
        if free < SPARE_BYTES:
            return True
        return self.free - free > self.limit // 2 and sum(map(used_bytes, self.uppers)) > self.limit


def used_bytes(directory: int) -> int:
    """What a tree takes on disk."""
    total = 0
    for _, folders, files, here in os.fwalk(".", dir_fd=directory, follow_symlinks=False):
        for name in folders + files:
            try:
                total += os.lstat(name, dir_fd=here).st_blocks * 512
            except FileNotFoundError:
                continue
    return total


def start_init(body: Callable[[], NoReturn]) -> int:
    """Fork the first process of a new process id namespace; the caller stays in its own."""
    unshare(CLONE_NEWPID)
    child = os.fork()
    if child == 0:
        body()
    checked(LIBC.setns(OWN_PIDS[0], CLONE_NEWPID), "setns")
    return child


OWN_PIDS: List[int] = []
"""The server's process id namespace, opened while a /proc shows it."""


def mount_proc() -> None:
    """A /proc of this process id namespace, with the kernel's own settings out of reach."""
    flags = MS_NOSUID | MS_NODEV | MS_NOEXEC
    mount("proc", "/proc", "proc", flags)
    for name in READ_ONLY_PROC:
        path = "/proc/" + name
        if os.path.exists(path):
            mount(path, path, "", MS_BIND | MS_REC)
            mount("", path, "", MS_BIND | MS_REMOUNT | MS_RDONLY | flags)
    for name in HIDDEN_PROC:
        if os.path.exists("/proc/" + name):
            mount("/dev/null", "/proc/" + name, "", MS_BIND)


def find_program(name: str, path: str) -> str:
    """As a shell finds it."""
    if "/" in name:
        return name
    refused = ""
    for directory in path.split(":"):
        candidate = os.path.join(directory, name)
        if os.path.isfile(candidate):
            if os.access(candidate, os.X_OK):
                return candidate
            refused = candidate
    if refused:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), refused)
    raise FileNotFoundError(errno.ENOENT, "command not found", name)


def reap(command: int) -> int:
    """Wait for the command and for every orphan before it; its exit code."""
    if command < 0:
        return -command
    while True:
        child, status = os.wait()
        if child == command:
            return exit_code(status)


def exit_code(status: int) -> int:
    """As a shell tells it: 128 + N when signal N ended it."""
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


# ---------------------------------------------------------------------------------------------- a lease

DEVICES = ("null", "zero", "full", "random", "urandom", "tty")


class Lease:
    """One fork of a state: a process that lives in the fork's file system and serves requests about it."""

    def __init__(self, store: Store, state: Json, request: Json, place: str, config: Json) -> None:
        self.store, self.state, self.request, self.place, self.config = store, state, request, place, config
        self.uppers: List[int] = []

    def serve(self) -> NoReturn:
        """Be that process."""
        try:
            die_with_parent()
            self.enter()
        except (OSError, Refused) as error:
            reply(failure(error))
            os._exit(OVER)
        reply({"workdir": self.state["workdir"], "env": self.state["env"]})
        while True:
            self.answer(*receive())

    def answer(self, request: Json, payload: bytes) -> None:
        """One request; ends the process when it ends the lease."""
        operation = request["op"]
        if operation in ("close", "snapshot"):
            os._exit(CLOSE if operation == "close" else FREEZE)
        try:
            os.chdir(self.state["workdir"])
            if operation == "exec":
                header, output = Action(request, payload, self.config).run(self.uppers)
                reply(header, output)
                if header["timed_out"]:
                    os._exit(OVER)
            elif operation == "read":
                reply({}, read_file(request["path"], request["max_bytes"]))
            else:
                if operation == "write":
                    write_file(request["path"], payload, request["executable"])
                else:
                    remove(request["path"])
                reply({})
        except (OSError, Refused) as error:
            reply(failure(error))

    def enter(self) -> None:
        """Mount the fork and make it this process's root. Nothing is looked up in it before, so that no symbolic
        link in it can lead outside."""
        unshare(CLONE_NEWNS)
        spare = os.path.join(self.place, "spare")
        trees = [self._overlay(number, mount, spare) for number, mount in enumerate(self.state["mounts"])]
        sources = self._sources(spare)
        devices = [cloned("/dev/" + name) for name in DEVICES]
        proc = detached("proc", [])
        root = os.path.join(self.place, "root")
        attach(trees[0], root)
        os.chdir(root)
        call(PIVOT_ROOT[platform.machine()], "pivot_root", b".", b".")
        unmount(".")
        os.chdir("/")
        for tree, entry in zip(trees[1:], self.state["mounts"][1:]):  # noqa: B905 - Python 3.8
            os.makedirs(entry["target"], exist_ok=True)
            attach(tree, entry["target"])
        mount_kernel_files(proc, devices)
        for number, (path, text) in enumerate(sorted(self.request.get("borrowed", {}).items())):
            lend(path, text, "/dev/.borrowed-%d" % number)
        mount("", "/dev", "", MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID)
        for source, target, paths in sources:
            put_in(source, target, paths)

    def _overlay(self, number: int, entry: Json, spare: str) -> int:
        lowers = self.store.lowers(entry)
        upper, work = upper_and_work(self.place, number)
        facts = os.stat(lowers[0])
        for path in (upper, work):
            os.makedirs(path)
        os.chmod(upper, stat.S_IMODE(facts.st_mode))
        self.uppers.append(os.open(upper, os.O_RDONLY | os.O_DIRECTORY))
        return overlay(lowers, upper, work, spare)

    def _sources(self, spare: str) -> List[Tuple[int, str, List[str]]]:
        """What a scratch fork gets from two states, opened while they can still be seen: the workspace of the one,
        then what is to be as in the other; each as a directory, where it is to go, and the paths."""
        if not self.request.get("outside"):
            return []
        wanted = self.store.load(self.request["id"])
        entry, folder = home_of(self.state)
        brought = differing_in(folder, self.state, wanted)
        put_back = covered([os.path.join(folder, path) for path in self.request["put_back"]], brought)
        sources = [(wanted, brought), (self.state, put_back)]
        return [(self._seen(state, spare), entry["target"], paths) for state, paths in sources if paths]

    def _seen(self, state: Json, spare: str) -> int:
        """The mount that holds a state's workspace, read-only."""
        lowers = self.store.lowers(home_of(state)[0])
        if len(lowers) == 1:
            return os.open(lowers[0], os.O_RDONLY | os.O_DIRECTORY)
        attach(overlay(lowers, "", "", spare), spare)
        return os.open(spare, os.O_RDONLY | os.O_DIRECTORY)


def put_in(source: int, target: str, paths: List[str]) -> None:
    """Make each path below `target` what it is in `source`, and close that."""
    root = os.open(target, os.O_RDONLY | os.O_DIRECTORY)
    for path in paths:
        restore(source, root, path.split("/"))
    os.close(root)
    os.close(source)


def upper_and_work(place: str, number: int) -> Tuple[str, str]:
    """Where a lease's own part of a mount lives."""
    return os.path.join(place, "upper", str(number)), os.path.join(place, "work", str(number))


def mount_kernel_files(proc: int, devices: List[int]) -> None:
    """/proc and /dev. Our own /proc is covered at once: it only licenses an action's."""
    os.makedirs("/proc", exist_ok=True)
    attach(proc, "/proc")
    mount("tmpfs", "/proc", "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV, "size=4k,nr_inodes=8")
    os.makedirs("/dev/shm", mode=0o1777, exist_ok=True)
    shared = cloned("/dev/shm")
    mount("tmpfs", "/dev", "tmpfs", MS_NOSUID, "size=4m,nr_inodes=128,mode=755")
    os.mkdir("/dev/shm")
    attach(shared, "/dev/shm")
    for name, device in zip(DEVICES, devices):  # noqa: B905 - Python 3.8
        os.close(os.open("/dev/" + name, os.O_CREAT, 0o666))
        attach(device, "/dev/" + name)
    for name, target in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        os.symlink("/proc/self/fd" + target, "/dev/" + name)


def lend(path: str, text: str, spare: str) -> None:
    """Show a file that is no part of the state: anywhere in /dev, elsewhere only over a file that is there."""
    place = path if path.startswith("/dev/") else spare
    with open(place, "w") as file:
        file.write(text)
    if place == spare and os.path.isfile(path) and not os.path.islink(path):
        mount(spare, path, "", MS_BIND)


def read_file(path: str, limit: int) -> bytes:
    """A regular file's content."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        facts = os.fstat(file.fileno())
        if stat.S_ISDIR(facts.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if not stat.S_ISREG(facts.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        if facts.st_size > limit:
            raise OSError(errno.EFBIG, "larger than %d bytes" % limit, path)
        return file.read()


def write_file(path: str, data: bytes, executable: Optional[bool]) -> None:
    """Create or replace a file. An old one's time moves on by a second at least: byte code compares whole seconds."""
    parent = os.path.dirname(path) or "."
    try:
        os.makedirs(parent, exist_ok=True)
    except FileExistsError as error:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), error.filename) from error
    try:
        old: Optional[os.stat_result] = os.stat(path)
    except FileNotFoundError:
        old = None
    if old and not stat.S_ISREG(old.st_mode) and not stat.S_ISDIR(old.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", path)
    with open(path, "wb") as file:
        file.write(data)
    if executable is not None:
        mode = stat.S_IMODE(os.stat(path).st_mode)
        os.chmod(path, mode | 0o111 if executable else mode & ~0o111)
    if old:
        moved = max(time.time_ns(), (old.st_mtime_ns // 10**9 + 1) * 10**9)
        os.utime(path, ns=(moved, moved))


def remove(path: str) -> None:
    """A file, a link or a whole directory; nothing when nothing is there."""
    try:
        if stat.S_ISDIR(os.lstat(path).st_mode):
            shutil.rmtree(path)
        else:
            os.unlink(path)
    except FileNotFoundError:
        return


def restore(base: Optional[int], workspace: int, names: List[str]) -> None:
    """Make a path what it is in `base`. Links are replaced, never followed."""
    name, rest = names[0], names[1:]
    original = open_directory(base, name) if base is not None else None
    there = open_directory(workspace, name) if rest else None
    try:
        if not rest:
            clear(workspace, name)
            if base is not None and exists(base, name):
                copy(base, workspace, name)
        elif there is not None:
            restore(original, there, rest)
        elif original is not None:
            clear(workspace, name)
            os.mkdir(name, stat.S_IMODE(os.fstat(original).st_mode), dir_fd=workspace)
            there = open_at(workspace, name, os.O_DIRECTORY)
            restore(original, there, rest)
    finally:
        for descriptor in (original, there):
            if descriptor is not None:
                os.close(descriptor)


def clear(directory: int, name: str) -> None:
    """Remove whatever is there."""
    if is_directory(directory, name):
        inside = open_at(directory, name, os.O_DIRECTORY)
        for child in os.listdir(inside):
            clear(inside, child)
        os.close(inside)
        os.rmdir(name, dir_fd=directory)
    elif exists(directory, name):
        os.unlink(name, dir_fd=directory)


def copy(source: int, target: int, name: str) -> None:
    """A file, link or tree, with modes and times."""
    facts = os.lstat(name, dir_fd=source)
    if stat.S_ISLNK(facts.st_mode):
        os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=target)
        return
    if stat.S_ISDIR(facts.st_mode):
        os.mkdir(name, dir_fd=target)
        inside, outside = open_at(source, name, os.O_DIRECTORY), open_at(target, name, os.O_DIRECTORY)
        for child in os.listdir(inside):
            copy(inside, outside, child)
        os.close(inside)
    elif stat.S_ISREG(facts.st_mode):
        inside = open_at(source, name)
        outside = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, dir_fd=target)
        with os.fdopen(inside, "rb") as old, os.fdopen(os.dup(outside), "wb") as new:
            shutil.copyfileobj(old, new)
    else:
        os.mkfifo(name, dir_fd=target)
        return
    os.fchmod(outside, stat.S_IMODE(facts.st_mode))
    os.utime(outside, ns=(facts.st_mtime_ns, facts.st_mtime_ns))
    os.close(outside)


def home(targets: List[str], workdir: str) -> Tuple[str, str]:
    """The mount that holds the workspace, and the workspace's path in it; "" when it is all of it."""
    above = [target for target in targets if (workdir + "/").startswith(target.rstrip("/") + "/")]
    target = max(above, key=len)
    return target, workdir[len(target.rstrip("/")) :].strip("/")


def home_of(state: Json) -> Tuple[Json, str]:
    """As `home`, with the mount of a state."""
    target, folder = home([entry["target"] for entry in state["mounts"]], state["workdir"])
    entry: Json = next(entry for entry in state["mounts"] if entry["target"] == target)
    return entry, folder


def near(path: str, folder: str) -> bool:
    """Whether a path is a folder, or below it, or above it."""
    return not folder or (path + "/").startswith(folder + "/") or folder.startswith(path + "/")


def differing_in(folder: str, one: Json, other: Json) -> List[str]:
    """The paths of a mount, at, below or above a folder, at which two states can differ."""
    before, after = home_of(one)[0]["delta"], home_of(other)[0]["delta"]
    both = sorted(path for path in set(before) | set(after) if path and near(path, folder))
    return [path for path in both if (before.get(path) or [])[:3] != (after.get(path) or [])[:3]]


def covered(wanted: List[str], paths: List[str]) -> List[str]:
    """Those of the paths that lie at or below a wanted one, and the wanted ones that lie below a path."""
    found = [path for path in paths if any((path + "/").startswith(name + "/") for name in wanted)]
    return found + [name for name in wanted if any(name.startswith(path + "/") for path in paths)]


# ---------------------------------------------------------------------------------------------- the server


class Server:
    """Keeps states and lets one lease at a time."""

    def __init__(self, config: Json) -> None:
        self.config = config
        self.areas = {name: Store(config[name]) for name in ("store", "environments") if name in config}
        self.name = new_id()
        self.count = 0
        for store in self.areas.values():
            with store.locked():
                store.sweep()
                self.claim(store)
        for limit in ("memory", "pids"):
            if config.get(limit + "_events"):
                config[limit + "_fd"] = os.open(config[limit + "_events"], os.O_RDONLY)
        OWN_PIDS.append(os.open("/proc/self/ns/pid", os.O_RDONLY))
        self.trash = start_remover()

    def claim(self, store: Store) -> None:
        """A directory of our own, locked as long as we live."""
        home = store.at("leases", self.name)
        for name in ("old", "new"):
            os.makedirs(os.path.join(home, name))
        fcntl.flock(os.open(home, os.O_RDONLY | os.O_DIRECTORY), fcntl.LOCK_EX)

    def serve(self) -> NoReturn:
        """Answer for ever."""
        operations = {
            "import": self.import_tree,
            "found": self.found,
            "settle": self.settle,
            "info": self._info,
            "compare": self.compare,
            "discard": self._discard,
        }
        reply({"guest": VERSION})
        while True:
            request, _ = receive()
            try:
                if request["op"] == "lease":
                    self.lease(request)
                elif request["op"] in operations:
                    reply(*operations[request["op"]](request))
                else:
                    raise Refused("sandbox", "no lease: %s" % request["op"])
            except (OSError, Refused) as error:
                reply(failure(error))

    def _area(self, request: Json) -> Store:
        return self.areas[request.get("area", "store")]

    def _discard(self, request: Json) -> Tuple[Json, bytes]:
        self._area(request).discard(request["id"])
        return {}, b""

    def _info(self, request: Json) -> Tuple[Json, bytes]:
        state = self._area(request).load(request["id"])
        depth = max(len(mount["chain"]) - mount["base"] for mount in state["mounts"])
        return {**{name: state[name] for name in ("id", "digest", "workdir", "env")}, "depth": depth}, b""

    def found(self, request: Json) -> Tuple[Json, bytes]:
        """The first state of a workspace or of an environment."""
        store = self._area(request)
        mounts = [
            {"target": target, "lower": lower, "chain": [], "base": 0, "delta": {}}
            for target, lower in request["mounts"]
        ]
        environment = self._build_on(mounts, request["environment"]) if request.get("environment") else ""
        if request.get("layer"):
            target = home([entry["target"] for entry in mounts], request["workdir"])[0]
            entry = next(entry for entry in mounts if entry["target"] == target)
            entry.update(chain=[*entry["chain"], request["layer"]], base=entry["base"] + 1)
        state = {
            "id": new_id(),
            "base": hashed([environment, request["key"]]),
            "mounts": mounts,
            "workdir": request["workdir"],
            "env": request["env"],
        }
        state["digest"] = digest_of(state)
        return store.save(state), b""

    def _build_on(self, mounts: List[Json], environment: str) -> str:
        """Put an environment's layers under every mount that it has too; its digest."""
        area = self.areas["environments"]
        built = area.load(environment)
        layers = {entry["target"]: entry["chain"] for entry in built["mounts"]}
        for entry in mounts:
            entry["chain"] = [area.at(name) for name in layers.get(entry["target"], [])]
            entry["base"] = len(entry["chain"])
        return str(built["digest"])

    def settle(self, request: Json) -> Tuple[Json, bytes]:
        """A state that later ones are compared with."""
        store = self._area(request)
        state = store.load(request["id"])
        for entry in state["mounts"]:
            entry["base"], entry["delta"] = len(entry["chain"]), {}
        repository = {"tracked": request.get("tracked"), "exclude": request.get("exclude", "")}
        name = hashed(repository)
        store.write(store.at("repositories", name + ".json"), json.dumps(repository))
        state.update(id=request.get("as") or new_id(), base=state["digest"], repository=name)
        state["digest"] = digest_of(state)
        return store.save(state), b""

    # -- leases

    def lease(self, request: Json) -> None:
        """Let a process of its own serve a fork until it ends, then freeze or drop what it changed."""
        store = self._area(request)
        state = self.forked(store, request)
        self.count += 1
        place = store.at("leases", self.name, str(self.count))
        for name in ("root", "spare"):
            os.makedirs(os.path.join(place, name))
        holder = os.fork()
        if holder == 0:
            Lease(store, state, request, place, self.config).serve()
        code = self.wait(holder)
        try:
            if code == FREEZE:
                reply(self.freeze(store, state, place))
            elif code == CLOSE:
                reply({})
            elif code != OVER:
                raise Refused("lost", "the process that held the fork died (%d)" % code)
        finally:
            os.write(self.trash, os.fsencode(place) + b"\0")

    def forked(self, store: Store, request: Json) -> Json:
        """The state to fork: the other one when that is wanted outside the workspace."""
        state = store.load(request["id"])
        if request.get("outside"):
            outside = store.load(request["outside"])
            if (state["base"], state["workdir"]) != (outside["base"], outside["workdir"]):
                raise Refused("sandbox", "%s and %s do not come from one base" % (state["id"], outside["id"]))
            state = outside
        if max(len(entry["chain"]) - entry["base"] for entry in state["mounts"]) > MAX_DEPTH:
            raise Refused("sandbox", "the state %s is more than %d layers deep" % (state["id"], MAX_DEPTH))
        return state

    def wait(self, holder: int) -> int:
        """For one child, reaping orphans; its exit code."""
        while True:
            child, status = os.wait()
            if child == holder:
                return exit_code(status)

    def freeze(self, store: Store, state: Json, place: str) -> Json:
        """Turn a finished lease's uppers into layers of a new state."""
        name = new_id()
        mounts = [self._freeze_mount(store, entry, place, n, name) for n, entry in enumerate(state["mounts"])]
        frozen = {**state, "id": name, "mounts": mounts}
        frozen["digest"] = digest_of(frozen)
        with store.locked():
            return store.save(frozen)

    def _freeze_mount(self, store: Store, entry: Json, place: str, number: int, name: str) -> Json:
        upper = upper_and_work(place, number)[0]
        mode = stat.S_IMODE(os.stat(upper).st_mode)
        same_mode = mode == stat.S_IMODE(os.stat(store.lowers(entry)[0]).st_mode)
        if same_mode and not os.listdir(upper):
            return entry
        with self.view(store, entry, entry["base"], "old") as base:
            freeze = Freeze(entry["delta"])
            opened = os.open(upper, os.O_RDONLY | os.O_DIRECTORY)
            left = freeze.absorb(opened, base, "", False)
            freeze.put("", ["d", mode, "", 0], ["d", stat.S_IMODE(os.fstat(base).st_mode), "", 0])
            os.close(opened)
        if same_mode and not left:
            return entry
        layer = "layers/%s/%d" % (name, number)
        os.makedirs(store.at("layers", name), exist_ok=True)
        os.rename(upper, store.at(layer))
        return {**entry, "chain": [*entry["chain"], layer], "delta": freeze.delta}

    @contextmanager
    def view(self, store: Store, entry: Json, layers: Optional[int], where: str) -> Iterator[int]:
        """A mount of a state, read-only, as a directory descriptor."""
        lowers = store.lowers(entry, layers)
        path = lowers[0] if len(lowers) == 1 else store.at("leases", self.name, where)
        if len(lowers) > 1:
            attach(overlay(lowers, "", "", path), path)
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            yield descriptor
        finally:
            os.close(descriptor)
            if len(lowers) > 1:
                unmount(path)

    # -- imports

    def import_tree(self, request: Json) -> Tuple[Json, bytes]:
        """Unpack a workspace."""
        import tarfile

        store = self._area(request)
        layer = "imports/" + new_id()
        folder = home([target for target, _ in request["mounts"]], request["workdir"])[1]
        top = os.path.join(store.at(layer), folder)
        os.makedirs(top)
        stream = Chunks()
        try:
            with tarfile.open(fileobj=io.BufferedReader(stream), mode="r|") as archive:
                times = [unpack(archive, member, top) for member in archive]
            for path, moment in reversed(times):
                os.utime(path, (moment, moment), follow_symlinks=False)
        finally:
            stream.drain()
        root = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
        summary = sorted((path, entry[:3]) for path, entry in leaves(root, "", directories=True))
        os.close(root)
        return {"layer": layer, "digest": hashed(summary)}, b""

    # -- comparing

    def compare(self, request: Json) -> Tuple[Json, bytes]:
        """What differs between the workspaces of two states."""
        store = self._area(request)
        old, new = store.load(request["old"]), store.load(request["new"])
        if (old["base"], old["workdir"]) != (new["base"], new["workdir"]):
            raise Refused("sandbox", "%s and %s do not come from one base" % (old["id"], new["id"]))
        (before, folder), (after, _) = home_of(old), home_of(new)
        top = folder + "/" if folder else ""
        with self.view(store, before, None, "old") as one, self.view(store, after, None, "new") as other:
            found = differing(one, other, differing_in(folder, old, new))
            paths = [path[len(top) :] for path in found if path.startswith(top)]
            changes, payload = [], []
            for path in paths:
                sides = [read_entry(view, top + path, bool(request.get("content"))) for view in (one, other)]
                changes.append([path, *(side and side[0] for side in sides)])
                payload += [side[1] for side in sides if side]
            facts = surroundings(other, top, paths) if request.get("content") else {}
        with open(store.at("repositories", new["repository"] + ".json")) as file:
            repository = json.load(file)
        known = set(repository["tracked"] or ())
        facts.update(changes=changes, exclude=repository["exclude"], tracked=[path for path in paths if path in known])
        return facts, b"".join(payload)


def start_remover() -> int:
    """Fork a process that removes directories in its own time; where to write their paths, each with a NUL.

    What it does not come to is swept by a later guest.
    """
    source, sink = os.pipe()
    if os.fork():
        os.close(source)
        return sink
    os.close(sink)
    os.dup2(source, 0)
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 1)
    rest = b""
    while True:
        data = os.read(0, 1 << 16)
        if not data:
            os._exit(0)
        *paths, rest = (rest + data).split(b"\0")
        for path in paths:
            shutil.rmtree(path, ignore_errors=True)


class Chunks(io.RawIOBase):
    """The payloads of the frames that follow a request, up to an empty one, as a file."""

    def __init__(self) -> None:
        self.rest = memoryview(b"")
        self.ended = False

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer."""
        if not self.rest and not self.ended:
            self.rest = memoryview(receive()[1])
            self.ended = not self.rest
        size = min(len(buffer), len(self.rest))
        buffer[:size] = self.rest[:size]
        self.rest = self.rest[size:]
        return size

    def drain(self) -> None:
        """Read to the end."""
        while not self.ended:
            self.ended = not receive()[1]


def unpack(archive: Any, member: Any, root: str) -> Tuple[str, float]:
    """One member of a tar; where it went, and its time."""
    parts = [part for part in member.name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise Refused("sandbox", "a path leads out of the workspace: %s" % member.name)
    path = os.path.join(root, *parts)
    if member.isdir():
        os.makedirs(path, exist_ok=True)
    elif member.issym():
        os.symlink(member.linkname, path)
        return path, member.mtime
    elif member.islnk():
        os.link(os.path.join(root, member.linkname), path)
    else:
        with open(path, "wb") as file:
            shutil.copyfileobj(archive.extractfile(member), file)
    os.chmod(path, member.mode & 0o7777)
    return path, member.mtime


def leaves(root: int, path: str, directories: bool = False) -> Iterator[Tuple[str, Entry]]:
    """Everything at and below a path that is no directory, or that too; caches are left out of whole trees."""
    for name in sorted(os.listdir(root)):
        here = path + "/" + name if path else name
        inside = open_directory(root, name)
        entry = describe(root, name)
        assert entry is not None
        if inside is None or directories:
            yield here, entry
        if inside is not None:
            yield from leaves(inside, here, directories)
            os.close(inside)


def differing(one: int, other: int, paths: List[str]) -> List[str]:
    """Paths, not of directories, at or below the given ones at which two views of one base differ."""
    found: Dict[str, None] = {}
    for path in paths:
        sides = [dict(at_or_below(view, path)) for view in (one, other)]
        if "" in sides[0] and "" in sides[1]:
            continue  # a directory on both sides: what is in it differs by paths of its own
        for leaf in sorted(set(sides[0]) | set(sides[1])):
            if leaf and (sides[0].get(leaf) or [])[:3] != (sides[1].get(leaf) or [])[:3]:
                found[leaf] = None
    return sorted(found)


def at_or_below(root: int, path: str) -> Iterator[Tuple[str, Entry]]:
    """The leaf at a path, or the leaves below it and then "" for the directory itself."""
    with parent_of(root, path) as place:
        if place is None:
            return
        entry = describe(*place)
        inside = open_directory(*place)
        if inside is not None:
            yield "", ["d"]
            yield from leaves(inside, path)
            os.close(inside)
        elif entry is not None:
            yield path, entry


def read_entry(root: int, path: str, content: bool) -> Optional[Tuple[List[Any], bytes]]:
    """[kind, mode, size] and the bytes of a leaf; None when none is there."""
    with parent_of(root, path) as place:
        entry = describe(*place) if place else None
        if place is None or entry is None or entry[0] == "d":
            return None
        data = b""
        if content and entry[0] == "l":
            data = os.fsencode(entry[2])
        elif content and entry[0] == "f":
            with os.fdopen(open_at(*place), "rb") as file:
                data = file.read()
        return [entry[0], entry[1], len(data)], data


def surroundings(root: int, top: str, paths: List[str]) -> Json:
    """The .gitignore files above the paths, and the nested repositories that hold some of them. Paths are relative to
    `top`, which ends in a slash or is empty."""
    ignores, nested = {}, []
    for folder in sorted({parent for path in paths for parent in parents(path)}):
        rules = read_entry(root, top + folder + ".gitignore", True)
        if rules and rules[0][0] == "f":
            ignores[folder + ".gitignore"] = rules[1].decode("utf-8", "surrogateescape")
        with parent_of(root, top + folder + ".git") as place:
            if folder and place and exists(*place):
                nested.append(folder)
    return {"ignores": ignores, "nested": nested}


def parents(path: str) -> List[str]:
    """Every directory above a path, "" first, each ending in a slash."""
    parts = path.split("/")[:-1]
    return ["".join(part + "/" for part in parts[:count]) for count in range(len(parts) + 1)]


def main() -> None:
    """Serve until stdin ends."""
    try:
        config = json.loads(sys.argv[1])
        filter_program()
        enter(config["network"])
        server = Server(config)
    except (OSError, Refused) as error:
        reply(failure(error))
        sys.exit(1)
    gc.freeze()
    server.serve()


if __name__ == "__main__":
    main()
