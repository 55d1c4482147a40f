"""Commands: `ramify bench`, `round` and `serve-report`, one file each. Nothing else in `benchmarks` may import it."""
