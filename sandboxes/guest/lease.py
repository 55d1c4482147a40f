"""The process of a lease: it enters a fork's file system and serves requests there until the lease ends."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from typing import List, NoReturn, Optional, Tuple

from .action import Action
from .confine import SET_UP
from .duplicate import imitate
from .files import read_file, remove, restore, write_file
from .frames import FREEZE, OVER, Json, Refused, failure, receive, reply
from .init import Init
from .kernel import (
    CLONE_NEWNS,
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_RDONLY,
    MS_REMOUNT,
    PIVOT_ROOT,
    attach,
    call,
    cloned,
    detached,
    die_with_parent,
    mount,
    overlay,
    unmount,
    unshare,
)
from .seal import Seals, check, opened_all
from .store import Store, covered, differing_in, home_of, upper_and_work
from .template import Template
from .views import root_of, seen

LIKELY_MORE = 2
"""After this many commands a fork is likely to run another one: most forks run none, or a single test command."""
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")


class Lease:
    """A fork of a state that is held for a caller."""

    def __init__(
        self, store: Store, state: Json, request: Json, folder: str, config: Json, template: Optional[Template] = None
    ) -> None:
        self.store, self.state, self.request, self.folder, self.config = store, state, request, folder, config
        self.template = template
        self.uppers: List[int] = []
        self.commands = 0
        self.ready: Optional[Init] = None
        self.seals = Seals(folder) if request.get("seal") or request.get("check") else None
        root = request.get("set_up") or not state.get("user")
        self.user: Tuple[int, int] = (0, 0) if root else tuple(state["user"])

    def serve(self) -> NoReturn:
        """Run as the process of the lease; never returns."""
        try:
            self.begin()
            while True:
                self.answer(*receive())
        finally:
            os._exit(1)

    def begin(self) -> None:
        """Enter the fork and reply to the request. Ends the process if that fails."""
        try:
            die_with_parent()
            self.enter()
        except (OSError, Refused, RecursionError) as error:
            reply(failure(error))
            os._exit(OVER)
        reply({"workdir": self.state["workdir"], "env": self.state["env"]})
        if self.template and self.user == (0, 0):
            self.make_ready(self.template)

    def answer(self, request: Json, payload: bytes) -> None:
        """Handle one request. Ends the process if the request ends the lease."""
        operation = request["op"]
        if operation == "close":
            self.end(OVER, {})
        try:
            if operation == "snapshot":
                if self.seals:
                    self.seals.take(self.uppers)
                self.end(FREEZE)
            os.chdir(self.state["workdir"])
            if operation == "exec":
                self.execute(request, payload)
            elif operation == "read":
                reply({}, read_file(request["path"], request["max_bytes"]))
            else:
                if operation == "write":
                    write_file(request["path"], payload, request["executable"], self.user)
                else:
                    remove(request["path"])
                reply({})
        except (OSError, Refused, RecursionError, ValueError) as error:  # the last: a path with a NUL
            reply(failure(error))

    def execute(self, request: Json, stdin: bytes) -> None:
        """Run a command, then prepare for the next one if it is likely to come."""
        template = self.template if request.get("ordered") else None
        if request.get("ordered") and template is None:
            raise Refused("template", "there is no template")
        if template and self.user != (0, 0):
            raise Refused("template", "a template runs commands as root, but this image runs them as another user")
        init = self._init(template)
        try:
            header, output = Action(request, stdin, self.config, init).run(self.uppers)
            reply(header, output)
        finally:
            init.end()
        if header["timed_out"]:
            self.end(OVER)
        self.commands += 1
        if self.ready is None and self.commands >= LIKELY_MORE:
            self.make_ready()

    def make_ready(self, template: Optional[Template] = None) -> None:
        """Start the first process of the next command in advance."""
        with suppress(OSError):  # no request depends on it
            self.ready = self._init(template)

    def _init(self, template: Optional[Template] = None) -> Init:
        """Return the first process that was started in advance, or a new one."""
        ready = self.ready
        if ready and ready.template is template:
            self.ready = None
            if not ready.dead():
                return ready
            ready.end()
        capabilities = SET_UP if self.request.get("set_up") else ()
        return Init(self.user, capabilities, self.config["network"], template)

    def end(self, code: int, answer: Optional[Json] = None) -> NoReturn:
        """End the lease. Its mounts are unmounted when this process ends; the caller need not wait for the unmount."""
        if self.ready:
            self.ready.end()
        if answer is not None:
            reply(answer)
        os._exit(code)

    def enter(self) -> None:
        """Mount the fork and make it this process's root. No path in it is used before that, so no symbolic link in it
        can lead outside."""
        unshare(CLONE_NEWNS)
        root, spare = (os.path.join(os.path.dirname(self.folder), name) for name in ("root", "spare"))
        trees = [self._overlay(number, mount, spare) for number, mount in enumerate(self.state["mounts"])]
        sources = self._sources(spare)
        devices = [cloned("/dev/" + name) for name in DEVICES]
        proc = detached("proc", [])
        attach(trees[0], root)
        self._mounted(root)
        os.chdir(root)
        call(PIVOT_ROOT[platform.machine()], "pivot_root", b".", b".")
        unmount(".")
        os.chdir("/")
        for tree, entry in zip(trees[1:], self.state["mounts"][1:]):  # noqa: B905 - Python 3.8
            os.makedirs(entry["target"], exist_ok=True)
            attach(tree, entry["target"])
            self._mounted(entry["target"])
        if self.seals and self.request.get("check"):
            self.seals.check(self.state)
        self.config["processes_fd"] = mount_kernel_files(proc, devices)
        for number, (path, text) in enumerate(sorted(self.request.get("borrowed", {}).items())):
            lend(path, text, "/dev/.borrowed-%d" % number)
        mount("", "/dev", "", MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID)
        for source, target, paths in sources:
            put_in(source, target, paths)

    def _mounted(self, target: str) -> None:
        if self.seals:
            self.seals.roots.append(root_of(cloned(target)))

    def _overlay(self, number: int, entry: Json, spare: str) -> int:
        lowers = self.store.lowers(entry)
        if self.seals:
            self.seals.layers.append(opened_all(lowers[:-1]))
        upper, work = upper_and_work(self.folder, number)
        for path in (upper, work):
            os.makedirs(path)
        self.uppers.append(os.open(upper, os.O_RDONLY | os.O_DIRECTORY))
        original = os.open(lowers[0], os.O_RDONLY | os.O_DIRECTORY)
        imitate(original, self.uppers[-1], ".")
        os.close(original)
        return overlay(lowers, upper, work, spare)

    def _sources(self, spare: str) -> List[Tuple[int, str, List[str]]]:
        """Open what a scratch fork gets from two states, while they are still visible: first the workspace of the
        state to measure, then the paths to put back. Each item is a source directory, a target path and the paths."""
        if not self.request.get("outside"):
            return []
        wanted = self.store.load(self.request["id"])
        entry, folder = home_of(self.state)
        brought = differing_in(folder, self.state, wanted)
        put_back = covered([os.path.join(folder, path) for path in self.request["put_back"]], brought)
        sources = [(wanted, brought), (self.state, put_back)]
        return [(self._seen(state, spare), entry["target"], paths) for state, paths in sources if paths]

    def _seen(self, state: Json, spare: str) -> int:
        """Open a view of the mount that holds a state's workspace. It is closed when this process ends, without delay
        for the caller."""
        entry = home_of(state)[0]
        lowers = self.store.lowers(entry)
        root = seen(lowers, spare)[0]
        if self.request.get("check"):
            check(state, entry, root, opened_all(lowers[:-1]))
        return root


def put_in(source: int, target: str, paths: List[str]) -> None:
    """Make each path below `target` the same as in `source`."""
    root = os.open(target, os.O_RDONLY | os.O_DIRECTORY)
    for path in paths:
        restore(source, root, path.split("/"))
    os.close(root)


def mount_kernel_files(proc: int, devices: List[int]) -> int:
    """Mount /proc and /dev, and return a descriptor of the lease's /proc. That /proc is covered at once: it is mounted
    only because the kernel then allows an action to mount another. The devices are the machine's own: actions can write
    to them, but not change their modes and times."""
    os.makedirs("/proc", exist_ok=True)
    attach(proc, "/proc")
    processes = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY)
    mount("tmpfs", "/proc", "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV, "size=4k,nr_inodes=8")
    os.makedirs("/dev/shm", mode=0o1777, exist_ok=True)
    shared = cloned("/dev/shm")
    mount("tmpfs", "/dev", "tmpfs", MS_NOSUID, "size=4m,nr_inodes=128,mode=755")
    os.mkdir("/dev/shm")
    attach(shared, "/dev/shm")
    for name, device in zip(DEVICES, devices):  # noqa: B905 - Python 3.8
        os.close(os.open("/dev/" + name, os.O_CREAT, 0o666))
        attach(device, "/dev/" + name)
        mount("", "/dev/" + name, "", MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NOEXEC)
    for name, target in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        os.symlink("/proc/self/fd" + target, "/dev/" + name)
    return processes


def lend(path: str, text: str, spare: str) -> None:
    """Show a file that is not part of the state: anywhere in /dev, elsewhere only over an existing file."""
    place = path if path.startswith("/dev/") else spare
    with open(place, "w") as file:
        file.write(text)
    if place == spare and os.path.isfile(path) and not os.path.islink(path):
        mount(spare, path, "", MS_BIND)
