"""The search algorithms by name."""

from __future__ import annotations

from agent.search import Search
from agent.search.adaptive import Adaptive
from agent.search.astar import AStar
from agent.search.auto import Auto
from agent.search.beam import Beam
from agent.search.best_first import BestFirst
from agent.search.best_of_n import BestOfN
from agent.search.clade import Clade
from agent.search.go_explore import GoExplore
from agent.search.graph import Graph
from agent.search.linear import Linear
from agent.search.mcts import Mcts
from agent.search.strategies import Strategies
from agent.search.swe_search import SweSearch

__all__ = ["SEARCHES"]

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
    "strategies": Strategies,
    "swe_search": SweSearch,
}
"""An algorithm's dataclass is the schema of its settings: `[search] name="mcts" c=1.4` becomes `Mcts(c=1.4)`."""
