"""Rows for reward models: two whole paths from the base state, of which only the chosen one succeeded.

Both contain tool results, so that a trainer has to score a conversation as a whole (TRL: RewardTrainer). DPO would
train on the results as if the policy had written them; its pairs are single answers
(`agent.learning.export.preference`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agent.learning.export import AtLeastOne, Row, skipped
from agent.learning.export.provenance import provenance
from agent.learning.export.sft import NO_SUCCESS
from agent.learning.export.turns import MERGE, Turn, Turns, is_merge, shared
from agent.learning.export.weaving import whole
from agent.models import Message
from agent.run.credit import outcome, succeeded
from agent.run.run import Run
from agent.run.tree.node import NodeId


@dataclass(frozen=True, slots=True)
class LinePreference:
    """One row for each leaf that did not succeed, paired with the successful leaf whose path has the longest common
    beginning with it."""

    max_pairs: AtLeastOne = 16
    """The maximum number of pairs per tree."""

    def __call__(self, run: Run) -> Iterator[Row]:
        """The rows of a run."""
        turns = Turns(run)
        leaves = [rollout.leaf for rollout in run.rollouts() if turns.path(rollout.leaf)]
        merged = [leaf for leaf in leaves if is_merge(run.tree, leaf)]
        yield from (skipped(MERGE) for _ in merged)
        leaves = [leaf for leaf in leaves if leaf not in merged]
        good = [leaf for leaf in leaves if succeeded(run, leaf)]
        if not good:
            yield skipped(NO_SUCCESS)
        elif len(good) == len(leaves):
            yield skipped("every rollout of the run succeeded")
        for bad in [leaf for leaf in leaves if leaf not in good][: self.max_pairs] if good else ():
            yield _pair(run, turns, max(good, key=lambda leaf: (len(_alike(turns, leaf, bad)), -leaf)), bad)


def _pair(run: Run, turns: Turns, good: NodeId, bad: NodeId) -> Row:
    paths = turns.path(good), turns.path(bad)
    prompt = _alike(turns, good, bad)
    chosen, rejected = (_conversation(path)[len(prompt) :] for path in paths)
    if paths[0][-1].tools != paths[1][-1].tools or not prompt:
        return skipped("the two paths did not start from the same prompt and tools")
    if not (chosen and rejected):
        return skipped("one path is the beginning of the other")
    value, answers = outcome(run, "value"), sum(message["role"] == "assistant" for message in prompt)
    about = [turn for path in paths for turn in path[answers:]]
    nodes = [node.id for leaf in (good, bad) for node in run.tree.path(leaf)]
    return {
        "prompt": list(prompt),
        "chosen": chosen,
        "rejected": rejected,
        "tools": list(paths[0][-1].tools),
        "margin": value(run.tree[good]) - value(run.tree[bad]),
        "provenance": provenance(run, good, about, others=nodes),
    }


def _alike(turns: Turns, one: NodeId, other: NodeId) -> Sequence[Message]:
    """The common beginning of two paths, up to an answer."""
    first, second = _conversation(turns.path(one)), _conversation(turns.path(other))
    alike = list(shared(first, second))
    while alike and len(alike) < len(first) and first[len(alike)]["role"] != "assistant":
        alike.pop()
    return alike


def _conversation(path: Sequence[Turn]) -> list[Message]:
    return [*path[0].prompt, *whole(path)]
