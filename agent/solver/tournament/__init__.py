"""Tournament: ranks candidates, by facts first and then by votes."""

from __future__ import annotations

from agent.solver.tournament.bracket import Match, comparisons
from agent.solver.tournament.ranking import Ranking, rank

__all__ = ["Match", "Ranking", "comparisons", "rank"]
