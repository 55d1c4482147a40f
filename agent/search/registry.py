"""The search algorithms by name, and their default settings for single edits."""

from __future__ import annotations

from collections.abc import Mapping

from agent.search import Search
from agent.search.adaptive import Adaptive
from agent.search.astar import AStar
from agent.search.auto import Auto
from agent.search.beam import Beam
from agent.search.best_first import TIRED, BestFirst
from agent.search.best_of_n import BestOfN
from agent.search.clade import Clade
from agent.search.go_explore import GoExplore
from agent.search.graph import Graph
from agent.search.linear import Linear
from agent.search.mcts import Mcts
from agent.search.reproduce import Reproduce
from agent.search.strategies import Strategies
from agent.search.swe_search import SweSearch

SEARCHES: dict[str, type[Search]] = {
    "adaptive": Adaptive,
    "astar": AStar,
    "auto": Auto,
    "beam": Beam,
    "best_first": BestFirst,
    "best_of_n": BestOfN,
    "clade": Clade,
    "go_explore": GoExplore,
    "graph": Graph,
    "linear": Linear,
    "mcts": Mcts,
    "reproduce": Reproduce,
    "strategies": Strategies,
    "swe_search": SweSearch,
}
"""An algorithm's dataclass is the schema of its settings: `[search] name="mcts" c=1.4` becomes `Mcts(c=1.4)`."""

SINGLE_EDITS: dict[str, Mapping[str, float]] = {
    "auto": {"single_edits": True},
    "best_first": {"fatigue": TIRED},
    "graph": {"c": 1.4, "alpha": 0.5},
    "mcts": {"c": 1.4, "alpha": 0.5},
}
"""Defaults for policies that propose single edits, nearly all of them useless: wider than the other defaults, which are
for better proposals. These were tuned on real repairs by `mutate`, the others on simulated landscapes."""
