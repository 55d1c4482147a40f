"""The `ramify` command line: one file per command, and the code that only interactive use needs.

`app` declares the commands. Slow imports happen when a command runs, so that `ramify --help` stays fast. Other packages
of `agent` must not import this one.
"""
