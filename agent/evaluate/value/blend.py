"""A weighted blend of the tests and several critics that ask a model."""

from __future__ import annotations

from dataclasses import dataclass, field

from agent.evaluate.value import EvaluationInput
from agent.evaluate.value.checklist import Checklist
from agent.evaluate.value.debate import Debate
from agent.evaluate.value.judge import Judge
from agent.evaluate.value.weighing import Critic, judged
from agent.models import Model
from agent.run.tree.evaluation import Evaluation


@dataclass(frozen=True, slots=True)
class Blend:
    """The test-based value, raised by the weighted mean of this value and the critics' opinions. A critic with weight
    0 is not asked. All weights are at least 0."""

    model: Model
    tests: float = 1.0
    """With a higher weight of the tests, the critics' opinions matter less."""
    judge: float = 1.0
    """Weight of the critic `judge`."""
    debate: float = 0.0
    """Weight of the critic `debate`."""
    checklist: float = 0.0
    """Weight of the critic `checklist`."""
    items: int = 6
    """Questions of the checklist, from 1 to 20."""
    max_retries: int = 2
    """Retries of one question after unreadable answers; after that the critic abstains."""
    _critics: dict[str, Critic] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        weights, retries = self._weights(), self.max_retries
        for name, weight in weights.items():
            if not 0 <= weight < float("inf"):
                raise ValueError(f"{name}={weight}: give a weight of 0 or more")
        if not self.judge + self.debate + self.checklist:
            raise ValueError("judge, debate and checklist all weigh 0: give one a weight, or use the value `tests`")
        critics: dict[str, Critic] = {
            "judge": Judge(self.model, retries).opinion,
            "debate": Debate(self.model, retries).opinion,
            "checklist": Checklist(self.model, self.items, retries).opinion,
        }
        self._critics.update({name: critic for name, critic in critics.items() if weights[name]})

    def evaluate(self, case: EvaluationInput) -> Evaluation:
        """The value by tests, lifted by the critics' opinions."""
        return judged(case, self._critics, self._weights())

    def _weights(self) -> dict[str, float]:
        return {"tests": self.tests, "judge": self.judge, "debate": self.debate, "checklist": self.checklist}
