"""Delegation: an issue of several parts, each searched on its own, and merged when its tests pass beside the others'.

The roles of a plan, isolated workers, a merge that tests decide, and a conflict that goes back to its author are CAID's
(arXiv 2603.21489). A worker's isolation is a state of its own here, and no work tree.

Laws: nothing of a part is in the integrated state before it is merged, and it is merged only when its goal tests pass
there and all pass that passed before; a part is begun when all that it depends on are merged; a part that is merged is
never searched again, whatever is killed when.
"""
