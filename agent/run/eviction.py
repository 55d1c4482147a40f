"""Eviction: when the disk is full, states that no search needs any more are discarded. Their patches are kept.

The node of a discarded state stays in the tree, with its patch in the journal. An attempt to fork it reports that its
state was discarded.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext

from agent.run.events import Noted
from agent.run.run import Run
from agent.run.tree.node import Node, NodeId
from sandboxes import Provider, Snapshot, StoreFull

log = logging.getLogger(__name__)

DISCARDED = "discarded"
"""Key of the note on a node whose state was discarded: `{"patch": the blob of its patch against the root}`."""


def kept_patch(run: Run, node: NodeId) -> str:
    """Return the blob of a state's patch against the base state. States made by a model or a merge have one, and others
    if they were discarded or verified; else the result is empty."""
    discarded = run.note(node, DISCARDED) or {}
    return run.tree[node].patch or discarded.get("patch", "") or (run.verdict(node) or {}).get("patch", "")


def make_room(provider: Provider, run: Run, unchanged: AbstractContextManager[object] | None = None) -> None:
    """Make sure that there is room for another state. Inside `unchanged` no other thread changes the tree.

    Raises:
        sandboxes.StoreFull: there is no room, and no state can be discarded.
    """
    try:
        provider.require_room()
    except StoreFull as full:
        with unchanged or nullcontext():
            going = dispensable(run)
            if not going:
                raise
            log.warning("%s; the states of %d closed nodes are discarded", full, sum(map(len, going.values())))
            for state, nodes in going.items():
                _discard(provider, run, state, nodes)
        provider.require_room()


def forget_unrecorded(provider: Provider, base: Snapshot, *runs: Run) -> None:
    """Discard the snapshots that a killed session left and no node holds. Only for a provider whose store has no states
    of other runs."""
    kept = [node.snapshot for run in runs for node in run.tree if run.note(node.id, DISCARDED) is None]
    provider.retain([base, *kept])


def dispensable(run: Run) -> dict[Snapshot, list[Node]]:
    """Return the states that can be discarded, each with the nodes that hold it: no search selects these nodes any
    more, and no patch is taken from them. A node whose edit changed nothing holds the state of its parent."""
    there = [node for node in run.tree if run.note(node.id, DISCARDED) is None]
    needed = {node.snapshot for node in there if _needed(run, node.id)}
    going: dict[Snapshot, list[Node]] = {}
    for node in there:
        if node.snapshot not in needed:
            going.setdefault(node.snapshot, []).append(node)
    return going


def _needed(run: Run, node_id: NodeId) -> bool:
    tree, node = run.tree, run.tree[node_id]
    wanted = node_id == tree.root.id or node.is_answer(tree.root)
    begun = tree.pending_below(node_id) > 0 or any(each.choice.node == node_id for each in run.in_progress)
    return wanted or tree.expandable(node_id) or begun


def _discard(provider: Provider, run: Run, state: Snapshot, nodes: Iterable[Node]) -> None:
    """Keep the patch, record the decision and discard the state, in this order, so that an interruption loses
    nothing."""
    patch = run.journal.put_blob(provider.diff(run.tree.root.snapshot, state))
    for node in nodes:
        run.record(Noted(node.id, DISCARDED, {"patch": patch}))
    provider.discard(state)
