"""Predictions, graded with the hidden tests; SWE-bench's own harness beside our verdicts.

It must not import `benchmarks.batch` or anything above it.
"""
