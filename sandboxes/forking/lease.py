"""Implements `sandboxes.Sandbox` on a guest's lease, and translates between snapshots and the guest's states."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from sandboxes import ExecResult, Forked, Limits, SandboxLost, Snapshot, StateDamaged
from sandboxes.forking.arguments import require_command, require_text
from sandboxes.forking.guest_client import Guest


class Tally:
    """Counts forks. Thread-safe."""

    def __init__(self, *, checked: bool = False) -> None:
        self.forked = Forked(checked=checked)
        self._lock = threading.Lock()

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count one fork when the block succeeds, or one mismatch when it raises StateDamaged."""
        try:
            yield
        except StateDamaged:
            self.count(times=0, mismatches=1)
            raise
        self.count()

    def count(self, times: int = 1, mismatches: int = 0) -> None:
        """Add to the counts."""
        with self._lock:
            now = self.forked
            self.forked = replace(now, times=now.times + times, mismatches=now.mismatches + mismatches)


class LeasedSandbox:
    """A leased fork that implements `sandboxes.Sandbox`."""

    def __init__(
        self, guest: Guest, image: str, limits: Limits, tally: Tally | None, fields: Mapping[str, object]
    ) -> None:
        self._guest = guest
        self._image = image
        self._limits = limits
        self._tally = tally or Tally()
        self._open = False
        self._frozen = ""
        """The state to fork when the lease is next used; empty when none is pending."""
        self._begin(fields)

    @classmethod
    @contextmanager
    def lease(
        cls, guest: Guest, image: str, limits: Limits, tally: Tally | None = None, **fields: object
    ) -> Iterator[LeasedSandbox]:
        """Lease a fork for the block and count it in `tally`."""
        fork = cls(guest, image, limits, tally, fields)
        try:
            yield fork
        finally:
            fork.end()

    def _begin(self, fields: Mapping[str, object]) -> None:
        checked = self._tally.forked.checked
        with self._tally.counting():
            header, _ = self._guest.ask("lease", disk_bytes=self._limits.disk_bytes, check=checked, **fields)
        self.workdir: str = header["workdir"]
        self._env: dict[str, str] = header["env"]
        self._open = True

    def _ask(self, op: str, payload: bytes = b"", **fields: object) -> tuple[dict[str, Any], bytes]:
        if not self._open and not self._frozen:
            raise SandboxLost("the fork is gone: its last command timed out, or its lease ended")
        try:
            if not self._open:
                frozen, self._frozen = self._frozen, ""
                self._begin({"id": frozen})
            return self._guest.ask(op, payload, **fields)
        except SandboxLost:
            self._open = False
            self._guest.close()
            raise

    def exec(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> ExecResult:
        """As `sandboxes.Sandbox.exec`."""
        env = {**self._env, **(env or {})}
        require_command(argv, env, cwd)
        return self._run(stdin, timeout_s, argv=list(argv), cwd=cwd or self.workdir, env=env)

    def perform(self, order: bytes, *, timeout_s: float) -> ExecResult:
        """As `sandboxes.Sandbox.perform`."""
        return self._run(order, timeout_s, ordered=True, cwd=self.workdir)

    def _run(self, stdin: bytes, timeout_s: float, **fields: object) -> ExecResult:
        header, output = self._ask(
            "exec",
            stdin,
            **fields,
            timeout_s=timeout_s,
            output_bytes=self._limits.output_bytes,
            memory_bytes=self._limits.memory_bytes,
            pids=self._limits.pids,
            disk_bytes=self._limits.disk_bytes,
        )
        self._open = not header["timed_out"]
        size = header["stdout"]
        return ExecResult(
            exit_code=header["code"],
            stdout=output[:size],
            stderr=output[size:],
            stdout_bytes=header["stdout_bytes"],
            stderr_bytes=header["stderr_bytes"],
            duration_s=header["duration_s"],
            timed_out=header["timed_out"],
            limit=header["limit"],
        )

    def read(self, path: str, *, max_bytes: int = 64 << 20) -> bytes:
        """As `sandboxes.Sandbox.read`."""
        require_text(path)
        return self._ask("read", path=path, max_bytes=max_bytes)[1]

    def write(self, path: str, data: bytes, *, executable: bool | None = None) -> None:
        """As `sandboxes.Sandbox.write`."""
        require_text(path)
        self._ask("write", data, path=path, executable=executable)

    def remove(self, path: str) -> None:
        """As `sandboxes.Sandbox.remove`."""
        require_text(path)
        self._ask("remove", path=path)

    def snapshot(self) -> Snapshot:
        """As `sandboxes.Sandbox.snapshot`."""
        frozen = self.freeze()
        self._frozen = frozen["id"]
        return snapshot_of(self._image, frozen)

    def freeze(self) -> dict[str, Any]:
        """Freeze the state, end the lease, and return the new state's id and digest."""
        try:
            return self._ask("snapshot")[0]
        finally:
            self._open = False

    def end(self) -> None:
        """End the lease. May be called again."""
        if self._open and self._guest.alive:
            self._ask("close")
        self._open, self._frozen = False, ""


def snapshot_of(image: str, header: Mapping[str, Any]) -> Snapshot:
    """Return the snapshot that stands for a guest's state."""
    return Snapshot(f"{image}-{header['id']}" if image else header["id"], header["digest"])


def image_of(snapshot: Snapshot) -> str:
    """Return the image of the guests that can hold the snapshot, as in `Layout.image`."""
    return snapshot.id.rpartition("-")[0]


def state(snapshot: Snapshot) -> str:
    """Return the name of the snapshot's state inside its guests."""
    return snapshot.id.rpartition("-")[2]
