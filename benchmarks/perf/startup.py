"""The CPU seconds of `ramify --help` and `import agent`, compared with `mini --help` (mini-swe-agent) and a Python that
does nothing.

    python -m benchmarks.perf.startup

All are interleaved in one run; the first round, which writes byte code, does not count. Goals in seconds apply to the
quickest round, since other load on the machine slows the others down.
"""

from __future__ import annotations

import os
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from random import Random

from benchmarks.perf.script import machine
from benchmarks.perf.table import Row, at_most, less, markdown
from benchmarks.perf.timing import Sample, Way, interleave
from benchmarks.perf.venvs import MINI_SWE_AGENT, interpreter

N = 15
HELP_S, IMPORT_S, FACTOR = 0.4, 0.1, 2.0
"""The goals: the most seconds for `ramify --help` and `import agent`, and how many times as long mini's help takes."""


def main() -> None:
    """Read the command line, print the table."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=N, metavar="N", help="rounds")
    parser.add_argument("--mini", default="", metavar="DIR", help=f"an environment with {MINI_SWE_AGENT}")
    given = parser.parse_args()
    before = os.getloadavg()[0]
    ways = {name: _way(command) for name, command in _commands(given.mini).items()}
    print(markdown(_findings(interleave(ways, given.n, Random(0)))))
    print(f"\n{machine()}; load {before:.1f} before, {os.getloadavg()[0]:.1f} after")


def cpu_seconds(command: Sequence[str | Path]) -> float:
    """The CPU seconds of a command and its children, user and system together.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    with process.stderr as stream:
        stderr = stream.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, list(command), stderr=stderr)
    return usage.ru_utime + usage.ru_stime


def _commands(mini: str) -> dict[str, Sequence[str | Path]]:
    python = sys.executable
    return {
        "help": (Path(python).parent / "ramify", "--help"),
        "import": (python, "-c", "import agent"),
        "python": (python, "-c", ""),
        "mini": (interpreter(MINI_SWE_AGENT, mini).parent / "mini", "--help"),
    }


def _way(command: Sequence[str | Path]) -> Way:
    return lambda: cpu_seconds(command)


def _findings(taken: dict[str, Sample]) -> list[Row]:
    shown, n = taken["help"], len(taken["help"].seconds)
    return [
        at_most("`ramify --help`", str(shown), n, shown.least, HELP_S, " s"),
        at_most("`import agent`", str(taken["import"]), n, taken["import"].least, IMPORT_S, " s", str(taken["python"])),
        less(f"`ramify --help` beside `mini --help` ({MINI_SWE_AGENT})", shown, taken["mini"], FACTOR),
    ]


if __name__ == "__main__":
    main()
