"""Environments beside that of the tests, and ports for the servers that run in them."""

from __future__ import annotations

import os
import socket
from pathlib import Path

_ROOT = Path(__file__).parent.parent


def interpreter(name: str) -> Path:
    """Of the environment that `scripts/NAME-env` makes, in `.NAME` or where RAMIFY_NAME says. It may be missing."""
    return Path(os.environ.get(f"RAMIFY_{name.upper()}", _ROOT / f".{name}")) / "bin" / "python"


def free_port() -> int:
    """One that nothing listens on."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])
