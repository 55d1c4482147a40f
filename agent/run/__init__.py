"""A run: the journal of its events, the state that is folded from them, and the files of its directory.

A live run and a resumed one change state by `Run.record` alone. It must not import the packages that decide
(`agent.search`, `agent.policy`, `agent.evaluate`) or anything above them.
"""
