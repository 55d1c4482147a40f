"""Figures: what policies that were learned from trees need on held-out bugs, compared with the uniform order.

    python -m benchmarks.flywheel.figures --out DIR --help

Bugs of repositories that are not held out are searched with `mutate`; counts and, optionally, a model are learned from
these trees. All orders are then compared on the same held-out bugs: those for which one of the enumerated edits
restores the file. Each step leaves its result in a folder, so that an interrupted run can be resumed."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from agent.build.sandboxes import make_provider
from agent.config import given
from agent.learning import serving, training
from agent.models.openai import OpenAIModel
from agent.models.scoring import ScoringModel
from agent.policy.edit.counts import Counts, count_edits
from agent.policy.edit.ranking import ByCounts, ByModel, MutateOrder, Ranking, Together, Uniform
from agent.run.paths import runs_in
from agent.run.run import Run
from agent.settings import Settings
from benchmarks.data.jsonl_ledger import Ledger, read_lines
from benchmarks.data.synthetic.making import Material, Recipe
from benchmarks.data.synthetic.splitting import NAMES, Splitting
from benchmarks.flywheel import idioms, ranked_edits, swept, warmup
from benchmarks.flywheel.leaks import HELD_OUT, apart, copied, leaks
from benchmarks.flywheel.pieces import edited
from benchmarks.flywheel.ranked_edits import Remembered, Tried
from benchmarks.flywheel.sharing import agreed, end_with_parent, ended
from benchmarks.self_training import scores
from benchmarks.self_training.exporting import export
from benchmarks.self_training.scores import Played
from sandboxes import Provider

TINY = {"width": 128, "layers": 3, "vocabulary": 1024, "positions": 2048}
"""The model that is trained from scratch: about 700,000 weights."""
GENERATED = ("combined", "unseen")
"""The generated repositories that are held out."""
COLLECTED = ("repository", "hold_out", "test", "functions", "a_function", "lines", "width", "workers", "mutants",
             "held_out_mutants", "cpu_s", "seed", "config")  # fmt: skip
"""The options that determine bugs and trees. The rows of plain source depend on those in `PLAIN` as well."""
PLAIN = ("source", "warm_up", "rows_a_function", "plain_functions")


def main(argv: Sequence[str] | None = None) -> int:
    """Print a table for each held-out split. Returns 1 if held-out code was trained on."""
    args = options("python -m benchmarks.flywheel.figures", __doc__).parse_args(argv)
    out: Path = args.out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    agreed(out / "collected.json", args, COLLECTED)
    collect(args, out)
    runs = apart(runs_in([out / "trees"]), out / "bugs")
    count(runs, out)
    manifest = export(runs, "edit", out / "rows", near=None)
    base = _base(args, out)
    leaked = [*leaks(out / "rows", out / "bugs"), *copied(out / "plain", out / "bugs")]
    print(f"{len(runs)} trees, {manifest.get('rows', manifest)} rows; leaks: {len(leaked)}", *leaked[:5], sep="\n  ")
    with ExitStack() as held:
        _compare(out, _learned(args, out, base, held))
    return int(bool(leaked))


def collect(args: argparse.Namespace, out: Path, printed: bool = False) -> None:
    """Make the bugs of each repository, try their edits, write the trees to learn from, and all rows below `bugs`. With
    `printed`, the trees have what the failing tests printed, and `blind` has the same trees without it."""
    repositories, held_out = list(args.repository), set(args.hold_out)
    if not repositories:
        if not (out / "idioms").exists():
            idioms.write(out / "begun", args.functions, Random(args.seed))
            (out / "begun").rename(out / "idioms")
        repositories = [out / "idioms" / name for name in ("seen", *GENERATED)]
        held_out = set(GENERATED)
    pool = ProcessPoolExecutor(args.workers, get_context("spawn"), end_with_parent)
    with TemporaryDirectory() as place, pool:
        materials = [Material.read(each, Path(place) / "repositories") for each in repositories]
        splits = Splitting(frozenset(held_out), args.lines).of({each.name: each.functions() for each in materials})
        sandbox = given(args.config, {}).sandbox
        parts = []
        for material in materials:
            count = args.held_out_mutants if material.name in held_out else args.mutants
            recipe = Recipe(args.test, (), count, args.a_function, args.seed, timeout_s=args.cpu_s, sandbox=sandbox)
            for number in range(args.workers):
                own = slice(number, None, args.workers)
                parts.append(pool.submit(_Part(material, recipe, splits, args.width, printed, out, own).collect))
        for part in parts:
            print(part.result(), end="", flush=True)
    for name in NAMES:
        rows = [dict(bug.row) for bug in tried_bugs(out, name)]
        (out / "bugs").mkdir(exist_ok=True)
        (out / "bugs" / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of the mutants of a repository."""

    material: Material
    recipe: Recipe
    splits: Mapping[tuple[str, str, str], str]
    width: int
    printed: bool
    out: Path
    part: slice

    def collect(self) -> str:
        """Collect the part. Returns a summary; empty if that was done before."""
        done = self.out / "tried" / self.material.name / str(self.part.start)
        if done.exists():
            return ""
        began = time.monotonic(), time.process_time()
        with TemporaryDirectory() as place, TemporaryDirectory() as begun, ExitStack() as held:
            provider = make_provider(Settings(sandbox=self.recipe.sandbox), Path(place) / "store")
            held.callback(provider.close)
            bugs = list(swept.broken(self.material, self.recipe, provider, self.splits, self.part))
            enumerated = [(bug, self._enumerated(bug)) for bug in bugs]
            within = [(bug, tried) for bug, tried in enumerated if _restores(bug, tried)]
            summary = "".join(self._split(name, within, provider, Path(begun)) for name in NAMES)
            shutil.copytree(begun, done)
        summary += f"{self.material.name}: {len(bugs)} bugs, {len(within)} within reach"
        times = f"{time.monotonic() - began[0]:.0f} s, {time.process_time() - began[1]:.0f} s of its own CPU"
        return f"{summary}, {times}\n"

    def _enumerated(self, bug: swept.Broken) -> Tried:
        return ranked_edits.enumerated(self.material, self.recipe, bug, self.width, self.printed)

    def _split(self, split: str, within: Sequence[tuple[swept.Broken, Tried]], provider: Provider, folder: Path) -> str:
        mine = [(bug, tried) for bug, tried in within if bug.row["split"] == split]
        if not mine:
            return ""
        edits = [(bug, tried.edits) for bug, tried in mine]
        mends = swept.mending(self.material, self.recipe, provider, edits, stop=split == "train")
        tested = [(bug, replace(tried, mends=flags)) for (bug, tried), flags in zip(mine, mends, strict=True)]
        done = [(bug, tried) for bug, tried in tested if any(tried.mends)]
        ranked_edits.write(folder / f"{split}.jsonl", [tried for _, tried in done])
        for bug, tried in done if split == "train" else ():
            for trees, each in (("trees", tried), *([("blind", tried.blind)] if self.printed else [])):
                tree = self.out / trees / tried.row["instance_id"]
                shutil.rmtree(tree, ignore_errors=True)
                ranked_edits.grown(each, self.material, self.recipe, bug, tree)
        unfit = sum(flag is None for flags in mends for flag in flags)
        edits_tried = f"{sum(map(len, mends))} edits, {unfit} of them not tried"
        return f"{self.material.name} {split}: {len(done)} bugs of {len(mine)}, {edits_tried}\n"


def _restores(bug: swept.Broken, tried: Tried) -> bool:
    """Whether one of the edits restores the file."""
    own = [edits for edits in tried.edits if {edit.path for edit in edits} == {bug.row["path"]}]
    return any(edited(bug.wrong, edits) == bug.right for edits in own)


def tried_bugs(out: Path, split: str) -> Iterator[Tried]:
    """The bugs of a split, with the results of all their edits."""
    for path in sorted((out / "tried").glob(f"*/*/{split}.jsonl")):
        yield from ranked_edits.read(path)


def _base(args: argparse.Namespace, out: Path) -> Path | None:
    """Train a model on plain source; None if that is not requested."""
    if not (args.warm_up and args.train_python):
        return None
    plain_rows(args, out)
    settings = replace(settings_by(args), max_steps=args.warm_up_steps, prompt_loss=True, group_by_length=True)
    training.train(training.plan("sft", [out / "plain"], settings), out / "base", python=args.train_python)
    return out / "base" / "model"


def plain_rows(args: argparse.Namespace, out: Path) -> None:
    """Write the rows from plain source to `plain`, unless they are there."""
    agreed(out / "read.json", args, PLAIN)
    if not (out / "plain" / "manifest.json").exists():
        shutil.rmtree(out / "plain", ignore_errors=True)
        if args.repository:
            apart = [repository for repository in args.repository if repository.name in args.hold_out]
            folders = args.source or [repository for repository in args.repository if repository not in apart]
        else:
            apart = [out / "idioms" / name for name in GENERATED]
            folders = args.source or [_plain(args, out)]
        held = [row["code"] for name in HELD_OUT for row in read_lines(out / "bugs" / f"{name}.jsonl")]
        limits = {"most": args.warm_up, "a_function": args.rows_a_function}
        made = warmup.write(out / "plain", folders, apart, held, **limits, workers=args.workers, seed=args.seed)
        print(made, flush=True)


def _plain(args: argparse.Namespace, out: Path) -> Path:
    """Write generated functions without tests: plain source is plentiful, and a model that sees little memorises it."""
    shutil.rmtree(out / "untested", ignore_errors=True)
    return idioms.plain(out / "untested", args.plain_functions, Random(f"plain/{args.seed}"))


def settings_by(args: argparse.Namespace) -> training.TrainingSettings:
    """The settings that all trainings share."""
    return training.TrainingSettings(
        epochs=1000.0, batch=args.batch, rate=args.rate, warmup_steps=20, max_length=768, cpu=args.cpu, log_steps=20,
        tiny=TINY | {"width": args.model_width},
    )  # fmt: skip


def count(runs: Sequence[Path], out: Path) -> None:
    """Count the edits of these runs, for `untrained`."""
    with ExitStack() as held:
        count_edits(held.enter_context(Run.read(path)) for path in runs).write(out / "counts.json")


def untrained(out: Path) -> dict[str, Ranking]:
    """The rankings that need no model, by name."""
    mutate, counts = MutateOrder(), ByCounts(Counts.read(out / "counts.json"))
    return {"uniform": Uniform(), "mutate": mutate, "counts": counts, "counts+mutate": Together((counts, mutate))}


def _learned(args: argparse.Namespace, out: Path, base: Path | None, held: ExitStack) -> dict[str, Ranking]:
    """The rankings to compare, by name."""
    learned = untrained(out)
    if args.train_python:
        settings = replace(
            settings_by(args),
            max_steps=args.steps,
            max_length=TINY["positions"],  # rows are few: none is cut
            prompt_loss=not base,  # a base knows what code looks like
        )
        if base:
            settings = replace(settings, model=str(base), rate=args.rate / 4)
        model = _asked(args, _trained(args, out, settings), out, held)
        learned |= {
            "model": model,
            "model+counts": Together((model, learned["counts"])),
            "model+mutate": Together((model, learned["mutate"])),
            "model+counts+mutate": Together((model, learned["counts"], learned["mutate"])),
        }
    if args.train_python and base:
        before = serving.Server(str(base), "before", port=args.port + 1, cpu=args.cpu)
        learned["model before the trees"] = _asked(args, before, out, held)
    return learned


def _trained(args: argparse.Namespace, out: Path, settings: training.TrainingSettings) -> serving.Server:
    """The server of a model that is trained on the rows in `out`."""
    training.train(training.plan("sft", [out / "rows"], settings), out / "training", python=args.train_python)
    return serving.Server(str(out / "training" / "model"), "edit-model", port=args.port, cpu=args.cpu)


def _asked(args: argparse.Namespace, server: serving.Server, out: Path, held: ExitStack) -> Ranking:
    """A ranking by a model that is served until `held` ends. Its answers are kept beside the model, as another training
    gives other answers."""
    held.enter_context(serving.running(server, str(args.serve_python), log=out / f"{server.served}.log"))
    os.environ.setdefault("OPENAI_API_KEY", "none")  # our own server asks for no key, the client for any
    model = OpenAIModel(f"openai/{server.served}", base_url=f"{server.root}/v1")
    held.callback(model.close)
    kept = held.enter_context(closing(Ledger(Path(server.model).parent / "asked.jsonl")))
    return Remembered(ByModel(ScoringModel(model)), kept)


def _compare(out: Path, learned: Mapping[str, Ranking]) -> None:
    facts = {}
    for name, bugs in _splits(out).items():
        results = {ranking: played(f"{name}: {ranking}", bugs, by) for ranking, by in learned.items()}
        print("", name, *(scores.table(results, base) for base in ("uniform", "counts")), sep="\n", flush=True)
        facts[name] = {ranking: told(by_bug) for ranking, by_bug in results.items()}
    (out / "scores.json").write_text(json.dumps(facts) + "\n", encoding="utf-8")


def played(what: str, bugs: Sequence[Tried], by: Ranking) -> dict[str, Played]:
    """The result on each bug; a line about the ranking is printed on stderr."""
    began = time.monotonic()
    results = {str(bug.row["instance_id"]): bug.played(by) for bug in bugs}
    print(f"{what}, {len(bugs)} bugs, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return results


def told(results: Mapping[str, Played]) -> dict[str, list[float]]:
    """The results as plain data."""
    return {bug: [result.solved, result.tried] for bug, result in results.items()}


def _splits(out: Path) -> dict[str, list[Tried]]:
    """The held-out splits with their bugs; each held-out generated repository is a split by itself."""
    splits = {name: list(tried_bugs(out, name)) for name in ("lines", "repositories")}
    unseen = splits["repositories"]
    if unseen and {bug.row["repo"] for bug in unseen} <= set(GENERATED):
        del splits["repositories"]
        splits |= {name: [bug for bug in unseen if bug.row["repo"] == name] for name in GENERATED}
    return {name: bugs for name, bugs in splits.items() if bugs}


def options(prog: str, description: str | None) -> argparse.ArgumentParser:
    """The options, with defaults for generated functions."""
    parser = argparse.ArgumentParser(prog=prog, description=description)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--repository", type=Path, action="append", default=[], help="git; default: generated functions"
    )
    parser.add_argument("--hold-out", action="append", default=[], help="name of a repository that is not trained on")
    parser.add_argument("--test", default="python3 -m pytest -q")
    parser.add_argument("--functions", type=int, default=600, help="number of generated functions to train on")
    parser.add_argument("--a-function", type=int, default=6, help="the most mutants of one function that are tried")
    parser.add_argument("--lines", type=int, default=0, help="percentage of functions that are held out")
    parser.add_argument("--width", type=int, default=60, help="number of edits of a bug that are ranked")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--steps", type=int, default=150, help="training steps")
    parser.add_argument(
        "--train-python", type=Path, help="interpreter with the packages for training; without it no model is trained"
    )
    parser.add_argument("--serve-python", type=Path, default=Path("python3"), help="interpreter with vLLM")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-c", "--config", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--mutants", type=int, default=3600, help="the most for each repository that is trained on")
    parser.add_argument("--held-out-mutants", type=int, default=330, help="the most for each held-out repository")
    parser.add_argument("--batch", type=int, default=8, help="rows per step")
    parser.add_argument("--rate", type=float, default=3e-3, help="learning rate; a quarter of it after a warm-up")
    parser.add_argument("--model-width", type=int, default=TINY["width"], help="a multiple of 32")
    parser.add_argument("--warm-up", type=int, default=24_000, metavar="ROWS", help="of plain source, learned first")
    parser.add_argument("--warm-up-steps", type=int, default=6000, help="training steps on plain source")
    parser.add_argument("--rows-a-function", type=int, default=24, help="the most rows per function of plain source")
    parser.add_argument("--plain-functions", type=int, default=6000, help="generated functions without tests")
    parser.add_argument("--source", type=Path, action="append", default=[], metavar="DIR",
                        help="plain source; default: the repositories that are trained on, or generated")  # fmt: skip
    parser.add_argument("--cpu-s", type=float, default=0.25, help="CPU seconds for the tests on one version")
    return parser


if __name__ == "__main__":
    ended(main)
