"""Find the packages of the workspace that the tests imported from an installed copy, so that changes were not tested.

Stdlib only, Python 3.8 and later.
PYTEST_DONT_REWRITE
"""

from __future__ import annotations

import os
import sys
from typing import Dict

INSTALLED = ("site-packages", "dist-packages")
FOLDERS = ("", "src", "lib")
"""Folders in which a workspace has its packages."""


def copies(root: str) -> Dict[str, str]:
    """By name, the file of each imported module that is installed although the workspace has one of the same name."""
    files = {name: getattr(module, "__file__", None) or "" for name, module in list(sys.modules.items())}
    return {
        name: file
        for name, file in files.items()
        if "." not in name and not set(INSTALLED).isdisjoint(file.split(os.sep)) and _has(root, name)
    }


def _has(root: str, name: str) -> bool:
    paths = (os.path.join(root, folder, name) for folder in FOLDERS)
    return any(os.path.isfile(path + ".py") or os.path.isfile(os.path.join(path, "__init__.py")) for path in paths)
