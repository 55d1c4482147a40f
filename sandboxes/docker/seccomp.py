"""The system call filters of our containers.

An engine's own is better the newer it is: that of Docker before 23 lets AF_VSOCK through, which leads to the machine
below a virtual one and which no network namespace holds.
"""

from __future__ import annotations

import json
from importlib import resources

__all__ = ["of_commands", "of_guests"]

_ENOSYS = 38
_NAMESPACES = (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)
"""Flags of clone: mount, cgroup, uts, ipc, user, pid, net."""
_LEAVING = [
    *("mount", "umount", "umount2", "pivot_root", "unshare", "setns", "open_tree", "move_mount", "fsopen", "fsconfig"),
    *("fsmount", "fspick", "mount_setattr", "open_tree_attr"),
]


def of_guests() -> str:
    """What is refused to a guest, which needs namespaces and mounts. It refuses more to its actions."""
    return resources.files("sandboxes.docker").joinpath("seccomp.json").read_text()


def of_commands() -> str:
    """What is refused to a command that the container is all to hold: that, and namespaces and mounts of its own."""
    profile = json.loads(of_guests())
    refused = "SCMP_ACT_ERRNO"
    profile["syscalls"] += [{"names": _LEAVING, "action": refused}]
    profile["syscalls"] += [
        {
            "names": ["clone"],
            "action": refused,
            "args": [{"index": 0, "value": flag, "valueTwo": flag, "op": "SCMP_CMP_MASKED_EQ"}],
        }
        for flag in _NAMESPACES
    ]
    # its flags are in memory, out of a filter's sight
    profile["syscalls"] += [{"names": ["clone3"], "action": refused, "errnoRet": _ENOSYS}]
    return json.dumps(profile)
