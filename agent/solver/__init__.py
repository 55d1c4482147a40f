"""From a task to a verified patch: `solve.solve` measures the root state, searches, compares the rollouts and verifies
the best patch.

Everything above one search: rounds, tournament, summaries, refinement, delegation of sub-issues. It must not import the
packages that look at finished runs (`agent.analysis`, `agent.learning`), `agent.build` or `agent.cli`.
"""
