"""What a search chose to do next, where, and why, as the journal stores it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agent.run.tree.node import Act, NodeId

REPAIR = "repair"
"""The kind of child that tries another way from the point where an earlier rollout went wrong
(`agent.solver.refine.local`)."""
EXCHANGED = "exchanged"
"""The kind of child that was found by another run (`agent.analysis.history`)."""
REPRODUCTION = "reproduction"
"""The kind of line of work that begins with a test that shows the issue."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One decision on the way to a choice: which option won, by which numbers, and against which other."""

    node: NodeId
    terms: Mapping[str, float]
    """Finite numbers by name: `score` is the number that was compared, and the others are its terms."""
    among: int = 1
    """How many options there were, the chosen one included."""
    rival: NodeId | None = None
    """The second best option."""
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
    """The requested kind of child (`strategy`, `solution`, `debug`, `repair`, `reproduction`); empty if there is only
    one kind."""
    hint: str = ""
    """What a person wants the policy to try or, for a `repair`, what went wrong before. The policy sees it."""
    order: int | None = None
    """The number of the order that this choice carries out (`agent.engine.selection`); None: the search chose."""
    continues: bool = False
    """Whether the line of work that ends at the node is continued (`agent.search.continuing`)."""
    independent: bool = False
    """Whether its policy does not see other attempts at the node, so that every line of work that starts there gets the
    same request."""
    references: tuple[NodeId, ...] = ()
    """States of other branches that the policy sees for an `expand`, the best first."""
    because: str = ""
    """If a search delegates to another search: which one chose, and why, in words."""
    reasons: tuple[Reason, ...] = ()
    """The decisions in the order in which they were made, the one for `node` last. A walk down the tree has no reason
    at an only child."""

    @property
    def exchanges(self) -> bool:
        """Whether a state of another run is brought in. A line of work that continues from such a state belongs to this
        run."""
        return self.kind == EXCHANGED and not self.continues
