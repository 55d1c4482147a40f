"""Rows for preference training: two answers to the same prompt in the same state, the better one chosen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from statistics import fmean
from typing import Literal

from agent.learning.export import AtLeastOne, Row, Share, skipped
from agent.learning.export.hygiene import TAMPERED, flagged
from agent.learning.export.prefixes import Answer, Prefixes
from agent.learning.export.provenance import not_verbatim, provenance
from agent.learning.export.turns import Turn, Turns, shared
from agent.models import Message
from agent.run.credit import mean_values, node_credit, outcome
from agent.run.run import Run
from agent.run.tree.node import Node, NodeId

CRITICS = ("judge", "debate", "checklist", "expected")
"""Parts of an evaluation that come from a model."""


@dataclass(frozen=True, slots=True)
class Preference:
    """Pairs of children of one node. `prompt`, `chosen` and `rejected` are DPO's columns, `margin` a reward trainer's.

    A pair consists of the first turns in which the two children, or the lines of work that continue from them, differ,
    if they had the same prompts until then. The pairs with the largest margins of each tree are taken. The score of a
    child is `mix * Q + (1 - mix) * critic`: Q is the mean value in its subtree, in which a submitted state counts as 1
    (`agent.run.credit.submitted`), critic is the mean of the models' scores of its state, or Q if there are none (Agent
    Q, arXiv 2408.07199, mixes the two and pairs siblings whose scores are far apart; it publishes neither weight nor
    threshold).
    """

    pairs: Literal["gap", "success"] = "gap"
    """`gap`: siblings whose scores differ by more than `gap`. `success`: a step that leads to a solved state over each
    sibling that does not, for trees of any search (TP-LLaMA's pairs from depth-first trees)."""
    gap: Share = 0.2
    mix: Share = 1.0
    """1: only the search's value counts; 0: only the critic's."""
    visits: int = 1
    """The least number of measured states in the subtree of a child in a pair."""
    prompts: Literal["same", "any"] = "same"
    """`same`: both answered exactly the same prompt. `any`: one prompt may have had more text at its end, such as what
    others had tried; the prompt of the pair is the common part, which neither answered as it is (`exact` is false)."""
    max_pairs: AtLeastOne = 16
    """The maximum number of pairs per tree."""
    runs: Literal["one", "all"] = "one"
    """`all`: also pair answers of two runs of a task to the same prompt: for each prompt, the best of a run with the
    worst of the others, if their values differ by more than `gap`. In such a row, `other` is the run of the rejected
    answer."""
    _prefixes: Prefixes = field(default_factory=Prefixes, init=False, repr=False)

    @property
    def needs_all_runs(self) -> bool:
        """Whether answers of several runs are paired."""
        return self.runs == "all"

    def collect(self, run: Run) -> None:
        """Collect the answers of a run, for pairs with those of other runs."""
        self._prefixes.take_in(run)

    def __call__(self, run: Run) -> Iterator[Row]:
        """The rows of a run."""
        yield from self._of_one_tree(run)
        for better, worse in sorted(self._prefixes.beaten(run, self.gap), key=_margin)[: self.max_pairs]:
            yield _row_of_two_runs(run, better, worse)

    def _of_one_tree(self, run: Run) -> Iterator[Row]:
        turns, rows = Turns(run), list[tuple[tuple[NodeId, NodeId], Row]]()
        pairs = sorted(self._pairs(run), key=lambda pair: pair[0][1] - pair[0][0])
        if not pairs:
            yield skipped("no two siblings of the tree differ in worth")
        for scores, (better, worse) in pairs:
            if len(rows) == self.max_pairs:
                yield skipped("its tree has enough pairs (option `max_pairs`)")
                continue
            parted = _parting(_line(run, turns, better), _line(run, turns, worse), self.prompts == "any")
            if isinstance(parted, str) or not flagged(run).isdisjoint((better.id, worse.id)):
                yield skipped(parted if isinstance(parted, str) else TAMPERED)
            else:
                rows.append(((better.id, worse.id), _row(run, (better, worse), scores, parted)))
        yield from (row for _, row in sorted(rows, key=lambda entry: entry[0]))

    def _pairs(self, run: Run) -> Iterator[tuple[tuple[float, float], tuple[Node, Node]]]:
        """The scores and the nodes of sibling pairs, the better one first."""
        credit, q = node_credit(run.tree, outcome(run)), mean_values(run)
        for parent in run.tree:
            children = [c for c in run.tree.children(parent.id) if c.steps and run.tree.visits(c.id) >= self.visits]
            scored = [(self._score(child, q[child.id]), bool(credit[child.id].solved), child) for child in children]
            for one, other in combinations(scored, 2):
                lead = one[0] - other[0] if self.pairs == "gap" else one[1] - other[1]
                if abs(lead) > (self.gap if self.pairs == "gap" else 0):
                    better, worse = (one, other) if lead > 0 else (other, one)
                    yield (better[0], worse[0]), (better[2], worse[2])

    def _score(self, node: Node, q: float) -> float:
        critics = [node.evaluation.parts[name] for name in CRITICS if name in node.evaluation.parts]
        return self.mix * q + (1 - self.mix) * (fmean(critics) if critics else q)


def _margin(pair: tuple[Answer, Answer]) -> float:
    """The negated difference of the scores, so that the largest difference is sorted first."""
    return pair[1].score - pair[0].score


def _row_of_two_runs(run: Run, better: Answer, worse: Answer) -> Row:
    node = run.tree[better.turn.node]
    answers = better.turn, replace(worse.turn, node=node.id)
    return {
        "prompt": list(better.turn.prompt),
        "chosen": [better.turn.answer],
        "rejected": [worse.turn.answer],
        "tools": list(better.turn.tools),
        "margin": better.score - worse.score,
        "scores": [better.score, worse.score],
        "visits": [run.tree.visits(node.id), 1],
        "other": worse.run,
        "provenance": provenance(run, node.id, answers),
    }


_Parted = tuple[Sequence[Message], Turn, Turn]
"""The prompt of a pair, the better answer and the worse one."""


def _row(run: Run, pair: tuple[Node, Node], scores: tuple[float, float], parted: _Parted) -> Row:
    prompt, chosen, rejected = parted
    others = [node.id for node in (*run.tree.path(pair[0].id), pair[1])]
    origin = provenance(run, pair[0].id, (chosen, rejected), others=others)
    return {
        "prompt": list(prompt),
        "chosen": [chosen.answer],
        "rejected": [rejected.answer],
        "tools": list(chosen.tools),
        "margin": scores[0] - scores[1],
        "scores": list(scores),
        "visits": [run.tree.visits(node.id) for node in pair],
        "provenance": origin if chosen.prompt == rejected.prompt else not_verbatim(origin),
    }


def _line(run: Run, turns: Turns, node: Node) -> list[Turn]:
    """The turns of a node, and of the states below it for as long as they form a single line."""
    taken = [*turns.of(node.id)]
    while len(below := run.tree.children(node.id)) == 1:
        node = below[0]
        taken += turns.of(node.id)
    return taken


def _parting(better: Sequence[Turn], worse: Sequence[Turn], any_prompt: bool) -> _Parted | str:
    """The common prompt and the first turns in which two expansions differ, or why they are not a pair."""
    for one, other in zip(better, worse, strict=False):
        common = shared(one.prompt, other.prompt)
        rest = [*one.prompt[len(common) :], *other.prompt[len(common) :]]
        added = not rest or (any_prompt and common and all(message["role"] == "user" for message in rest))
        if one.tools != other.tools or not added:
            return "the siblings did not have the same prompt and tools"
        if not one.same_answer(other):
            return common, one, other
    return "the siblings gave the same answers"
