"""Run a program in this process as Python itself would, and change modules when they are imported. Stdlib only, Python
3.8 and later.
"""

from __future__ import annotations

import importlib.abc
import os
import runpy
import sys
from collections.abc import Callable, Collection
from typing import Any


def run_as_main(words: list[str]) -> int:
    """Run a script, or with `-m` a module, with its arguments. Return its exit status; exceptions other than SystemExit
    are not caught."""
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
    """The exit status as Python computes it: a text is printed and means failure."""
    if code is None or isinstance(code, int):
        return int(code or 0)
    sys.stderr.write("%s\n" % (code,))
    return 1


class ImportListener(importlib.abc.MetaPathFinder):
    """Calls a function with each named module as soon as it is imported."""

    def __init__(self, names: Collection[str], then: Callable[[Any], None]) -> None:
        self.names, self.then = set(names), then

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in self.names:
            return None
        self.names.remove(name)
        others = [finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec")]
        spec = next((found for found in (each.find_spec(name, path, target) for each in others) if found), None)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            run = loader.exec_module

            def exec_module(module: Any) -> None:
                run(module)
                self.then(module)

            loader.exec_module = exec_module
        return spec
