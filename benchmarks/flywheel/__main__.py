"""The whole loop. Each step leaves its result in its own folder, so that an interrupted run can be resumed."""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random

from agent.config import given
from agent.learning import training
from agent.learning.export.dataset import runs_in
from agent.policy.edit.counts import counted
from agent.run.run import Run
from benchmarks.data.synthetic.making import Recipe
from benchmarks.data.synthetic.splitting import Splitting
from benchmarks.data.synthetic.writing import synthesize
from benchmarks.flywheel import idioms
from benchmarks.flywheel.leaks import apart, leaks
from benchmarks.flywheel.sharing import GENERATED, ended, options, serve, trained
from benchmarks.self_training import scores
from benchmarks.self_training.exporting import export
from benchmarks.self_training.playing import Conditions, flags_of, play


def main(argv: Sequence[str] | None = None) -> int:
    """Print a table for each held-out split. Returns 1 if held-out code was trained on."""
    args = _options().parse_args(argv)
    out: Path = args.out.absolute()
    bugs = _bugs(args, out)
    conditions = Conditions(args.max_tried, args.width, args.workers, "", tuple(args.config))
    flags = flags_of("mutate", out)
    batch = play(bugs / "train.jsonl", out / "collected", flags, conditions)
    runs = apart(runs_in([batch]), bugs)
    with ExitStack() as held:
        counted(held.enter_context(Run.read(path)) for path in runs).write(out / "counts.json")
    export(runs, "edit", out / "rows")
    leaked = leaks(out / "rows", bugs)
    print(f"leaks: {len(leaked)}", *leaked[:5], sep="\n  ")
    learned = {
        "uniform": flags_of("uniform", out),
        "mutate": flags,
        "counts": [*flags_of("counts", out / "counts.json"), "policy.by=counts"],
    }
    with ExitStack() as held:
        if args.train_python:
            learned["model"] = _served(args, out, held)
        _compare(bugs, out, learned, conditions)
    return int(bool(leaked))


def _bugs(args: argparse.Namespace, out: Path) -> Path:
    """The bugs, made from the repositories that are named, else from generated functions."""
    bugs, begun = out / "bugs", out / "begun"
    if bugs.exists():
        return bugs
    shutil.rmtree(begun, ignore_errors=True)
    repositories, held_out = list(args.repository), set(args.hold_out)
    if not repositories:
        repositories = list(idioms.write(begun / "idioms", args.functions, Random(args.seed)))
        held_out = set(GENERATED)
    recipe = Recipe(
        args.test,
        tuple(args.requirement),
        args.bugs,
        args.a_function,
        args.seed,
        sandbox=given(args.config, {}).sandbox,
    )
    synthesize(repositories, recipe, Splitting(frozenset(held_out), args.lines), begun / "bugs", tell=print)
    return (begun / "bugs").rename(bugs)


def _served(args: argparse.Namespace, out: Path, held: ExitStack) -> list[str]:
    wanted = training.Wanted(
        max_steps=args.steps, epochs=1000.0, batch=16, rate=1e-3, warmup_steps=20, max_length=1024, prompt_loss=True,
        cpu=args.cpu, log_steps=20,
    )  # fmt: skip
    server = trained(args, out, wanted)
    serve(args, server, out, held)
    return [*flags_of("model", out, server.served, f"{server.root}/v1"), "policy.by=model"]


def _compare(bugs: Path, out: Path, learned: Mapping[str, Sequence[str]], conditions: Conditions) -> None:
    facts = {}
    for split in ("lines", "repositories"):
        source = bugs / f"{split}.jsonl"
        if not source.exists():
            continue
        played = {
            name: scores.read(play(source, out / split / name, flags, conditions)) for name, flags in learned.items()
        }
        for part in _parts(source, split):
            results = {
                name: {bug: result for bug, result in by_bug.items() if bug in part[1]}
                for name, by_bug in played.items()
            }
            print(f"\n{part[0]}\n{scores.table(results, 'uniform')}", end="")
            facts[part[0]] = {
                name: [[result.solved, result.tried] for result in by_bug.values()] for name, by_bug in results.items()
            }
    (out / "scores.json").write_text(json.dumps(facts) + "\n", encoding="utf-8")


def _parts(source: Path, split: str) -> list[tuple[str, set[str]]]:
    """The parts of a split with their bugs: the whole split, but each held-out generated repository by itself."""
    rows = [json.loads(line) for line in source.read_text(encoding="utf-8").splitlines()]
    names = sorted({row["repo"] for row in rows})
    if split == "repositories" and set(names) <= set(GENERATED):
        return [(name, {row["instance_id"] for row in rows if row["repo"] == name}) for name in names]
    return [(split, {row["instance_id"] for row in rows})]


def _options() -> argparse.ArgumentParser:
    parser = options("python -m benchmarks.flywheel", __doc__, width=200, workers=2, steps=2000)
    parser.add_argument("--requirement", action="append", default=[])
    parser.add_argument("--bugs", type=int, default=400, help="the most bugs of each repository")
    parser.add_argument("--max-tried", type=int, default=200, help="the most states that a search may try")
    return parser


if __name__ == "__main__":
    ended(main)
