"""Watches how much disk space a fork uses while a command runs."""

from __future__ import annotations

import os
import stat
import time
from typing import Iterator, List, Optional, Set, Tuple

from .disk_usage import deleted, in_tree
from .frames import Refused

CHECK_S = 0.05
SLICE_S = 0.005
"""The seconds that counting may take at a time, so that a large tree does not delay a deadline."""
SPARE_BYTES = 64 << 20
ENTRY_BYTES = 4096
"""The minimum that each file counts: even an empty file takes an inode and a name."""
LARGE_BYTES = 64 << 10
"""Larger files are remembered during a count, so that none is counted twice."""


class Disk:
    """Watches a fork's disk usage. `processes` is a /proc that shows the processes that may hold deleted files open."""

    def __init__(self, uppers: List[int], processes: int, limit: int) -> None:
        self.uppers, self.processes, self.limit = uppers, processes, limit
        self.most = self.first = free(uppers[0])
        self.next = time.monotonic() + CHECK_S
        self.counting: Optional[Iterator[os.stat_result]] = None
        self.total = 0
        self.met: Set[int] = set()

    def wait_s(self, now: float) -> float:
        """Return the seconds until the next check."""
        return 0.0 if self.counting else max(0.0, self.next - now)

    def exceeded(self, now: float) -> bool:
        """Whether the fork uses too much, or the disk is nearly full. Cheap to call often: free space is checked every
        `CHECK_S` seconds, and files are counted, a slice at a time, only after much of the free space has gone."""
        if self.counting is None:
            if now < self.next:
                return False
            self.next = now + CHECK_S
            left = free(self.uppers[0])
            if self._short(left[0]):
                return True
            if self._taken(left) <= self.limit // 2:
                return False
            self.counting, self.total, self.met = self._counted(), 0, set()
        return self._count(now + SLICE_S)

    def _short(self, left: int) -> bool:
        """Whether the machine is running out of disk space, no matter who uses it."""
        return left < SPARE_BYTES or (left < self.first[0] // 2 and self.first[0] - left > 4 * self.limit)

    def _taken(self, left: Tuple[int, int]) -> int:
        """Return the most that this command can have used since free space was at its highest."""
        self.most = max(self.most[0], left[0]), max(self.most[1], left[1])
        return max(self.most[0] - left[0], (self.most[1] - left[1]) * ENTRY_BYTES)

    def _count(self, until: float) -> bool:
        assert self.counting is not None
        try:
            for facts in self.counting:
                self.total += self._size(facts)
                if self.total > self.limit:
                    return True
                if time.monotonic() > until:
                    return False
        except Refused:  # nested too deep to be counted
            self.counting = None
            return self._taken(free(self.uppers[0])) > self.limit
        self.counting = None
        return False

    def _size(self, facts: os.stat_result) -> int:
        """Return the bytes that a file uses. A file that was already counted uses only a name: it has several names, or
        was moved or deleted meanwhile."""
        size = max(facts.st_blocks * 512, ENTRY_BYTES)
        if not stat.S_ISDIR(facts.st_mode) and (facts.st_nlink > 1 or size > LARGE_BYTES):
            if facts.st_ino in self.met:
                return ENTRY_BYTES
            self.met.add(facts.st_ino)
        return size

    def _counted(self) -> Iterator[os.stat_result]:
        devices = {os.stat("/").st_dev}
        for upper in self.uppers:
            devices.add(os.fstat(upper).st_dev)
            yield from in_tree(upper)
        yield from deleted(self.processes, devices)


def free(directory: int) -> Tuple[int, int]:
    """Return how many more bytes and files the disk has room for."""
    facts = os.fstatvfs(directory)
    return facts.f_bavail * facts.f_frsize, facts.f_favail
