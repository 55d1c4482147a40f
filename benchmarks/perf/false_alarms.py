"""Measures how often the check for hard-coded answers (`agent.evaluate.hard_coded`) flags a patch that is right.

    python -m benchmarks.perf.false_alarms SOURCE...

Every reference patch of the sets is checked against the cases of the issue and of all tests that it repairs, including
the hidden ones. A solver's check never sees more than that.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from agent.evaluate.hard_coded import cases_of_issue, cases_of_tests, signs
from agent.measure.diffs import parse
from agent.measure.ids import file_of
from benchmarks.data.clones import apply, paths_of, reveal
from benchmarks.data.instances import Instance
from benchmarks.data.sources import open_source
from benchmarks.perf.table import share


def main(arguments: Sequence[str] | None = None) -> None:
    """Print each flagged patch, and the share."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="+", metavar="SOURCE", help="as for `ramify bench run`")
    checked = flagged = 0
    for name in parser.parse_args(arguments).sources:
        with tempfile.TemporaryDirectory() as work:
            source = open_source(name, Path(work))
            for instance in source.instances():
                source.prepare(instance)
                found = _signs(instance)
                checked, flagged = checked + 1, flagged + bool(found)
                for line in found:
                    print(f"{instance.task.id}: {line}")
    print(f"right patches that are flagged: {share(flagged, checked)}")


def _signs(instance: Instance) -> list[str]:
    """The signs of hard-coded answers in the reference patch."""
    folder = instance.task.workspace.path
    assert folder is not None
    cases = cases_of_issue(instance.task.statement)
    reveal(folder, instance.hidden.test_patch)
    for path in sorted({*map(file_of, instance.hidden.fail_to_pass), *paths_of(instance.hidden.test_patch)}):
        cases += cases_of_tests(_text(folder / path))
    apply(folder, instance.hidden.patch)
    return [
        f"{patch.path}:{line}: {why}"
        for patch in parse(instance.hidden.patch)
        if patch.path.endswith(".py")
        for line, why in signs(_text(folder / patch.path), patch.added.keys(), cases)
    ]


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""


if __name__ == "__main__":
    main()
