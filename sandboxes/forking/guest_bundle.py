"""Packs the guest's modules into a zip that is sent to the Python that runs it, over its stdin.

This way the guest need not be in the image, and no action can reach its files.
"""

from __future__ import annotations

import io
import marshal
import zipfile
from functools import cache
from importlib import resources
from importlib.abc import InspectLoader
from importlib.util import MAGIC_NUMBER, find_spec, source_hash
from typing import cast

STARTED = b"+"
"""The loader's first output, once Python runs."""

LOADER = """
import os, sys

def take(size):
    data = b""
    while len(data) < size:
        part = os.read(0, size - len(data))
        if not part:
            raise SystemExit
        data += part
    return data

os.write(1, b"+")
file = os.memfd_create("guest")
with open(os.dup(file), "wb") as copy:
    copy.write(take(int.from_bytes(take(4), "big")))
sys.path.insert(0, "/proc/self/fd/%d" % file)
from guest.__main__ import main
sys.path.pop(0)
os.close(file)
main()
"""
"""A program for `python -c` that reads the output of `package` from stdin and becomes the guest."""


@cache
def package() -> bytes:
    """Return the size and then the zip of the guest's modules, with byte code for this process's Python version."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as bundle:  # stored: a Python without zlib can read it
        for module in resources.files("sandboxes.guest").iterdir():
            if module.name.endswith(".py"):
                source = module.read_bytes()
                bundle.writestr(f"guest/{module.name}", source)
                bundle.writestr(f"guest/{module.name}c", _byte_code(module.name.removesuffix(".py"), source))
    data = archive.getvalue()
    return len(data).to_bytes(4, "big") + data


def _byte_code(module: str, source: bytes) -> bytes:
    """Return an unchecked .pyc of a guest module. Other versions of Python ignore it."""
    spec = find_spec(f"sandboxes.guest.{module}")
    assert spec is not None
    loader = cast("InspectLoader", spec.loader)
    return MAGIC_NUMBER + b"\1\0\0\0" + source_hash(source) + marshal.dumps(loader.get_code(spec.name))


_DOOR = ("frames", "kernel", "confine", "door")
"""The guest's modules that a template needs, in import order."""
_REGISTER = """
import sys, types

def register(package, sources):
    parent = sys.modules[package] = types.ModuleType(package)
    parent.__path__ = []
    for name, source in sources:
        module = sys.modules[package + "." + name] = types.ModuleType(package + "." + name)
        module.__package__ = package
        exec(compile(source, "<%s.%s>" % (package, name), "exec"), module.__dict__)
        setattr(parent, name, module)

"""


def program(text: str) -> bytes:
    """Put the guest modules that a template needs before its program, for a Python that reads it from stdin."""
    sources = [(name, resources.files("sandboxes.guest").joinpath(f"{name}.py").read_text()) for name in _DOOR]
    return f"{_REGISTER}register('ramify_door', {sources!r})\n{text}".encode()
