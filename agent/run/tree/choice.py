"""What a search chose to do next, where, and why: facts that the journal keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agent.run.tree.node import Act, NodeId

REPAIR = "repair"
"""The kind of child that takes another way from where an earlier rollout went wrong (`agent.solver.refine.local`)."""
EXCHANGED = "exchanged"
"""The kind of child that another run found (`agent.analysis.history`)."""
REPRODUCTION = "reproduction"
"""The kind of line of work that begins with a test that shows the issue."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One decision on the way to a choice: what won, by which numbers, and against what."""

    node: NodeId
    terms: Mapping[str, float]
    """Finite numbers by name; `score` is what was compared, the others are what it is made of."""
    among: int = 1
    """How many could have been taken here, this one included."""
    rival: NodeId | None = None
    """The next best of them."""
    rival_terms: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """What to do next, where, and why."""

    node: NodeId
    act: Act = "expand"
    """`expand`: the policy proposes a child. `fuse`: the child is the merge of the node with `other`. `measure`: the
    node's own state is measured once more."""
    other: NodeId | None = None
    """The branch that a `fuse` brings in; the child has a reference edge from it."""
    kind: str = ""
    """The kind of child that is wanted (`strategy`, `solution`, `debug`, `repair`, `reproduction`); empty if there
    is only one kind."""
    hint: str = ""
    """What a person wants to be tried, or, for a `repair`, what went wrong before; the policy is shown it."""
    order: int | None = None
    """The number of the order (`agent.engine.selection`) that this choice obeys; None: the search chose."""
    continues: bool = False
    """The line of work that ends at the node is continued (`agent.search.continuing`)."""
    independent: bool = False
    """Its policy does not learn about other attempts at the node: every line of work that starts there gets the same
    request."""
    references: tuple[NodeId, ...] = ()
    """States of other branches that the policy is shown for an `expand`, the best first."""
    because: str = ""
    """For a search that lets others choose: which one chose, and why that one, in words."""
    reasons: tuple[Reason, ...] = ()
    """The decisions in the order in which they were taken, the one for `node` last. A walk down the tree gives
    no reason at an only child."""

    @property
    def exchanges(self) -> bool:
        """Whether a state of another run is brought in. A line of work that continues from one is this run's own."""
        return self.kind == EXCHANGED and not self.continues
