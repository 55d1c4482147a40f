"""The composition root: settings become the parts of a search, and a run is started, resumed or replayed.

The only package that knows every implementation by name. Only `agent.cli` and `benchmarks` may import it.
"""
