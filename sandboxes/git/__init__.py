"""The only place that runs git: in a clean environment, without filters or hooks, and with literal paths."""
