"""Giving up states when there is no room for more: only those that nothing goes on from, and never what they changed.

A discarded node stays a fact of the tree, with its patch in the journal; forking it says that its state was discarded.
"""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager, nullcontext

from agent.journal import Noted
from agent.run import Run
from agent.tree import Node, NodeId
from sandboxes import Provider, Snapshot, StoreFull

__all__ = ["DISCARDED", "dispensable", "forget_unrecorded", "make_room"]

log = logging.getLogger(__name__)

DISCARDED = "discarded"
"""Key of the note on a node whose state was given up: `{"patch": the blob of its patch against the root}`."""


def make_room(provider: Provider, run: Run, unchanged: AbstractContextManager[object] | None = None) -> None:
    """See to it that there is room for another state. Nobody changes the tree inside `unchanged`.

    Raises:
        sandboxes.StoreFull: there is none, and nothing can be given up.
    """
    try:
        provider.require_room()
    except StoreFull as full:
        with unchanged or nullcontext():
            going = dispensable(run)
            if not going:
                raise
            log.warning("%s; the states of %d closed nodes are discarded", full, len(going))
            for node in going:
                _discard(provider, run, node)
        provider.require_room()


def forget_unrecorded(provider: Provider, base: Snapshot, run: Run) -> None:
    """Forget what an earlier sitting had frozen when it was killed: it belongs to no node. Only for a provider that
    keeps this run's states and nobody else's."""
    kept = [node.snapshot for node in run.tree if run.note(node.id, DISCARDED) is None]
    provider.retain([base, *kept])


def dispensable(run: Run) -> list[Node]:
    """Nodes that no search selects any more, no patch is taken from, and whose states are still there."""
    return [node for node in run.tree if not _needed(run, node.id)]


def _needed(run: Run, node_id: NodeId) -> bool:
    tree, node = run.tree, run.tree[node_id]
    wanted = node_id == tree.root.id or node.is_answer(tree.root)
    in_use = tree.expandable(node_id) or tree.pending_below(node_id) > 0
    return wanted or in_use or run.note(node_id, DISCARDED) is not None


def _discard(provider: Provider, run: Run, node: Node) -> None:
    """Its patch is kept first, then the decision, then the deed: whatever is interrupted, nothing is lost."""
    patch = provider.diff(run.tree.root.snapshot, node.snapshot)
    run.record(Noted(node.id, DISCARDED, {"patch": run.journal.put_blob(patch)}))
    provider.discard(node.snapshot)
