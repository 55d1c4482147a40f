"""The archive of a run as a judge sees it: the states that can be returned to, one line each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agent.evaluate.value import EvaluationInput
from agent.evaluate.value.exhibit import fenced
from agent.models.answers import Unreadable, last_object
from agent.run.tree.node import Node
from agent.run.tree.tree import Tree
from agent.untrusted import one_line

NEW = "new"
"""The name, for a judge, of the state that it is asked about, which has no number yet."""
MOST = 40
"""How many states are shown: the best and, among equals, the newest."""
SHOWN_BYTES = 12_000
FAILING = 3
"""How many failing tests are named."""


@dataclass(frozen=True, slots=True)
class Archive:
    """The states that can be returned to."""

    shown: str
    digests: Mapping[str, str]
    """The digest of each state, by its name for the judge."""

    def read_choice(self, text: str) -> str:
        """The digest of the state that an answer chooses.

        Raises:
            Unreadable: it chooses none of them.
        """
        chosen = str(last_object(text, "value").get("return_to"))
        if chosen not in self.digests:
            raise Unreadable(f'`return_to` is {chosen[:40]!r}: give "{NEW}" or the number of a state in the list')
        return self.digests[chosen]


def archived(case: EvaluationInput) -> Archive:
    """The states of the case's tree that may be expanded, except those in which nothing of interest was found, and the
    case's own state."""
    assert case.tree is not None
    tree = case.tree
    open_states = [node for node in tuple(tree) if tree.expandable(node.id) and not node.evaluation.dull]
    best = sorted(open_states, key=lambda node: (-node.value, -node.id))[:MOST]
    lines = [_line(tree, node) for node in sorted(best, key=lambda node: node.id)]
    digests = {str(node.id): node.state_hash for node in best} | {NEW: case.state}
    return Archive(fenced("states", "\n".join(lines), SHOWN_BYTES), digests)


def _line(tree: Tree, node: Node) -> str:
    failures = node.report.failures
    named = f" ({', '.join(failures[:FAILING])}{', ...' if len(failures) > FAILING else ''})" if failures else ""
    came = f", made from {node.parents[0]}" if node.parents else ""
    tried = f"gone on from {tree.expansions(node.id)} times"
    return one_line(
        f"{node.id}: value {node.value:.2f}, {len(failures)} tests fail{named}{came}, {tried}: {node.label}"
    )
