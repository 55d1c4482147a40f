"""The first states: a workspace copied in, set-up commands run, shared environments built once."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from sandboxes import Limits, SandboxError, SnapshotMissing, Workspace
from sandboxes.forking.guest_client import Guest, Upload
from sandboxes.forking.host_network_env import borrow
from sandboxes.forking.image_user import ROOT, Account, account, activated
from sandboxes.forking.launcher import Layout
from sandboxes.forking.lease import LeasedSandbox
from sandboxes.forking.workspace_files import Repository, pack, repository
from sandboxes.forking.workspace_setup import SETUP_TIMEOUT_S, give, listed, run_all, settled_in

__all__ = ["ENV", "HOSTS", "SETUP_DISK_BYTES", "SHARED", "BaseStateBuilder", "variables"]

SHARED = "environments"
"""The area of a guest's states that all runs of this machine share."""

ENV = {
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "PYTHONDONTWRITEBYTECODE": "1",  # an edit within a second of the last one would meet stale byte code
    "PYTHONHASHSEED": "0",
}
HOSTS = "127.0.0.1\tlocalhost sandbox\n::1\tlocalhost\n"
"""The names that every sandbox knows: its own."""
SETUP_DISK_BYTES = 32 << 30
_COMPILE_TIMEOUT_S = 120
_COMPILE = """
import compileall, py_compile, signal
signal.alarm({})
checked = py_compile.PycInvalidationMode.CHECKED_HASH
compileall.compile_dir(".", quiet=2, force=True, workers=0, invalidation_mode=checked)
"""
_WAIT_S = 0.2


def variables(layout: Layout, workspace: Workspace) -> dict[str, str]:
    """The environment of every action."""
    return {**ENV, **layout.env, **workspace.env}


@dataclass(frozen=True, slots=True)
class BaseStateBuilder:
    """Makes the base state of one workspace. What its commands build is built once, in the area that runs share."""

    guest: Guest
    layout: Layout
    workspace: Workspace
    limits: Limits
    online: Callable[[], AbstractContextManager[Guest]]
    """Starts a guest with a network, for commands that have to run."""
    sealed: bool = False
    """Whether the base is noted with a digest, for forks that are compared with it."""
    account: Account = ROOT
    """Who runs the commands of states; those of the set-up are root's."""

    def found(self) -> dict[str, Any]:
        """The base state: its id and digest.

        Raises:
            SetupFailed, StoreFull, SandboxError: as `sandboxes.Provider.create`.
        """
        known, first = self._first_state()
        with LeasedSandbox.lease(self.guest, "", self._generous, id=first, seal=self.sealed, set_up=True) as fork:
            if self.workspace.path is None or self.account != ROOT:
                give(fork, self.account.user, self.account.group)
            if self.workspace.path is None:
                known = listed(fork)
            if self.workspace.byte_code:
                _compile(fork)
                if self.account != ROOT:
                    give(fork, self.account.user, self.account.group)
            _name_itself(fork)
            last = fork.freeze()["id"]  # with the directories that mounts go to, made once
        settled, _ = self.guest.ask("settle", id=last, tracked=known.tracked, exclude=known.exclude)
        self.guest.ask("discard", ids=sorted({first, last}))
        return settled

    def informed(self) -> BaseStateBuilder:
        """The same, with the user and the environment that commands have inside an image, and its repository found."""
        if not (self.layout.user or "BASH_ENV" in self.layout.env or self.workspace.nested):
            return self
        before = self._state("store", "/", self.layout.key)
        try:
            with LeasedSandbox.lease(self.guest, "", self.limits, id=before) as fork:
                who = account(fork.read, self.layout.user) if self.layout.user else ROOT
                env = who.at_home(variables(self.layout, self.workspace))
                workdir = settled_in(fork, self.workspace, self.layout.workdir)
                layout = replace(self.layout, env=activated(fork, env), workdir=workdir)
                return replace(self, layout=layout, account=who)
        finally:
            self.guest.ask("discard", ids=[before])

    @property
    def _generous(self) -> Limits:
        return replace(self.limits, disk_bytes=max(self.limits.disk_bytes, SETUP_DISK_BYTES))

    def _first_state(self) -> tuple[Repository, str]:
        """What git knows of the workspace, and a state that holds it with all commands run."""
        layout, workspace = self.layout, self.workspace
        environment = self._environment() if workspace.environment else None
        if not workspace.setup:
            known, layer, content = _import(self.guest, layout, workspace, "store")
            return known, self._state("store", layout.workdir, f"{layout.key} {content}", layer, environment)
        known, layer, content = _import(self.guest, layout, workspace, SHARED)
        first = self._state(SHARED, layout.workdir, f"{layout.key} {content}", layer, environment)
        targets, env = [target for target, _ in layout.mounts], variables(layout, workspace)
        borrowed = sorted(borrow().env)
        key = _key(layout.key, targets, layout.workdir, environment, content, workspace.setup, env, borrowed)
        self._build_once(key, first, workspace.setup, on=environment)
        return known, self._state("store", layout.workdir, f"{layout.key} {content}", None, key)

    def _environment(self) -> str:
        """The name of the shared environment that the workspace's commands build."""
        layout, commands = self.layout, self.workspace.environment
        key = _key(layout.key, [target for target, _ in layout.mounts], commands)
        self._build_once(key, self._state(SHARED, "/", layout.key), commands)
        return key

    def _state(
        self, area: str, workdir: str, key: str, layer: str | None = None, environment: str | None = None
    ) -> str:
        """A state in which nothing has run yet."""
        env = variables(self.layout, self.workspace)
        header, _ = self.guest.ask(
            "found",
            area=area,
            mounts=self.layout.mounts,
            workdir=workdir,
            key=key,
            env=env,
            user=[self.account.user, self.account.group],
            layer=layer,
            environment=environment,
        )
        return str(header["id"])

    def _build_once(self, key: str, first: str, commands: Sequence[str], on: str | None = None) -> None:
        """Make the shared entry `key` of a first state, which is used up, unless it is there or another process makes
        it. Commands that fail leave nothing."""
        try:
            if not self._known(key):
                with self.online() as builder:
                    if _reserved(builder, key):
                        self._build(builder, key, first, commands, on)
        finally:
            self.guest.ask("discard", area=SHARED, ids=[first])

    def _known(self, key: str) -> bool:
        try:
            self.guest.ask("info", area=SHARED, id=key)
        except SnapshotMissing:
            return False
        return True

    def _build(self, builder: Guest, key: str, first: str, commands: Sequence[str], on: str | None) -> None:
        borrowed = borrow()
        lent = {"borrowed": borrowed.files, "set_up": True}
        with LeasedSandbox.lease(builder, "", self._generous, None, id=first, area=SHARED, **lent) as fork:
            home = {"HOME": "/root"} if self.account.user else {}
            run_all(fork, commands, {**borrowed.env, **home})
            last = fork.freeze()["id"]
        builder.ask("settle", area=SHARED, id=last, entry=key, on=on)
        builder.ask("discard", area=SHARED, ids=[last])


def _reserved(builder: Guest, key: str) -> bool:
    """Whether the entry is the builder's to make, until it ends; False once another has made it."""
    while True:
        answer, _ = builder.ask("reserve", id=key)
        if answer["ours"] or answer["built"]:
            return bool(answer["ours"])
        time.sleep(_WAIT_S)


def _import(guest: Guest, layout: Layout, workspace: Workspace, area: str) -> tuple[Repository, str | None, str]:
    """Copy the workspace in; what git knows of it, the layer that holds it, and a name of its content."""
    if workspace.path is None:
        return Repository(), None, ""
    known = repository(workspace.path)
    guest.send({"op": "import", "area": area, "mounts": layout.mounts, "workdir": layout.workdir})
    try:
        with io.BufferedWriter(Upload(guest), 1 << 20) as stream:
            pack(workspace.path, known.tracked or (), layout.leave_out, stream)
    except (OSError, SandboxError):
        guest.close()
        raise
    header = guest.answer()
    return known, header["layer"], header["digest"]


def _compile(fork: LeasedSandbox) -> None:
    """Put byte code beside the workspace's Python files: actions write none, and would compile every file that they
    import anew. It is checked by content, so that no edit meets another file's. Where there is no Python, none is
    needed, and what cannot be compiled in time is left."""
    program = _COMPILE.format(_COMPILE_TIMEOUT_S)
    fork.exec(
        ["sh", "-c", 'for p in python3 python; do "$p" -I -c "$0" && break; done', program], timeout_s=SETUP_TIMEOUT_S
    )


def _name_itself(fork: LeasedSandbox) -> None:
    """An image's own /etc/hosts is empty: whoever runs the image lends it another."""
    with contextlib.suppress(OSError):
        if not fork.read("/etc/hosts"):
            fork.write("/etc/hosts", HOSTS.encode())


def _key(*parts: object) -> str:
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()
