"""A process reward model: trained on how states ended (`ramify train prm`), it says how likely a state leads to a
solution.

Law: it is asked in the words that it was trained on; `state_messages` writes both. They hold nothing but what a run
records, so that rows can be made from any run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import exp
from typing import Any

from agent.actions import Action, Observation
from agent.actions.tools import as_call
from agent.errors import ConfigError
from agent.evaluate.value import EvaluationInput
from agent.evaluate.value.exhibit import fenced, shown_issue
from agent.evaluate.value.weighing import Opinion, hear, judged
from agent.measure import SuiteReport
from agent.models import Completion, Message, Model
from agent.models.conversing import Abstained, Unreadable
from agent.prompts import render
from agent.run.tree.evaluation import Evaluation
from agent.run.tree.node import Step
from agent.task import Task

__all__ = ["Prm", "chance", "state_messages"]

ACTIONS_BYTES = 20_000
SAMPLING = {"temperature": 0, "max_tokens": 16, "logprobs": True}
"""One word with its log-probabilities; the tokens leave room for the empty thoughts of some chat templates."""


@dataclass(frozen=True, slots=True)
class Prm:
    """One request per state, answered with one word. The value is the value by tests, lifted by the probability of
    `yes` (`agent.evaluate.value.weighing`), which the server tells as log-probabilities.

    A model that values the steps of a search, trained on the outcomes below them, is that of ReST-MCTS* (arXiv
    2406.03816); that it answers in words, whose probability is the value, is GenRM's (arXiv 2408.15240).
    """

    model: Model

    def evaluate(self, case: EvaluationInput) -> Evaluation:
        """The value by tests, lifted by the model's probability."""
        return judged(case, {"prm": self.opinion})

    def opinion(self, case: EvaluationInput, tests: Evaluation) -> Opinion:
        """The probability that work from the state on solves the issue.

        Raises:
            agent.models.conversing.Abstained: the answer is another than yes or no, or the state was made by a merge.
            agent.errors.ConfigError: the server gives no log-probabilities.
        """
        ask = case.ask
        if ask is None or not case.steps:
            raise Abstained("no model may be asked here" if ask is None else "no step led to the state")
        answers: list[Completion] = []

        def once(model: Model, messages: Sequence[Message], tools: Sequence[Any] = (), **sampling: Any) -> Completion:
            answers.append(ask(model, messages, tools, **(sampling | SAMPLING)))
            return answers[-1]

        taken = [step for node in case.path for step in node.steps] + list(case.steps)
        question = partial(state_messages, case.task, taken, case.report)
        return hear(
            replace(case, ask=once), self.model, question, lambda _: Opinion(chance(self.model, answers[-1])), 0
        )


def chance(model: Model, answer: Completion) -> float:
    """The probability of `yes`, by the probability of the word that was said.

    Raises:
        Unreadable: the answer is another word.
        agent.errors.ConfigError: the server gives no log-probabilities.
    """
    said = answer.text.rpartition("</think>")[2].strip(" \n.").lower()
    if said not in ("yes", "no"):
        raise Unreadable(f"{said[:40]!r} is neither yes nor no")
    if not answer.logprobs:
        raise ConfigError(
            f"the server of {model.name} gives no log-probabilities, which --value prm needs: use another"
        )
    probability = min(1.0, exp(sum(answer.logprobs)))
    return probability if said == "yes" else 1.0 - probability


def state_messages(task: Task, steps: Sequence[Step], report: SuiteReport, length: float = 1.0) -> list[Message]:
    """The question about the state that these steps led to from the base. `length`, in (0, 1], scales all limits."""
    lines = (
        _line(action, seen) for step in steps for action, seen in zip(step.actions, step.observations, strict=False)
    )
    question = render(
        "prm_state",
        issue=shown_issue(replace(task, goal_tests=()), length),
        actions=fenced("actions", "\n".join(lines), int(ACTIONS_BYTES * length)),
        passes=len(report.passes),
        failures=len(report.failures),
    )
    return [{"role": "user", "content": question}]


def _line(action: Action, seen: Observation) -> str:
    name, arguments = as_call(action)
    return f"{name} {arguments}{'' if seen.ok else ' (failed)'}"
