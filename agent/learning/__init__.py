"""What is learned from recorded runs: training data, trained models and their servers, memory across issues.

It reads runs and never steers one. It must not import `agent.build` or `agent.cli`.
"""
