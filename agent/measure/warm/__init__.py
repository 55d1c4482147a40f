"""Test runs that start from a process which has imported the test session already, and when their results can be
trusted."""
