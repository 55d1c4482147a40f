"""Commands of `ramify`, each in a process of its own that need not import the program anew.

One process imports it, and is forked for every command: what is shared is how they start, and nothing after that.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["pytest", "tests.commands", "tests.preloaded"])


def ramify(
    argv: Sequence[object], *, cwd: Path, env: Mapping[str, str], stdin: str = "", timeout_s: float = 500
) -> subprocess.CompletedProcess[str]:
    """What the command said and how it ended.

    Raises:
        subprocess.TimeoutExpired: it took longer, and was killed.
    """
    words = [str(each) for each in argv]
    with tempfile.TemporaryDirectory() as directory:
        files = [Path(directory, name) for name in ("stdin", "stdout", "stderr")]
        for file, text in zip(files, (stdin, "", ""), strict=True):
            file.write_text(text, encoding="utf-8")
        process = _FORKS.Process(target=_become, args=(words, cwd, dict(env), files))
        process.start()
        process.join(timeout_s)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(words, timeout_s)
        _, said, complained = (file.read_text(encoding="utf-8") for file in files)
        return subprocess.CompletedProcess(words, process.exitcode, said, complained)


def _become(argv: Sequence[str], cwd: Path, env: Mapping[str, str], files: Sequence[Path]) -> None:
    """Be the command."""
    from agent.__main__ import main

    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    for number, file in enumerate(files):
        os.dup2(os.open(file, os.O_RDWR), number)
    sys.stdin, sys.stdout, sys.stderr = (open(number, "w" if number else "r") for number in range(3))  # noqa: SIM115
    sys.argv = ["ramify", *argv]
    main()
