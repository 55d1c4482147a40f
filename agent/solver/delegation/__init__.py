"""Delegation: an issue is divided into parts; each is searched on its own and merged when its tests pass with the
others.

From CAID (arXiv 2603.21489): the plan, isolated workers, a merge that tests decide, and a conflict that goes back to
its author. Here a worker is isolated in a sandbox state instead of a work tree.

Invariants: the integrated state contains no change of a part before the part is merged. A part is merged only if its
goal tests pass there and all tests that passed before still pass. A part begins when all parts that it depends on are
merged. A merged part is never searched again, even if a session is killed.
"""
