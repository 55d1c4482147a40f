"""Tasks with two bugs each, from pairs of bugs that `ramify bench synthesize` made.

    python -m benchmarks.perf.combined BUGS.jsonl FOLDER [--count 20]
    ramify bench run FOLDER/tasks.jsonl --reveal-tests --model mutate --recipe mcgs --out DIR

The bugs of a pair are in different functions of one repository and break different tests, and one edit of `mutate`
repairs each. So a search can find both repairs in different branches.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.data import clones
from benchmarks.data.synthetic.making import bundled, statement

Row = Mapping[str, Any]


def pairs(rows: Sequence[Row], rng: Random) -> Iterator[tuple[Row, Row]]:
    """Pairs of bugs that suit each other, in random order. No bug is in two pairs."""
    waiting = [row for row in rows if row["repairable"]]
    rng.shuffle(waiting)
    while waiting:
        one = waiting.pop()
        if (other := next((row for row in waiting if _apart(one, row)), None)) is not None:
            waiting.remove(other)
            yield one, other


def _apart(one: Row, other: Row) -> bool:
    (place, failing), (other_place, others_failing) = (
        ((row["path"], row["function"]), {*row["FAIL_TO_PASS"]}) for row in (one, other)
    )
    return one["repo"] == other["repo"] and place != other_place and not failing & others_failing


def combined(one: Row, other: Row, bundles: Path, out: Path) -> Row | None:
    """The row of a task with both bugs, whose bundle is written below `out`; None if their changes overlap. `bundles`
    is the folder to which the rows' bundles are relative."""
    name = f"{one['instance_id']}-and-{other['operator']}-{other['instance_id'].rsplit('-', 1)[-1]}"
    bundle = f"bundles/{name}.bundle"
    fixes = [row["patch"].encode("utf-8", "surrogateescape") for row in (one, other)]
    with TemporaryDirectory() as place:
        folder = Path(place) / "clone"
        clones.clone(bundles / one["bundle"], "", folder)
        try:
            clones.git("apply", "--reverse", "-", cwd=folder, stdin=fixes[1])
            commit = bundled(folder, out / bundle)
            for fix in fixes:
                clones.apply(folder, fix)
        except clones.GitRefused:
            return None
        patch = clones.git("diff", "--binary", cwd=folder).decode("utf-8", "surrogateescape")
    failing = sorted({*one["FAIL_TO_PASS"], *other["FAIL_TO_PASS"]})
    return {
        **{key: one[key] for key in ("repo", "test_patch", "test_cmd", "requirements", "license")},
        "instance_id": name,
        "base_commit": commit,
        "bundle": bundle,
        "problem_statement": statement(failing),
        "patch": patch,
        "FAIL_TO_PASS": failing,
        "PASS_TO_PASS": sorted({*one["PASS_TO_PASS"]} & {*other["PASS_TO_PASS"]}),
    }


def main() -> None:
    """Write `tasks.jsonl` and its bundles to a new folder."""
    parser = ArgumentParser(prog="python -m benchmarks.perf.combined", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("bugs", type=Path, help="a file of `ramify bench synthesize`")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=20, metavar="N", help="the most tasks; default: 20")
    given = parser.parse_args()
    rows = [json.loads(line) for line in given.bugs.read_text(encoding="utf-8").splitlines()]
    made = (combined(one, other, given.bugs.parent, given.folder) for one, other in pairs(rows, Random(0)))
    tasks = list(islice(filter(None, made), given.count))
    given.folder.mkdir(parents=True, exist_ok=True)
    (given.folder / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks), encoding="utf-8")
    print(f"{len(tasks)} tasks in {given.folder / 'tasks.jsonl'}")


if __name__ == "__main__":
    main()
