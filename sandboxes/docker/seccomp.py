"""System call filters for Ramify's containers.

The default filter of an older engine is too weak: Docker before 23 allows AF_VSOCK, which reaches the host of a virtual
machine and is not confined by a network namespace.
"""

from __future__ import annotations

import json
from importlib import resources

_ENOSYS = 38
_NAMESPACES = (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)
"""Flags of clone: mount, cgroup, uts, ipc, user, pid, net."""
_LEAVING = [
    *("mount", "umount", "umount2", "pivot_root", "unshare", "setns", "open_tree", "move_mount", "fsopen", "fsconfig"),
    *("fsmount", "fspick", "mount_setattr", "open_tree_attr"),
]


def of_guests() -> str:
    """Return the filter for a guest, which needs namespaces and mounts. The guest confines its actions further."""
    return resources.files("sandboxes.docker").joinpath("seccomp.json").read_text()


def of_commands() -> str:
    """Return the filter for a command without a guest: as for guests, but without namespaces and mounts."""
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
    # its flags are in memory, where a filter cannot see them
    profile["syscalls"] += [{"names": ["clone3"], "action": refused, "errnoRet": _ENOSYS}]
    return json.dumps(profile)
