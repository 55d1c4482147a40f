"""Instances: where they come from, how they are read, made and kept.

The hidden tests are known here and in grading only. It must not import the other packages of `benchmarks`.
"""
