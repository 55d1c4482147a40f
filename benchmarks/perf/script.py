"""The command line and the output that all scripts share."""

from __future__ import annotations

import os
import platform
import signal
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from types import FrameType

from benchmarks.perf.bench import Bench, say
from benchmarks.perf.repositories import REPOSITORIES
from benchmarks.perf.table import Row, markdown
from sandboxes import SandboxError

Options = Callable[[ArgumentParser], None]
"""Adds a script's own options."""
Rows = Callable[[Bench, Namespace], Iterator[Row]]
"""Yields a script's findings."""


def common(parser: ArgumentParser) -> None:
    """Add the options of all scripts."""
    parser.add_argument("-n", type=int, default=0, metavar="N", help="rounds; default: each script's own")
    parser.add_argument(
        "--repositories", default="small,medium,large,large-late", metavar="NAMES", help=f"of {', '.join(REPOSITORIES)}"
    )
    parser.add_argument("--sandbox", default="docker", choices=["docker", "namespace"], help="the sandbox on our side")
    parser.add_argument("--cold", action="store_true", help="run our side's tests in new processes only")
    parser.add_argument("--seed", type=int, default=0, help="the seed for the order")


def main(description: str | None, rows: Rows, options: Options | None = None) -> None:
    """Run a script: read the command line, and print the findings as a table."""
    parser = ArgumentParser(description=description)
    common(parser)
    if options:
        options(parser)
    report([rows], parser.parse_args())


def report(scripts: list[Rows], given: Namespace) -> None:
    """Print the findings of some scripts as one table, with a description of the machine. After an interruption, the
    findings so far are printed."""
    signal.signal(signal.SIGTERM, _terminated)
    before = os.getloadavg()[0]
    found: list[Row] = []
    try:
        with Bench.open(given.sandbox, seed=given.seed, cold=given.cold) as bench:
            for rows in scripts:
                for row in rows(bench, given):
                    say(" | ".join(row.cells()))
                    found.append(row)
    except SandboxError as error:
        sys.exit(f"{error}")
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        if found:
            print(markdown(found))
            print(f"\n{machine()}; load {before:.1f} before, {os.getloadavg()[0]:.1f} after")


def machine() -> str:
    """A description of this machine."""
    return f"{platform.system()} {platform.release()}, {os.cpu_count()} cores, Python {platform.python_version()}"


def _terminated(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)
