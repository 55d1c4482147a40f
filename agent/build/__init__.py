"""The composition root: makes the parts of a search from settings, and starts, resumes or replays a run.

The only package that knows every implementation by name. Only `agent.cli` and `benchmarks` may import it.
"""
