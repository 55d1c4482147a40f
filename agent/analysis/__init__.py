"""Analysis of recorded runs: reports, diagnosis, histories in git, trajectories of other agents, comparison,
minimisation.

It must not import `agent.learning`, `agent.build` or `agent.cli`.
"""
