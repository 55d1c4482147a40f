"""Summaries of rollouts, in words and facts.

Invariant: the same journal gives the same facts, and every test, file and command stated as a fact is in the journal.
"""

from __future__ import annotations

from agent.solver.summaries.by_model import summarise_by_model
from agent.solver.summaries.journal import JOURNAL, summarise

__all__ = ["JOURNAL", "summarise", "summarise_by_model"]
