"""Builds base states: copies a workspace in, runs its set-up commands, and builds shared environments once."""

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
from sandboxes.forking.workspace_setup import SETUP_TIMEOUT_S, give, listed, run_all, workspace_folder

SHARED = "environments"
"""The area of a guest's store that all runs on this machine share."""

ENV = {
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "PYTHONDONTWRITEBYTECODE": "1",  # byte code would be stale after an edit within a second of the last one
    "PYTHONHASHSEED": "0",
    "GIT_OPTIONAL_LOCKS": "0",  # `git status` must not change the state
    "PIP_BREAK_SYSTEM_PACKAGES": "1",  # Debian's pip refuses to install otherwise, and changing a sandbox is harmless
}
HOSTS = "127.0.0.1\tlocalhost sandbox\n::1\tlocalhost\n"
"""The `/etc/hosts` of every sandbox, which names only the sandbox itself."""
_SETUP_DISK_BYTES = 32 << 30
_COMPILE_TIMEOUT_S = 120
_COMPILE = """
import compileall, py_compile, signal
signal.alarm({})
checked = py_compile.PycInvalidationMode.CHECKED_HASH
compileall.compile_dir(".", quiet=2, force=True, workers=0, invalidation_mode=checked)
"""
_WAIT_S = 0.2


def variables(layout: Layout, workspace: Workspace) -> dict[str, str]:
    """Return the environment variables of every action."""
    return {**ENV, **layout.env, **workspace.env}


@dataclass(frozen=True, slots=True)
class BaseStateBuilder:
    """Builds the base state of one workspace. The results of its commands are kept in the shared area and reused."""

    guest: Guest
    layout: Layout
    workspace: Workspace
    limits: Limits
    online: Callable[[], AbstractContextManager[Guest]]
    """Starts a guest with network access, for set-up commands."""
    sealed: bool = False
    """Whether a digest of the base state is recorded, so that forks can be compared with it."""
    account: Account = ROOT
    """The user who runs actions. Set-up commands run as root."""

    def build(self) -> dict[str, Any]:
        """Build the base state and return its id and digest.

        Raises:
            SetupFailed, StoreFull, SandboxError: as `sandboxes.Provider.create`.
        """
        repository_facts, first = self._first_state()
        with LeasedSandbox.lease(
            self.guest, "", setup_limits(self.limits), id=first, seal=self.sealed, set_up=True
        ) as fork:
            if self.workspace.path is None or self.account != ROOT:
                give(fork, self.account.user, self.account.group)
            if self.workspace.path is None:
                repository_facts = listed(fork)
            if self.workspace.byte_code:
                _compile(fork)
                if self.account != ROOT:
                    give(fork, self.account.user, self.account.group)
            _name_itself(fork)
            last = fork.freeze()["id"]  # includes the mount points, so they are made only once
        base, _ = self.guest.ask(
            "make_base", id=last, tracked=repository_facts.tracked, exclude=repository_facts.exclude
        )
        self.guest.ask("discard", ids=sorted({first, last}))
        return base

    def with_image_environment(self) -> BaseStateBuilder:
        """Return a copy of this builder with the user, environment and repository folder found inside the image."""
        if not (self.layout.user or "BASH_ENV" in self.layout.env or self.workspace.nested):
            return self
        before = self._state("store", "/", self.layout.key)
        try:
            with LeasedSandbox.lease(self.guest, "", self.limits, id=before) as fork:
                user = account(fork.read, self.layout.user) if self.layout.user else ROOT
                env = user.at_home(variables(self.layout, self.workspace))
                workdir = workspace_folder(fork, self.workspace, self.layout.workdir)
                layout = replace(self.layout, env=activated(fork, env), workdir=workdir)
                return replace(self, layout=layout, account=user)
        finally:
            self.guest.ask("discard", ids=[before])

    def _first_state(self) -> tuple[Repository, str]:
        """Return what git knows about the workspace, and a state that holds it after all set-up commands have run."""
        layout, workspace = self.layout, self.workspace
        environment = self._environment() if workspace.environment else None
        if not workspace.setup:
            repository_facts, layer, content = _import(self.guest, layout, workspace, "store")
            return repository_facts, self._state("store", layout.workdir, f"{layout.key} {content}", layer, environment)
        repository_facts, layer, content = _import(self.guest, layout, workspace, SHARED)
        first = self._state(SHARED, layout.workdir, f"{layout.key} {content}", layer, environment)
        targets, env = [target for target, _ in layout.mounts], variables(layout, workspace)
        borrowed = sorted(borrow().env)
        key = content_key(layout.key, targets, layout.workdir, environment, content, workspace.setup, env, borrowed)
        self._build_once(key, first, workspace.setup, on=environment)
        return repository_facts, self._state("store", layout.workdir, f"{layout.key} {content}", None, key)

    def _environment(self) -> str:
        """Build the workspace's shared environment if it does not exist yet, and return its key."""
        layout, commands = self.layout, self.workspace.environment
        key = content_key(layout.key, [target for target, _ in layout.mounts], commands)
        self._build_once(key, self._state(SHARED, "/", layout.key), commands)
        return key

    def _state(
        self, area: str, workdir: str, key: str, layer: str | None = None, environment: str | None = None
    ) -> str:
        """Make a state in which no command has run yet, and return its id."""
        env = variables(self.layout, self.workspace)
        header, _ = self.guest.ask(
            "make_root",
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
        """Build the shared entry `key` on the state `first`, unless it exists or another process builds it first.

        `first` is discarded. Commands that fail leave no entry.
        """
        try:
            if not self._exists(key):
                with self.online() as builder:
                    if _reserved(builder, key):
                        self._build(builder, key, first, commands, on)
        finally:
            self.guest.ask("discard", area=SHARED, ids=[first])

    def _exists(self, key: str) -> bool:
        try:
            self.guest.ask("info", area=SHARED, id=key)
        except SnapshotMissing:
            return False
        return True

    def _build(self, builder: Guest, key: str, first: str, commands: Sequence[str], on: str | None) -> None:
        borrowed = borrow()
        options = {"borrowed": borrowed.files, "set_up": True}
        limits = setup_limits(self.limits)
        with LeasedSandbox.lease(builder, "", limits, None, id=first, area=SHARED, **options) as fork:
            home = {"HOME": "/root"} if self.account.user else {}
            run_all(fork, commands, {**borrowed.env, **home})
            last = fork.freeze()["id"]
        builder.ask("make_base", area=SHARED, id=last, entry=key, on=on)
        builder.ask("discard", area=SHARED, ids=[last])


def _reserved(builder: Guest, key: str) -> bool:
    """Reserve the entry and return True, so that this builder builds it; False once another process has built it."""
    while True:
        answer, _ = builder.ask("reserve", id=key)
        if answer["ours"] or answer["built"]:
            return bool(answer["ours"])
        time.sleep(_WAIT_S)


def _import(guest: Guest, layout: Layout, workspace: Workspace, area: str) -> tuple[Repository, str | None, str]:
    """Copy the workspace in; return what git knows about it, the layer that holds it, and a digest of its content."""
    if workspace.path is None:
        return Repository(), None, ""
    repository_facts = repository(workspace.path)
    guest.send({"op": "import", "area": area, "mounts": layout.mounts, "workdir": layout.workdir})
    try:
        with io.BufferedWriter(Upload(guest), 1 << 20) as stream:
            pack(workspace.path, repository_facts.tracked or (), layout.leave_out, stream)
    except (OSError, SandboxError):
        guest.close()
        raise
    header, _ = guest.receive()
    return repository_facts, header["layer"], header["digest"]


def _compile(fork: LeasedSandbox) -> None:
    """Compile the workspace's Python files. Actions write no byte code and would compile each import again.

    The byte code is checked by content, so it is never used for an edited file. Nothing is compiled if the sandbox has
    no Python; files that cannot be compiled within the time limit are left as they are.
    """
    program = _COMPILE.format(_COMPILE_TIMEOUT_S)
    fork.exec(
        ["sh", "-c", 'for p in python3 python; do "$p" -I -c "$0" && break; done', program], timeout_s=SETUP_TIMEOUT_S
    )


def _name_itself(fork: LeasedSandbox) -> None:
    """Fill an empty `/etc/hosts`: images leave it empty because engines mount their own over it."""
    with contextlib.suppress(OSError):
        if not fork.read("/etc/hosts"):
            fork.write("/etc/hosts", HOSTS.encode())


def setup_limits(limits: Limits) -> Limits:
    """Return the same limits with enough disk space for set-up commands."""
    return replace(limits, disk_bytes=max(limits.disk_bytes, _SETUP_DISK_BYTES))


def content_key(*parts: object) -> str:
    """Return the key of a cached result: a hash of everything that the result depends on."""
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()
