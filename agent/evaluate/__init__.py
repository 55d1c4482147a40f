"""What a measured state is worth: staged test runs, values, goal tests, reproduction, guard against cheating,
verification.

It must not import `agent.search`, `agent.policy`, or anything above them.
"""
