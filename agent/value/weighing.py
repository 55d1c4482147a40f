"""What models say of a state, put beside what its tests say.

Law: tests decide. An opinion adds to the value of a state, and always less than one more goal test that passes would;
what is solved, what is harmed and what is invalid stays that, whatever a model says.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal, get_args

from agent.value import Case, Evaluation
from agent.value.hearing import Abstained
from agent.value.tests import BASE_VALUE, BEST_UNSOLVED, GETS_FURTHER, PassingTests, goals_of

__all__ = ["ABSTAINED", "VERDICTS", "Critic", "Opinion", "Verdict", "judged", "lifted"]

log = logging.getLogger(__name__)

Verdict = Literal["accept", "refine", "abort"]
"""No better state is looked for; this one is gone on with; it is not worth going on with."""
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


Critic = Callable[[Case, Evaluation], Opinion]
"""Forms an opinion of a state, shown its evaluation by tests.

Raises:
    Abstained: it has none.
"""


def judged(case: Case, critics: Mapping[str, Critic], weights: Mapping[str, float] | None = None) -> Evaluation:
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
        return _weighed(case, tests, _said_before(case.known, critics), case.known.parts, weights or {})
    if case.ask is None or not case.patch():
        return tests
    opinions = _hear(case, tests, critics)
    parts = _verdict(case, tests, opinions)
    if interests := [each.interest for each in opinions.values() if each.interest is not None]:
        parts["interest"] = fmean(interests)
    if len(opinions) < len(critics):
        parts[ABSTAINED] = float(len(critics) - len(opinions))
    return _weighed(case, tests, opinions, parts, weights or {})


def lifted(tests: Evaluation, goals: int, worth: float) -> float:
    """The value of an unsolved state with so many goal tests, of which models think so (in [0, 1])."""
    unharmed = 1.0 - tests.parts.get("harm", 0.0)
    room = (BEST_UNSOLVED - BASE_VALUE) * LIFT / max(1, goals) * unharmed
    return max(tests.value, min(tests.value + room * worth, BEST_UNSOLVED * unharmed))


def _hear(case: Case, tests: Evaluation, critics: Mapping[str, Critic]) -> dict[str, Opinion]:
    opinions: dict[str, Opinion] = {}
    for name, critic in critics.items():
        try:
            opinions[name] = critic(case, tests)
        except Abstained as why:
            log.warning("a state is valued without a word of %s: %s", name, why)
    return opinions


def _said_before(known: Evaluation, critics: Mapping[str, Critic]) -> dict[str, Opinion]:
    return {name: Opinion(known.parts[name]) for name in critics if name in known.parts}


def _verdict(case: Case, tests: Evaluation, opinions: Mapping[str, Opinion]) -> dict[str, float]:
    """What the critics decide together. Accepted is only what no test speaks against."""
    verdicts = [each.verdict for each in opinions.values() if each.verdict is not None]
    if not verdicts:
        return {}
    unopposed = not tests.parts.get("harm", 0.0) and (tests.parts["progress"] == 1.0 or not goals_of(case))
    convinced = all(each.worth >= 0.5 for each in opinions.values())
    accepted = unopposed and convinced and set(verdicts) == {"accept"}
    return {"accept": float(accepted), "abort": float(set(verdicts) == {"abort"})}


def _weighed(
    case: Case,
    tests: Evaluation,
    opinions: Mapping[str, Opinion],
    parts: Mapping[str, float],
    weights: Mapping[str, float],
) -> Evaluation:
    worths = {name: opinion.worth for name, opinion in opinions.items()}
    heard = {name: worth for name, worth in worths.items() if weights.get(name, 1.0) > 0}
    value = tests.value
    if heard:
        terms = {"tests": tests.value, **heard}
        shares = {name: weights.get(name, 0.0 if name == "tests" else 1.0) for name in terms}
        worth = sum(shares[name] * term for name, term in terms.items()) / sum(shares.values())
        value = lifted(tests, len(goals_of(case)), worth)
    notes = "\n".join(filter(None, [tests.notes, *(opinion.text for opinion in opinions.values())]))
    return replace(tests, value=value, parts={**parts, **tests.parts, "tests": tests.value, **worths}, notes=notes)
