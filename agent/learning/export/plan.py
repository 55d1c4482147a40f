"""Rows of successful plans: written before anything was changed, then followed to success."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agent.learning.export import Row
from agent.learning.export.provenance import not_verbatim, of_answers
from agent.learning.export.turns import as_template
from agent.models.answers import Unreadable
from agent.policy.chat import plans
from agent.policy.chat.transcript import unpack
from agent.run import rollouts
from agent.run.credit import node_credit, outcome
from agent.run.events import Asked, Round
from agent.run.run import Run
from agent.run.tree.node import NodeId
from agent.solver.refine.plan import read_plan


@dataclass(frozen=True, slots=True)
class Plan:
    """Two kinds of rows. Plans from before the first attempt: the recorded question, and the plans ranked by the
    outcomes of the attempts that followed them, if one solved the task. Plans between two rounds of rollouts (SAGE,
    arXiv 2511.05931): question and answer, if the best state of the following round is better than all before."""

    def __call__(self, run: Run) -> Iterator[Row]:
        """The rows of a run."""
        yield from _drawn_at_first(run)
        for round_ in run.rounds:
            if (asked := _drawn_for(run, round_)) is not None and _better(run, round_):
                yield _row(run, asked, asked.answer.text, [round_.first], max(_values(run, round_.number)))


def _drawn_at_first(run: Run) -> Iterator[Row]:
    credit = node_credit(run.tree, outcome(run))
    for asked in run.asked:
        plans = _plans(asked)
        followed = _followed(run, plans)
        best = {number: max(credit[node].value for node in nodes) for number, nodes in followed.items()}
        if max(best.values(), default=0.0) > 0:
            ranked = sorted(range(len(plans)), key=lambda number: (-best.get(number, 0.0), number))
            text = "\n\n".join(_listed(place, plans[number]) for place, number in enumerate(ranked, 1))
            nodes = [node for followers in followed.values() for node in followers]
            yield _row(run, asked, text, nodes, max(best.values()))


def _plans(asked: Asked) -> Sequence[plans.AttemptPlan]:
    """The plans in an answer; empty if the question did not ask for several plans."""
    try:
        return plans.read_plans(asked.answer.text, plans.MOST_PLANS) if asked.purpose in ("policy", "") else ()
    except Unreadable:
        return ()


def _followed(run: Run, drawn: Sequence[plans.AttemptPlan]) -> dict[int, list[NodeId]]:
    """For each plan by index, the children of the root that were told to follow it."""
    followed: dict[int, list[NodeId]] = {}
    for node in run.tree.children(0) if drawn else ():
        messages = (unpack(node.steps[0].message) or {}).get("given", ()) if node.steps else ()
        text = "\n".join(str(message["content"]) for message in messages)
        for number, plan in enumerate(drawn):
            if all(part in text for part in (plan["cause"], *plan["steps"])):
                followed.setdefault(number, []).append(node.id)
    return followed


def _listed(number: int, plan: plans.AttemptPlan) -> str:
    """A plan in the form that the question asks for."""
    steps = [f"{place}. {step}" for place, step in enumerate(plan["steps"], 1)]
    return "\n".join([f"Plan {number}: {plan['cause']}", *steps])


def _drawn_for(run: Run, round_: Round) -> Asked | None:
    """The call whose answer is the plan of the round."""
    plan = round_.briefing.plan if round_.briefing else None
    return next((asked for asked in reversed(run.asked) if plan and _refined(asked) == plan), None)


def _refined(asked: Asked) -> rollouts.RoundPlan | None:
    try:
        return read_plan(asked.answer.text)
    except Unreadable:
        return None


def _better(run: Run, round_: Round) -> bool:
    before = [value for number in range(1, round_.number) for value in _values(run, number)]
    return max(_values(run, round_.number), default=0.0) > max(before, default=0.0)


def _values(run: Run, number: int) -> list[float]:
    """The value of the best state of each rollout of a round."""
    return [run.tree[rollout.best].value for rollout in run.rollouts() if rollout.round == number]


def _row(run: Run, asked: Asked, text: str, nodes: Sequence[NodeId], value: float) -> Row:
    _, *prompt = run.conversations.whole(asked.conversation.digest)
    origin = of_answers(run, nodes[0], nodes, [asked])
    return {
        "prompt": list(as_template(prompt)),
        "completion": [{"role": "assistant", "content": text}],
        "value": value,
        "provenance": origin if text == asked.answer.text else not_verbatim(origin),
    }
