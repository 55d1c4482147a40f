"""Rankings: weigh the enumerated edits, to decide which to try first."""

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

DOUBT = 0.5
"""When rankings are joined, the probability that one of them knows nothing about a bug."""


@dataclass(frozen=True, slots=True)
class Choice:
    """An edit that can be tried."""

    edits: tuple[Edit, ...]
    likelihood: float
    """The likelihood that `mutate` gives it, in (0, 1]."""
    context: Context | None
    """The function that it edits; None if it edits several, or none."""

    @classmethod
    def of(cls, edits: tuple[Edit, ...], prior: float, functions: Sequence[Context]) -> Choice:
        """Edits to which `mutate` gave this prior, with the function that holds them."""
        return cls(edits, max(prior, 1e-6), next((context for context in functions if context.holds(edits)), None))


class Ranking(Protocol):
    """Weighs edits."""

    @property
    def version(self) -> str:
        """The ranking's name and the version of what it learned."""
        ...

    def weights(self, choices: Sequence[Choice], ask: Ask, rng: Random) -> Sequence[float]:
        """For each choice, the logarithm of how likely it is right, up to a constant; -inf puts it last.

        Raises:
            agent.errors.RamifyError, agent.budget.BudgetSpent: a model that is needed cannot be asked.
        """
        ...


@dataclass(frozen=True, slots=True)
class MutateOrder:
    """Ranks edits in the order of `mutate`."""

    version: str = "mutate"

    def weights(self, choices: Sequence[Choice], ask: Ask, rng: Random) -> Sequence[float]:
        """The likelihoods that `mutate` gives."""
        return [log(choice.likelihood) for choice in choices]


@dataclass(frozen=True, slots=True)
class Uniform:
    """Ranks edits at random, as the baseline for all others."""

    version: str = "uniform"

    def weights(self, choices: Sequence[Choice], ask: Ask, rng: Random) -> Sequence[float]:
        """Nearly equal weights in a random order."""
        return [1e-6 * rng.random() for _ in choices]


@dataclass(frozen=True, slots=True)
class ByCounts:
    """Ranks edits by the results of recorded searches."""

    counts: Counts

    @property
    def version(self) -> str:
        """The name, with the digest of the counts."""
        return f"counts@{self.counts.digest}"

    def weights(self, choices: Sequence[Choice], ask: Ask, rng: Random) -> Sequence[float]:
        """See `Counts.weight`."""
        return [self.counts.weight(choice.edits, choice.likelihood) for choice in choices]


@dataclass(frozen=True, slots=True)
class ByModel:
    """Ranks edits by how likely a model would write each of them, given its function.

    A function's total share is what `mutate` gives to its edits together: fault localisation decides where to look, and
    the model what to do there. Edits in no function, in several, or in one that is too long for the model, come last.
    """

    model: Model

    @property
    def version(self) -> str:
        """The model's name."""
        return self.model.name

    def weights(self, choices: Sequence[Choice], ask: Ask, rng: Random) -> Sequence[float]:
        """Compute the weights with one request per function."""
        groups: defaultdict[Context, list[int]] = defaultdict(list)
        for number, choice in enumerate(choices):
            if choice.context is not None:
                groups[choice.context].append(number)
        weights = [-inf] * len(choices)
        for context, numbers in groups.items():
            texts = [context.action(choices[number].edits) for number in numbers]
            try:
                logprobs = ask(self.model, [{"role": "user", "content": context.prompt}], texts=texts).logprobs
            except TooLong:
                continue
            share = log(sum(choices[number].likelihood for number in numbers))
            for number, part in zip(numbers, shares(logprobs), strict=True):
                weights[number] = share + log(max(part, 1e-300))
        return weights


@dataclass(frozen=True, slots=True)
class Together:
    """Joins several rankings as if they were independent: their likelihoods are multiplied. Each is assumed to know
    nothing about a bug in `DOUBT` of all cases, so that a ranking that is sure and wrong costs a few edits, and does
    not spoil the whole order."""

    rankings: tuple[Ranking, ...]

    @property
    def version(self) -> str:
        """The versions of all rankings."""
        return "+".join(ranking.version for ranking in self.rankings)

    def weights(self, choices: Sequence[Choice], ask: Ask, rng: Random) -> Sequence[float]:
        """The sums of the rankings' weights. A ranking without any weight leaves the order to the others."""
        columns = [_smoothed(ranking.weights(choices, ask, rng)) for ranking in self.rankings]
        return [sum(parts) for parts in zip(*columns, strict=True)]


def _smoothed(weights: Sequence[float]) -> list[float]:
    """The weights mixed with those of a ranking that knows nothing."""
    return [log(DOUBT / len(weights) + (1 - DOUBT) * part) for part in shares(weights)]


def ranked(ranking: Ranking, choices: Sequence[Choice], functions: Sequence[Context], ask: Ask, rng: Random) -> Ranked:
    """The choices, given in the order of `mutate`, in that of the ranking; `functions` are those that they edit.

    Raises:
        agent.errors.RamifyError, agent.budget.BudgetSpent: as `Ranking.weights`.
    """
    priors = shares(ranking.weights(choices, ask, rng))
    entries = [Entry(index, prior, choices[index].likelihood) for index, prior in enumerate(priors)]
    return Ranked(sorted(entries, key=lambda entry: (-entry.prior, entry.index)), functions)


def shares(weights: Sequence[float]) -> list[float]:
    """Logarithmic weights as shares of 1, in the same order."""
    top = max(weights, default=-inf)
    if top == -inf:
        return [0.0] * len(weights)
    parts = [exp(weight - top) for weight in weights]
    return [part / sum(parts) for part in parts]
