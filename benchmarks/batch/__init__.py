"""Batches: many instances solved side by side, on one machine or several, with their cost, progress and disk.

It must not import `benchmarks.reports` or anything above it.
"""
