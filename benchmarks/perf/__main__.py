"""Runs all scripts and prints one table. See `python -m benchmarks.perf --help`."""

from __future__ import annotations

from argparse import ArgumentParser

from benchmarks.perf import bytecode, candidate, execute, fork, latency, node, state_size, workers
from benchmarks.perf.script import common, report

SCRIPTS = (execute, fork, latency, node, candidate, workers, state_size, bytecode)


def main() -> None:
    parser = ArgumentParser(prog="python -m benchmarks.perf", description="Everything, and one table in Markdown.")
    common(parser)
    for script in (fork, latency, workers, bytecode):
        script.options(parser)
    report([script.rows for script in SCRIPTS], parser.parse_args())


if __name__ == "__main__":
    main()
