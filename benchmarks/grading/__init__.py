"""Grades predictions with the hidden tests, and compares our verdicts with those of SWE-bench's own harness.

It must not import `benchmarks.batch` or anything above it.
"""
