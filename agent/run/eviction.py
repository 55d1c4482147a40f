"""Giving up states when there is no room for more: only those that nothing goes on from, and never what they changed.

A discarded node stays a fact of the tree, with its patch in the journal; forking it says that its state was discarded.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext

from agent.run.events import Noted
from agent.run.run import Run
from agent.run.tree.tree import Node, NodeId
from sandboxes import Provider, Snapshot, StoreFull

__all__ = ["DISCARDED", "dispensable", "forget_unrecorded", "kept_patch", "make_room"]

log = logging.getLogger(__name__)

DISCARDED = "discarded"
"""Key of the note on a node whose state was given up: `{"patch": the blob of its patch against the root}`."""


def kept_patch(run: Run, node: NodeId) -> str:
    """The blob of a state's patch against the base state, where it was discarded or verified; else empty."""
    notes = (run.note(node, key) or {} for key in (DISCARDED, "verdict"))
    return next((note["patch"] for note in notes if note.get("patch")), "")


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
            log.warning("%s; the states of %d closed nodes are discarded", full, sum(map(len, going.values())))
            for state, nodes in going.items():
                _discard(provider, run, state, nodes)
        provider.require_room()


def forget_unrecorded(provider: Provider, base: Snapshot, *runs: Run) -> None:
    """Forget what an earlier session had frozen when it was killed: it belongs to no node. Only for a provider that
    keeps the states of these runs and nobody else's."""
    kept = [node.snapshot for run in runs for node in run.tree if run.note(node.id, DISCARDED) is None]
    provider.retain([base, *kept])


def dispensable(run: Run) -> dict[Snapshot, list[Node]]:
    """States that are still there and nobody needs, each with the nodes that hold it: no search selects these any more,
    and no patch is taken from them. A node whose edit changed nothing holds the state of its parent."""
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
    begun = tree.pending_below(node_id) > 0 or any(each.choice.node == node_id for each in run.underway)
    return wanted or tree.expandable(node_id) or begun


def _discard(provider: Provider, run: Run, state: Snapshot, nodes: Iterable[Node]) -> None:
    """Its patch is kept first, then the decision, then the deed: whatever is interrupted, nothing is lost."""
    patch = run.journal.put_blob(provider.diff(run.tree.root.snapshot, state))
    for node in nodes:
        run.record(Noted(node.id, DISCARDED, {"patch": patch}))
    provider.discard(state)
