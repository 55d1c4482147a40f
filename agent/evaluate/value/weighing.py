"""Combine the opinions of models with the evaluation by tests.

Invariant: tests decide. An opinion adds to the value of a state, but always less than one more passing goal test would.
Whether a state is solved, harmed or invalid does not depend on any opinion.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal, TypeVar, get_args

from agent.budget import BudgetSpent
from agent.errors import PolicyError
from agent.evaluate.value import EvaluationInput
from agent.evaluate.value.tests import BASE_VALUE, BEST_UNSOLVED, GETS_FURTHER, PassingTests
from agent.models import Model
from agent.models.answers import Abstained, Question, ask_within_context
from agent.run.tree.evaluation import Evaluation

log = logging.getLogger(__name__)

T = TypeVar("T")

Verdict = Literal["accept", "refine", "abort"]
"""accept: stop searching; refine: keep expanding this state; abort: abandon its branch."""
VERDICTS = get_args(Verdict)
LIFT = 0.9 * (1.0 - GETS_FURTHER)
"""What the best opinion is worth, in goal tests: less than the gain from one more passing test."""
ABSTAINED = "abstained"
"""The part that counts critics without an opinion; absent if all critics gave one."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """A model's opinion of a state."""

    worth: float
    """In [0, 1]: how likely the change solves the issue."""
    text: str = ""
    """An assessment, for the policy's next attempt from the same parent."""
    verdict: Verdict | None = None
    interest: float | None = None
    """In [0, 1]: how much can be learned by continuing from the state, whatever its worth."""
    return_to: str = ""
    """The digest of the state to continue from; empty if the critic chose none."""


Critic = Callable[[EvaluationInput, Evaluation], Opinion]
"""Forms an opinion of a state, given its evaluation by tests.

Raises:
    Abstained: it has no opinion.
"""


def hear(case: EvaluationInput, model: Model, question: Question, read: Callable[[str], T], retries: int) -> T:
    """Ask a model about a case, as `agent.models.answers.ask_within_context`.

    Raises:
        Abstained: no answer could be read, or no model may be asked.
        agent.errors.ModelError, agent.errors.ConfigError: the provider failed.
    """
    if case.ask is None:
        raise Abstained("no model may be asked here")
    try:
        return ask_within_context(case.ask, model, question, read, retries)
    except (BudgetSpent, PolicyError) as error:
        raise Abstained(str(error)) from error


def judged(
    case: EvaluationInput, critics: Mapping[str, Critic], weights: Mapping[str, float] | None = None
) -> Evaluation:
    """The evaluation by tests, lifted by the weighted mean of the critics' opinions.

    `weights` are by critic, 1 by default; the weight `tests` is that of the value by tests. A critic that abstains has
    no weight; if all abstain, only the tests count. `parts` has `tests`, each critic's number under its name, `accept`
    and `abort` (1 or 0) if critics gave verdicts, the mean `interest` if they gave any, and `abstained` if some
    abstained.
    """
    tests = PassingTests().evaluate(case)
    if tests.solved or not case.report.valid or not case.path:
        return tests
    if case.known is not None:
        parts, text = _earlier_parts(case, case.known, tests), case.known.opinion
        return_to = case.known.return_to
    elif case.ask is not None and case.patch():
        opinions = _hear(case, tests, critics)
        parts, text = _parts(case, tests, opinions, len(critics)), "\n".join(each.text for each in opinions.values())
        return_to = next((each.return_to for each in opinions.values() if each.return_to), "")
    else:
        return tests
    scores = {name: parts[name] for name in critics if name in parts}
    value = lifted(tests, len(case.task.goal_tests), _mean(tests, scores, weights or {})) if scores else tests.value
    notes = "\n".join(filter(None, (tests.notes, text)))
    parts = {**parts, **tests.parts, "tests": tests.value}
    return replace(tests, value=value, parts=parts, notes=notes, opinion=text, return_to=return_to)


def lifted(tests: Evaluation, goals: int, score: float) -> float:
    """The value of an unsolved state with this number of goal tests, given the critics' `score`, in [0, 1]."""
    unharmed = 1.0 - tests.harm
    scale = (BEST_UNSOLVED - BASE_VALUE) * LIFT / max(1, goals) * unharmed
    return max(tests.value, min(tests.value + scale * score, BEST_UNSOLVED * unharmed))


def _mean(tests: Evaluation, scores: Mapping[str, float], weights: Mapping[str, float]) -> float:
    terms = [(weights.get(name, 1.0), score) for name, score in scores.items()]
    terms.append((weights.get("tests", 0.0), tests.value))
    return sum(weight * score for weight, score in terms) / sum(weight for weight, _ in terms)


def _hear(case: EvaluationInput, tests: Evaluation, critics: Mapping[str, Critic]) -> dict[str, Opinion]:
    opinions: dict[str, Opinion] = {}
    for name, critic in critics.items():
        try:
            opinions[name] = critic(case, tests)
        except Abstained as why:
            log.warning("a state is evaluated without an opinion from %s: %s", name, why)
    return opinions


def _parts(case: EvaluationInput, tests: Evaluation, opinions: Mapping[str, Opinion], critics: int) -> dict[str, float]:
    """The opinions as parts of an evaluation; `critics` is the number of critics that were asked."""
    parts = {name: opinion.worth for name, opinion in opinions.items()} | _verdict(case, tests, opinions.values())
    if interests := [opinion.interest for opinion in opinions.values() if opinion.interest is not None]:
        parts["interest"] = fmean(interests)
    if len(opinions) < critics:
        parts[ABSTAINED] = float(critics - len(opinions))
    return parts


def _verdict(case: EvaluationInput, tests: Evaluation, opinions: Collection[Opinion]) -> dict[str, float]:
    """The critics' joint decision. A state is accepted only if no test contradicts that. If it breaks tests, it is
    `approved`: its author may say that the issue contradicts them."""
    verdicts = {opinion.verdict for opinion in opinions if opinion.verdict is not None}
    if not verdicts:
        return {}
    convinced = all(opinion.worth >= 0.5 for opinion in opinions)
    approved = verdicts == {"accept"} and convinced and _goals_pass(case, tests)
    parts = {"accept": float(approved and not tests.harm), "abort": float(verdicts == {"abort"})}
    return parts | {"approved": 1.0} if approved and tests.harm else parts


def _earlier_parts(case: EvaluationInput, known: Evaluation, tests: Evaluation) -> dict[str, float]:
    """The parts of an earlier evaluation. An acceptance is withdrawn if a test contradicts it now."""
    parts = dict(known.parts)
    if "accept" in parts and (tests.harm or not _goals_pass(case, tests)):
        parts["accept"] = 0.0
    return parts


def _goals_pass(case: EvaluationInput, tests: Evaluation) -> bool:
    """Whether all goal tests, if any, pass."""
    return tests.progress == 1.0 or not case.task.goal_tests
