"""The search loop: select a node, expand it in a sandbox, measure the new state, record it.

It drives whatever `agent.search`, `agent.policy` and `agent.evaluate` provide, and must not import `agent.solver` or
anything above it.
"""
