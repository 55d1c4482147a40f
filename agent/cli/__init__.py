"""The `ramify` command line: one file a command, and what only a person at a terminal needs.

`app` declares the commands; everything heavy is imported when a command runs, so that `ramify --help` stays fast.
Nothing in the other packages of `agent` may import this one.
"""
