"""Delegation: an issue is divided into parts; each is searched on its own and merged when its tests pass with the
others.

From CAID (arXiv 2603.21489): the plan, isolated workers, a merge that tests decide, and a conflict that goes back to
its author. Here a worker is isolated in a sandbox state instead of a work tree.

Invariants: nothing of a part is in the integrated state before it is merged. A part is merged only when its goal tests
pass there and all tests still pass that passed before. A part begins when all parts that it depends on are merged. A
merged part is never searched again, even if a session is killed.
"""
