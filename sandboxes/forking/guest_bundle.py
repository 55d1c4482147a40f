"""How the guest gets to the Python that runs it, wherever that is: as a zip of its modules, over its own stdin.

So it need not be in the image, and no file of it lies anywhere that an action could reach.
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

__all__ = ["LOADER", "STARTED", "package", "program"]

STARTED = b"+"
"""What the loader says first, once Python runs."""

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
"""A program for `python -c`. It reads what `package` gives from stdin and becomes the guest."""


@cache
def package() -> bytes:
    """The guest's modules, with their size before them. A Python of our own version finds byte code beside each."""
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
    """A .pyc of the guest's module, which is not checked against the source; Pythons of other versions pass it over."""
    spec = find_spec(f"sandboxes.guest.{module}")
    assert spec is not None
    loader = cast("InspectLoader", spec.loader)
    return MAGIC_NUMBER + b"\1\0\0\0" + source_hash(source) + marshal.dumps(loader.get_code(spec.name))


_DOOR = ("frames", "kernel", "confine", "door")
"""The guest's modules that a template needs, each after those that it imports."""
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
    """A template's program with what it needs of the guest before it, for a Python that reads it from stdin."""
    sources = [(name, resources.files("sandboxes.guest").joinpath(f"{name}.py").read_text()) for name in _DOOR]
    return f"{_REGISTER}register('ramify_door', {sources!r})\n{text}".encode()
