"""Running somebody's program in this process as Python itself would run it. Stdlib only, Python 3.8 and later."""

from __future__ import annotations

import os
import runpy
import sys


def run_as_main(words: list[str]) -> int:
    """Run a script, or with `-m` a module, with its arguments. Returns its exit status; what else than an exit it
    raises goes through."""
    try:
        if words[0] == "-m":
            sys.argv = words[1:]
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = words
            folder = os.path.dirname(os.path.realpath(words[0]))
            if sys.path and sys.path[0] in ("", os.getcwd()):
                sys.path[0] = folder
            else:
                sys.path.insert(0, folder)
            runpy.run_path(words[0], run_name="__main__")
    except SystemExit as leaving:
        return _status(leaving.code)
    return 0


def _status(code: object) -> int:
    """As Python has it: a text is said, and is a failure."""
    if code is None or isinstance(code, int):
        return int(code or 0)
    sys.stderr.write("%s\n" % (code,))
    return 1
