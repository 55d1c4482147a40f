"""The results of batches: reports, comparisons, curves, leaderboard submissions, sites.

It must not import `benchmarks.self_training` or `benchmarks.cli`.
"""
