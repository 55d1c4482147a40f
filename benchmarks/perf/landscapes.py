"""Landscapes with known optima: deceptive paths, long climbs, near-duplicate moves and programs to repair."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from benchmarks.perf.landscape import Landscape, Move, State, rng_of


@dataclass(frozen=True, slots=True)
class Ways(Landscape):
    """Deceptive first branches. A child of the root begins a path; a child of any other state advances along it or,
    more often, does not. A lure begins well and soon ends; the first path and most others are lures. The path to the
    optimum begins badly.

    A state is (start, end, level, serial). The first two are the values of the path's first and last level, in
    thousandths.
    """

    seed: int
    lures: float = 0.8
    """The share of lures among the paths after the first."""
    levels: int = 6
    climbs: float = 0.4
    """The probability that a child is one level higher."""
    noise: float = 0.0

    start: State = (100, 100, 0, 0)

    def move(self, state: State, index: int) -> Move:
        """There is always another move."""
        rng = rng_of("ways", self.seed, state, index)
        if state == self.start:
            lure = index == 0 or rng.random() < self.lures
            start = rng.randint(350, 500) if lure else rng.randint(100, 250)
            return Move((start, start + rng.randint(100, 200) if lure else 1000, 0, rng.getrandbits(32)))
        start, end, level, _ = state
        higher = min(self.levels, level + (rng.random() < self.climbs))
        return Move((start, end, higher, rng.getrandbits(32)))

    def value(self, state: State) -> float:
        """Grows evenly with the level."""
        start, end, level, _ = state
        return (start + (end - start) * level / self.levels) / 1000


@dataclass(frozen=True, slots=True)
class Climb(Landscape):
    """A long climb of many small steps, most of which lead down. How often a state's children are better is inherited
    with changes, and so is how expensive they are. A child of the root founds a line.

    A state is (height, fertility, dearness, serial), the first three in thousandths: the value, the probability that a
    child is better, and the scale of its costs.
    """

    seed: int
    noise: float = 0.0
    tail: float = 0.0
    """The shape of the Pareto distribution of costs, above 1 (a lower value means a heavier tail); 0: every move costs
    1."""

    start: State = (200, 150, 1000, 0)

    def move(self, state: State, index: int) -> Move:
        """There is always another move."""
        rng = rng_of("climb", self.seed, state, index)
        height, fertility, dearness, _ = state
        if state == self.start:
            fertility, dearness = rng.randint(30, 300), round(1000 * 4 ** rng.uniform(-1, 1))
        better = rng.random() * 1000 < fertility
        height += rng.randint(20, 100) if better else -rng.randint(0, 150)
        fertility = min(500, max(10, round(fertility * rng.uniform(0.8, 1.25))))
        cost = 1.0
        if self.tail:
            cost = dearness / 1000 * min(40.0, rng.paretovariate(self.tail)) * (self.tail - 1) / self.tail
        return Move((min(1000, max(0, height)), fertility, dearness, rng.getrandbits(32)), cost=cost)

    def value(self, state: State) -> float:
        """The height."""
        return state[0] / 1000


@dataclass(frozen=True, slots=True)
class Duplicates(Landscape):
    """Near-duplicate moves: few edits in any order, some of which are proposed again and again. Half of the edits
    change nothing that is measured, so many states are almost the same. Two orders of the same edits give one state.

    A state is its sorted edits. Edits 0 to `keys` - 1 are needed, the next `harmful` ones do harm, and the others do
    neither.
    """

    seed: int
    edits: int = 18
    keys: int = 6
    harmful: int = 3
    noise: float = 0.0

    start: State = ()

    def move(self, state: State, index: int) -> Move | None:
        """A random edit: in an order that the seed determines, the edit of rank r is r ** -1.5 times as likely as the
        first."""
        order = rng_of("duplicates", self.seed).sample(range(self.edits), self.edits)
        weights = [0.0 if edit in state else (rank + 1) ** -1.5 for rank, edit in enumerate(order)]
        if not any(weights):
            return None
        (edit,) = rng_of("duplicates", self.seed, state, index).choices(order, weights)
        return Move(_with(state, edit), file=f"part{edit % 6}.py")

    def value(self, state: State) -> float:
        """The share of the needed edits, minus a tenth for each harmful one."""
        harm = sum(self.keys <= edit < self.keys + self.harmful for edit in state)
        return max(0.0, sum(edit < self.keys for edit in state) / self.keys - 0.1 * harm)

    def tests(self, state: State) -> Mapping[str, bool]:
        """A test for every needed edit."""
        return {f"test_{key}": key in state for key in range(self.keys)}

    def fused(self, ours: State, theirs: State) -> State | None:
        """No two edits conflict."""
        return tuple(sorted({*ours, *theirs}))


@dataclass(frozen=True, slots=True)
class Repair(Landscape):
    """Program repair without a model: `goals` failing tests, `sites` places to edit, `variants` edits for each place.

    Most edits change nothing that a test sees; a fifth of the others breaks tests. Every goal needs one edit, except
    the last, which needs two that have no effect alone. A place takes only one edit, so that a wrong edit cannot be
    undone in descendants. A state proposes at most `limit` edits, in the order of their suspicion with random
    disturbance.

    A state is its sorted edits; edit e is at place e // variants.
    """

    seed: int
    informed: bool = True
    """Whether priors and the order of proposals favour the needed edits, rather than the others."""
    goals: int = 4
    sites: int = 30
    variants: int = 3
    limit: int = 40
    noise: float = 0.0

    start: State = ()

    def move(self, state: State, index: int) -> Move | None:
        """The next edit at a free place."""
        order = _order(self, state)
        if index >= len(order):
            return None
        edit = order[index]
        return Move(_with(state, edit), planted(self).priors[edit], file=f"module{edit // self.variants % 8}.py")

    def value(self, state: State) -> float:
        """As in `agent.evaluate.value.tests`: (0.1 + 0.8 * goals that pass) * (1 - harm), and 1 if solved."""
        passes = self.tests(state)
        progress = sum(passes[f"goal_{goal}"] for goal in range(self.goals)) / self.goals
        broken = sum(not passed for test, passed in passes.items() if test.startswith("test_"))
        if progress == 1.0 and not broken:
            return 1.0
        return (0.1 + 0.8 * progress) * (1.0 - (max(0.1, broken / len(passes)) if broken else 0.0))

    def tests(self, state: State) -> Mapping[str, bool]:
        """The goals, and twenty tests that pass until an edit breaks them."""
        bug = planted(self)
        goals = {f"goal_{goal}": needed <= set(state) for goal, needed in enumerate(bug.needed)}
        broken = {bug.breaks[edit] for edit in state if edit in bug.breaks}
        return goals | {f"test_{test}": test not in broken for test in range(20)}

    def fused(self, ours: State, theirs: State) -> State | None:
        """States conflict if they edit one place differently."""
        both = {*ours, *theirs}
        return None if len({edit // self.variants for edit in both}) < len(both) else tuple(sorted(both))


@dataclass(frozen=True, slots=True)
class Bug:
    """The defect of one program, and what a policy believes."""

    needed: tuple[frozenset[int], ...]
    """The edits that make each goal pass."""
    breaks: Mapping[int, int]
    """The test that a harmful edit breaks."""
    priors: tuple[float, ...]
    """The prior of every edit, in [0, 1]."""


@lru_cache(maxsize=64)
def planted(program: Repair) -> Bug:
    """The defect of a program."""
    rng = rng_of("repair", program.seed, program.goals, program.sites, program.variants)
    places = rng.sample(range(program.sites), program.goals + 1)
    right = [place * program.variants + rng.randrange(program.variants) for place in places]
    needed = (*(frozenset({edit}) for edit in right[:-2]), frozenset(right[-2:]))
    every = range(program.sites * program.variants)
    breaks = {edit: rng.randrange(20) for edit in every if edit not in right and rng.random() < 0.2}
    high, low = ((0.3, 0.9), (0.0, 0.5)) if program.informed else ((0.0, 0.3), (0.0, 0.6))
    priors = tuple(rng.uniform(*(high if edit in right else low)) for edit in every)
    return Bug(needed, breaks, priors)


@lru_cache(maxsize=4096)
def _order(program: Repair, state: State) -> tuple[int, ...]:
    """Edits drawn without replacement, in proportion to their priors: by descending u ** (1 / prior)."""
    rng, priors = rng_of("repair", program.seed, state), planted(program).priors
    taken = {edit // program.variants for edit in state}
    keys = [rng.random() ** (1 / (0.05 + prior)) for prior in priors]
    free = [edit for edit in range(len(priors)) if edit // program.variants not in taken]
    return tuple(sorted(free, key=lambda edit: -keys[edit])[: program.limit])


def _with(state: State, edit: int) -> State:
    return tuple(sorted((*state, edit)))


LANDSCAPES: dict[str, Callable[[int], Landscape]] = {
    "deceptive": Ways,
    "noisy": lambda seed: Climb(seed, noise=0.1),
    "heavy_tailed": lambda seed: Climb(seed, tail=1.5),
    "near_duplicate": Duplicates,
    "repair": Repair,
    "repair_misled": lambda seed: Repair(seed, informed=False),
}
"""Landscapes by name; each is made from a seed."""
