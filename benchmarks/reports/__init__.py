"""What batches came to: reports, comparisons, curves, leaderboards, sites.

It must not import `benchmarks.self_training` or `benchmarks.cli`.
"""
