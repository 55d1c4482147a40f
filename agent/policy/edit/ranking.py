"""Rankings: who says which of the enumerated edits to try first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, inf, log
from random import Random
from typing import Protocol

from agent.actions import Edit
from agent.errors import TooLong
from agent.models import Ask, Model
from agent.policy.edit.context import Context
from agent.policy.edit.counts import Counts
from agent.policy.edit.record import Entry, Ranked

__all__ = ["ByCounts", "ByModel", "Choice", "Likeliest", "Ranking", "Together", "Uniform", "ranked", "shares"]

DOUBT = 0.5
"""How likely a ranking knows nothing of a bug, where several are joined: as likely as not."""


@dataclass(frozen=True, slots=True)
class Choice:
    """An edit that can be tried."""

    edits: tuple[Edit, ...]
    likely: float
    """How likely `mutate` finds it, in (0, 1]."""
    context: Context | None
    """The function that it lies in; None: in none, or in several."""

    @classmethod
    def of(cls, edits: tuple[Edit, ...], prior: float, places: Sequence[Context]) -> Choice:
        """Edits that `mutate` gave this prior, with the place that holds them."""
        return cls(edits, max(prior, 1e-6), next((each for each in places if each.holds(edits)), None))


class Ranking(Protocol):
    """Weighs edits."""

    @property
    def version(self) -> str:
        """Names it, and what it learned."""
        ...

    def weights(self, choices: Sequence[Choice], ask: Ask, rng: Random) -> Sequence[float]:
        """For each, the logarithm of how likely it is right, up to a constant; -inf: it comes last.

        Raises:
            agent.errors.RamifyError, agent.budget.BudgetSpent: a model that has to be asked cannot be.
        """
        ...


@dataclass(frozen=True, slots=True)
class Likeliest:
    """As `mutate` has them."""

    version: str = "mutate"

    def weights(self, choices: Sequence[Choice], ask: Ask, rng: Random) -> Sequence[float]:
        """`mutate`'s own likelihoods."""
        return [log(each.likely) for each in choices]


@dataclass(frozen=True, slots=True)
class Uniform:
    """In an order drawn at random, as the baseline of all others: every edit is as likely."""

    version: str = "uniform"

    def weights(self, choices: Sequence[Choice], ask: Ask, rng: Random) -> Sequence[float]:
        """Nearly equal ones, drawn by the generator."""
        return [1e-6 * rng.random() for _ in choices]


@dataclass(frozen=True, slots=True)
class ByCounts:
    """By what recorded searches came to."""

    counts: Counts

    @property
    def version(self) -> str:
        """With the digest of the counts."""
        return f"counts@{self.counts.digest}"

    def weights(self, choices: Sequence[Choice], ask: Ask, rng: Random) -> Sequence[float]:
        """See `Counts.weight`."""
        return [self.counts.weight(each.edits, each.likely) for each in choices]


@dataclass(frozen=True, slots=True)
class ByModel:
    """By a model that says how likely it would have written each edit, given its function.

    A function's share of the whole is what `mutate` gives to its edits together, so that where to look is left to fault
    localisation, and what to do there to the model. Edits in no function, in several, or in one that is too long for
    the model, come last.
    """

    model: Model

    @property
    def version(self) -> str:
        """The model's name."""
        return self.model.name

    def weights(self, choices: Sequence[Choice], ask: Ask, rng: Random) -> Sequence[float]:
        """One request a function."""
        groups: defaultdict[Context, list[int]] = defaultdict(list)
        for number, each in enumerate(choices):
            if each.context is not None:
                groups[each.context].append(number)
        found = [-inf] * len(choices)
        for context, numbers in groups.items():
            texts = [context.action(choices[number].edits) for number in numbers]
            try:
                said = ask(self.model, [{"role": "user", "content": context.prompt}], texts=texts).logprobs
            except TooLong:
                continue
            share = log(sum(choices[number].likely for number in numbers))
            for number, part in zip(numbers, shares(said), strict=True):
                found[number] = share + log(max(part, 1e-300))
        return found


@dataclass(frozen=True, slots=True)
class Together:
    """By several rankings as if none knew what another does: their likelihoods are multiplied. Each is taken to know
    nothing of a bug in `DOUBT` of all cases, so that one which is sure and wrong costs a few edits, and not the order
    of all others."""

    rankings: tuple[Ranking, ...]

    @property
    def version(self) -> str:
        """Those of all."""
        return "+".join(each.version for each in self.rankings)

    def weights(self, choices: Sequence[Choice], ask: Ask, rng: Random) -> Sequence[float]:
        """The sums of theirs. Where one can weigh nothing, the others decide."""
        found = [_doubted(each.weights(choices, ask, rng)) for each in self.rankings]
        return [sum(parts) for parts in zip(*found, strict=True)]


def _doubted(weights: Sequence[float]) -> list[float]:
    """Those of a mixture of what a ranking says and of what one would say that knows nothing."""
    return [log(DOUBT / len(weights) + (1 - DOUBT) * part) for part in shares(weights)]


def ranked(ranking: Ranking, choices: Sequence[Choice], places: Sequence[Context], ask: Ask, rng: Random) -> Ranked:
    """The choices, given in the order of `mutate`, in the ranking's; `places` are the functions that they lie in.

    Raises:
        agent.errors.RamifyError, agent.budget.BudgetSpent: as `Ranking.weights`.
    """
    found = enumerate(shares(ranking.weights(choices, ask, rng)))
    entries = [Entry(index, prior, choices[index].likely) for index, prior in found]
    return Ranked(sorted(entries, key=lambda each: (-each.prior, each.index)), places)


def shares(weights: Sequence[float]) -> list[float]:
    """Logarithms as parts of 1, in the same order."""
    top = max(weights, default=-inf)
    if top == -inf:
        return [0.0] * len(weights)
    parts = [exp(each - top) for each in weights]
    return [each / sum(parts) for each in parts]
