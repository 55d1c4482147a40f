"""Benchmarks: instances with hidden tests, batches of them, their grading and reports."""
