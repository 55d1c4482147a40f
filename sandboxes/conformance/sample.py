"""A checkout with one of everything that is hard to copy, compare or patch."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def sample(root: Path) -> Path:
    """A checkout with one of everything that is hard to copy, compare or patch."""
    root.mkdir(parents=True)
    files = {
        "src/app.py": b"def add(a, b):\n    return a - b\n",
        "tests/test_app.py": b"from src.app import add\n\n\ndef test_add():\n    assert add(2, 2) == 4\n",
        "crlf.txt": b"one\r\ntwo\r\n",
        "latin.txt": "caf\u00e9\n".encode("latin-1"),
        "no_newline.txt": b"no newline at the end",
        "data.bin": bytes(range(256)) * 4,
        "tool.sh": b"#!/bin/sh\necho tool\n",
        "build/kept.txt": b"tracked although it is ignored\n",
        "pkg/deep/one.txt": b"1\n",
        "pkg/deep/two.txt": b"2\n",
        ".gitignore": b"*.log\n/build/\n!important.log\n",
    }
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    Path(os.fsdecode(os.fsencode(root) + b"/odd-\xff.txt")).write_bytes(b"odd\n")
    (root / "tool.sh").chmod(0o755)
    (root / "link").symlink_to("src/app.py")
    git(root, "init", "-q")
    git(root, "add", "-f", ".")
    git(root, "-c", "user.name=n", "-c", "user.email=e@example.invalid", "commit", "-q", "-m", "first")
    (root / "build" / "out.o").write_bytes(b"ignored\n")
    (root / "empty").mkdir()
    return root


def git(root: Path, *command: str, stdin: bytes = b"") -> bytes:
    """What a git command prints in a checkout, without anybody's own settings."""
    env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(["git", "-C", root, *command], input=stdin, capture_output=True, check=False, env=env)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout
