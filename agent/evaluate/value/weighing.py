"""What models say of a state, put beside what its tests say.

Law: tests decide. An opinion adds to the value of a state, and always less than one more goal test that passes would;
what is solved, what is harmed and what is invalid stays that, whatever a model says.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal, get_args

from agent.evaluate.value import EvaluationInput
from agent.evaluate.value.tests import BASE_VALUE, BEST_UNSOLVED, GETS_FURTHER, PassingTests
from agent.models.conversing import Abstained
from agent.run.tree.evaluation import Evaluation

__all__ = ["ABSTAINED", "VERDICTS", "Critic", "Opinion", "Verdict", "judged", "lifted"]

log = logging.getLogger(__name__)

Verdict = Literal["accept", "refine", "abort"]
"""`accept`: stop searching; `refine`: keep expanding the state; `abort`: abandon its line of work."""
VERDICTS = get_args(Verdict)
LIFT = 0.9 * (1.0 - GETS_FURTHER)
"""What the best opinion is worth, in goal tests: less than what a test that passes is worth more than one that does
not."""
ABSTAINED = "abstained"
"""The part that counts who was asked and gave no opinion; not there where everybody did."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """What a model thinks of a state."""

    worth: float
    """In [0, 1]: how likely the change solves the issue."""
    text: str = ""
    """An assessment, for the policy that tries again from the same parent."""
    verdict: Verdict | None = None
    interest: float | None = None
    """In [0, 1]: how much there is to learn by going on from the state, whatever it is worth."""


Critic = Callable[[EvaluationInput, Evaluation], Opinion]
"""Forms an opinion of a state, shown its evaluation by tests.

Raises:
    Abstained: it has none.
"""


def judged(
    case: EvaluationInput, critics: Mapping[str, Critic], weights: Mapping[str, float] | None = None
) -> Evaluation:
    """The evaluation by tests, lifted by the weighted mean of what critics say.

    `weights` are by the names of the critics, 1 where there is none; one named `tests` weighs the value by tests. A
    critic that abstains has no weight; where all do, tests alone count. `parts` has `tests`, what each critic said
    under its name, `accept` and `abort` (1 or 0) where critics gave verdicts, the mean `interest` where they said one,
    and `abstained` where some gave nothing.
    """
    tests = PassingTests().evaluate(case)
    if tests.solved or not case.report.valid or not case.path:
        return tests
    if case.known is not None:
        said, text = _said_before(case, case.known, tests), case.known.opinion
    elif case.ask is not None and case.patch():
        said, text = _hear(case, tests, critics)
    else:
        return tests
    worths = {name: said[name] for name in critics if name in said}
    value = lifted(tests, len(case.task.goal_tests), _mean(tests, worths, weights or {})) if worths else tests.value
    notes = "\n".join(filter(None, (tests.notes, text)))
    return replace(tests, value=value, parts={**said, **tests.parts, "tests": tests.value}, notes=notes, opinion=text)


def lifted(tests: Evaluation, goals: int, worth: float) -> float:
    """The value of an unsolved state with so many goal tests, of which models think so (in [0, 1])."""
    unharmed = 1.0 - tests.harm
    room = (BEST_UNSOLVED - BASE_VALUE) * LIFT / max(1, goals) * unharmed
    return max(tests.value, min(tests.value + room * worth, BEST_UNSOLVED * unharmed))


def _mean(tests: Evaluation, worths: Mapping[str, float], weights: Mapping[str, float]) -> float:
    terms = [(weights.get(name, 1.0), worth) for name, worth in worths.items()]
    terms.append((weights.get("tests", 0.0), tests.value))
    return sum(weight * worth for weight, worth in terms) / sum(weight for weight, _ in terms)


def _hear(case: EvaluationInput, tests: Evaluation, critics: Mapping[str, Critic]) -> tuple[dict[str, float], str]:
    """What critics say, as parts of an evaluation and in words."""
    opinions: dict[str, Opinion] = {}
    for name, critic in critics.items():
        try:
            opinions[name] = critic(case, tests)
        except Abstained as why:
            log.warning("a state is valued without a word of %s: %s", name, why)
    parts = {name: opinion.worth for name, opinion in opinions.items()} | _verdict(case, tests, opinions.values())
    if interests := [each.interest for each in opinions.values() if each.interest is not None]:
        parts["interest"] = fmean(interests)
    if len(opinions) < len(critics):
        parts[ABSTAINED] = float(len(critics) - len(opinions))
    return parts, "\n".join(opinion.text for opinion in opinions.values())


def _verdict(case: EvaluationInput, tests: Evaluation, opinions: Collection[Opinion]) -> dict[str, float]:
    """What the critics decide together. Accepted is only what no test speaks against."""
    verdicts = {each.verdict for each in opinions if each.verdict is not None}
    if not verdicts:
        return {}
    convinced = all(each.worth >= 0.5 for each in opinions)
    accepted = verdicts == {"accept"} and convinced and _unopposed(case, tests)
    return {"accept": float(accepted), "abort": float(verdicts == {"abort"})}


def _said_before(case: EvaluationInput, known: Evaluation, tests: Evaluation) -> dict[str, float]:
    """The parts of an earlier evaluation; what was accepted then is so no more where a test speaks against it now."""
    parts = dict(known.parts)
    if "accept" in parts and not _unopposed(case, tests):
        parts["accept"] = 0.0
    return parts


def _unopposed(case: EvaluationInput, tests: Evaluation) -> bool:
    """Every goal test passes, where there are any, and nothing is broken."""
    return not tests.harm and (tests.progress == 1.0 or not case.task.goal_tests)
