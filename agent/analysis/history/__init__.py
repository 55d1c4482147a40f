"""History: the states of a run as commits of a git repository, `history.git` in the run's directory.

Invariants: a state is one commit, whose tree is the workspace as patches see it: tracked files and those that git does
not ignore. A commit is made once, and only while the state is known. The checkout is only read.
"""

from agent.analysis.history.lineage import HISTORY, NODES, History, keep
from agent.analysis.history.promoting import promote, uncommitted

__all__ = ["HISTORY", "NODES", "History", "keep", "promote", "uncommitted"]
