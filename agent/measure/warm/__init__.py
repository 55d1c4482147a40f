"""Test runs copied from a process that has already imported the test session, and when to trust their results."""
