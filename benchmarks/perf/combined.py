"""Measures whether it pays to fuse branches: searches for the repairs of two bugs at once, by a simulated developer.

    ramify bench synthesize REPOSITORY --out BUGS --lines 0
    python -m benchmarks.perf.combined BUGS/train.jsonl... --out DIR [--seeds 0,1,2] [--finds 0.3]

A task has two bugs that `ramify bench synthesize` made, in different functions of one repository and found by different
tests, whose repairs are one edit each. The developer (`benchmarks.perf.developer`) replaces a model: a line of work
repairs each bug with probability `--finds`. The recipe `mcgs` is compared with itself without fusion: by the same
seeds, with four lines of work and the failing tests known. A batch in DIR is resumed.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.batch.batch import read_attempts
from benchmarks.data import clones
from benchmarks.data.sources import open_source
from benchmarks.data.synthetic.making import bundled, statement
from benchmarks.perf.answering import serving
from benchmarks.perf.developer import Developer
from benchmarks.perf.efforts_sim import Ran, cells
from benchmarks.perf.second_round import ramify
from benchmarks.perf.table import line

ARMS = {"mcgs": (), "without fusion": ("search.name=mcts", "search.c=0.1", "search.alpha=0.25")}
"""Settings in addition to those of the recipe."""
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
    """Make the tasks and the runs that are missing, and print the table."""
    given = _given()
    source = given.out / "tasks.jsonl"
    if not source.exists():
        tasks = list(chain.from_iterable(_tasks(bugs, given) for bugs in given.bugs))
        source.write_text("".join(json.dumps(task) + "\n" for task in tasks), encoding="utf-8")
    developer = Developer(open_source(str(source), given.out / "source").instances(), given.finds)
    with serving(developer) as url:
        runs = {arm: [ran for seed in given.seeds.split(",") for ran in _runs(given, arm, seed, url)] for arm in ARMS}
    _, plain = runs.values()
    for arm, ran in runs.items():
        print(line(arm, *cells(ran, plain if ran is not plain else ())))


def _tasks(bugs: Path, given: Namespace) -> Iterator[Row]:
    rows = [json.loads(line) for line in bugs.read_text(encoding="utf-8").splitlines()]
    made = (combined(one, other, bugs.parent, given.out) for one, other in pairs(rows, Random(0)))
    return islice(filter(None, made), given.count)


def _runs(given: Namespace, arm: str, seed: str, url: str) -> list[Ran]:
    """Fill a batch and return its runs."""
    out = given.out / f"{arm}-{seed}"
    settings = (f"model.base_url={url}", "model.stream=false", *ARMS[arm])
    flags = ["--reveal-tests", "--model", "openai/developer", "--recipe", "mcgs", "--rollouts", "4", "--seed", seed]
    flags += ["--sandbox", "namespace", "--workers", str(given.workers)]
    flags += [word for setting in settings for word in ("-c", setting)]
    ramify("run", str(given.out / "tasks.jsonl"), "--out", str(out), *flags)
    attempts = sorted(read_attempts(out).items())
    return [
        Ran(arm, given.finds, 0.0, task, int(seed), facts["status"] == "solved", facts["model_calls"],
            facts["measurements"], facts["seconds"])
        for task, facts in ((task, attempt.facts) for task, attempt in attempts)
    ]  # fmt: skip


def _given() -> Namespace:
    parser = ArgumentParser(prog="python -m benchmarks.perf.combined", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("bugs", type=Path, nargs="+", help="files of `ramify bench synthesize`")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where the batches are kept")
    parser.add_argument("--count", type=int, default=20, metavar="N", help="the most tasks of each file; default: 20")
    parser.add_argument("--finds", type=float, default=0.3, metavar="P", help="that a line repairs a bug")
    parser.add_argument("--seeds", default="0,1,2", metavar="NUMBERS")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="tasks at the same time")
    given = parser.parse_args()
    given.out = given.out.absolute()
    given.out.mkdir(parents=True, exist_ok=True)
    return given


if __name__ == "__main__":
    main()
