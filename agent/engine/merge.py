"""Merges the changes of one branch into a state of another (`fuse`).

The base of the three-way merge is the state from which both come. Changes of the other branch outside the workspace,
and its own files that git would ignore, are not carried over.
"""

from __future__ import annotations

from agent.evaluate.verification import apply_patch
from agent.run.tree.node import NodeId
from agent.run.tree.tree import Tree
from sandboxes import Provider, Snapshot


class NotFused(Exception):
    """Two branches cannot be merged, or there is nothing to merge; the message says why."""


def fuse(provider: Provider, tree: Tree, node_id: NodeId, other: NodeId) -> Snapshot:
    """Return the state of a node with the changes of another.

    Raises:
        NotFused: the branches conflict (the message names the files), or the other has no change that the node lacks.
        sandboxes.SandboxError: the sandbox, or git, failed.
    """
    base = tree.common_ancestor(node_id, other).snapshot
    names = f"state {node_id}", f"state {other}"
    return join(provider, base, tree[node_id].snapshot, tree[other].snapshot, names)


def join(provider: Provider, base: Snapshot, ours: Snapshot, theirs: Snapshot, names: tuple[str, str]) -> Snapshot:
    """Return the state `ours` with the changes that `theirs` made to their common base. `names` are for error messages.

    Raises:
        NotFused, sandboxes.SandboxError: as `fuse`.
    """
    one, other = names
    merged = provider.merge(base, ours, theirs)
    if merged.conflicts:
        raise NotFused(f"{one} and {other} conflict in {', '.join(merged.conflicts)}")
    if not merged.patch:
        raise NotFused(f"{other} has no change that {one} lacks")
    state, why = apply_patch(provider, ours, merged.patch)
    if state is None:
        raise NotFused(f"the changes of {other} do not apply to {one}: {why}")
    return state
