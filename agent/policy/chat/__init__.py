"""The chat policy: a language model that works in turns, through tool calls or tagged text.

Like all policies, it must not import `agent.search`, `agent.evaluate`, or anything above them.
"""
