"""Instances: their sources, and how they are read, made and stored.

Only this package and `benchmarks.grading` know the hidden tests. It must not import the other packages of `benchmarks`.
"""
