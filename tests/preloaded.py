"""What makes commands slow to begin, done once for all processes that are forked after this was imported.

Typer makes the options of all commands anew each time that one is run; other modules are imported where they are used.
"""

import gc
from functools import cache
from importlib import import_module

import typer.main

from agent.cli.app import app

for name in (
    "agent.__main__",
    "agent.build.composition",
    "agent.cli.new_run",
    "agent.learning.export",
    "agent.models.openai",
    "agent.policy.mutate",
    "openai",
    "sandboxes.namespace.provider",
):
    import_module(name)
typer.main.get_command = cache(typer.main.get_command)
typer.main.get_command(app)
gc.freeze()  # none of this is garbage: no command need look for any in it
