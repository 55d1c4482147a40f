"""`ramify bench`, `round` and `serve-report`: one file a command. Nothing else in `benchmarks` may import it."""
