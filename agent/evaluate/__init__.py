"""Evaluate measured states: staged test runs, values, goal tests, reproduction, guard against cheating, verification.

This package must not import `agent.search`, `agent.policy`, or anything above them.
"""
