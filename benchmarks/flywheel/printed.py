"""Measures what trees add: compares models trained on the same searches with and without the tests' output.

    python -m benchmarks.flywheel.printed --out DIR --cpu --train-python PYTHON

The source of the functions (`arbitrary.py`) does not show what is right. A model is trained on plain source. Three
copies are then trained for the same number of steps: on more plain source, on the edits that were right in searches,
and on these edits with what the tests printed. All rank the edits of the same bugs of a repository that none was
trained on. Intervals are over bugs, of the mean over trainings with different seeds. Each step leaves its result in a
folder, so that an interrupted run can be resumed."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from random import Random
from statistics import mean
from typing import Any, Self

from agent.errors import ModelError
from agent.files import write_atomically
from agent.learning import training
from agent.models import Completion, Message
from agent.policy.edit.ranking import ByModel, Together
from agent.run.paths import runs_in
from benchmarks.data.jsonl_ledger import Ledger
from benchmarks.flywheel import arbitrary, figures
from benchmarks.flywheel.leaks import apart, copied, leaks
from benchmarks.flywheel.ranked_edits import Remembered, Tried
from benchmarks.flywheel.sharing import agreed, end_with_parent, ended
from benchmarks.self_training import scores
from benchmarks.self_training.exporting import export
from benchmarks.self_training.scores import Played

BEFORE = "before the trees"
MORE, BLIND, PRINTED = "more plain source", "trees", "trees with what tests printed"
JOINED = f"{PRINTED}+counts+mutate"
ROWS: Mapping[str, str] = {PRINTED: "rows", BLIND: "rows-blind", MORE: "plain"}
"""The folder of the rows that each model is trained further on."""
Results = dict[str, Played]


def main(argv: Sequence[str] | None = None) -> int:
    """Print a table. Returns 1 if held-out code was trained on."""
    args = _options().parse_args(argv)
    out: Path = args.out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    agreed(out / "collected.json", args, [*figures.COLLECTED[2:], "held_out_functions"])
    args.repository, args.hold_out, args.source = _repositories(args, out), [arbitrary.APART], [out / "untested"]
    figures.collect(args, out, printed=True)
    leaked = _exported(out)
    figures.plain_rows(args, out)
    leaked += copied(out / "plain", out / "bugs")
    print(f"leaks: {len(leaked)}", *leaked[:5], sep="\n  ", flush=True)
    results = {name: [figures.played(name, _bugs(out), by)] for name, by in figures.untrained(out).items()}
    for name, found in _learned(args, out) if args.train_python else ():
        results.setdefault(name, []).append(found)
    _print(results, out)
    return int(bool(leaked))


def _repositories(args: argparse.Namespace, out: Path) -> list[Path]:
    made = [out / "functions" / name for name in (arbitrary.SEEN, arbitrary.APART)]
    if not (out / "functions").exists():
        for begun in (out / "begun", out / "untested"):
            shutil.rmtree(begun, ignore_errors=True)
        arbitrary.plain(out / "untested", args.plain_functions, Random(f"plain/{args.seed}"))
        arbitrary.write(out / "begun", args.functions, args.held_out_functions, Random(args.seed))
        (out / "begun").rename(out / "functions")
    return made


def _exported(out: Path) -> list[str]:
    """Count the edits of the trees that may be learned from, and write their rows, with and without what tests
    printed. Returns the leaks."""
    runs = apart(runs_in([out / "trees"]), out / "bugs")
    figures.count(runs, out)
    leaked = list[str]()
    for name, some in ((PRINTED, runs), (BLIND, [out / "blind" / path.name for path in runs])):
        manifest = export(some, "edit", out / ROWS[name], near=None)
        print(f"{name}: {len(some)} trees, {manifest['rows']} rows", flush=True)
        leaked += leaks(out / ROWS[name], out / "bugs")
    return leaked


def _learned(args: argparse.Namespace, out: Path) -> Iterator[tuple[str, Results]]:
    """The results of each model. The model before the trees is the same for all seeds."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # each worker has a core
    settings = replace(figures.settings_by(args), max_steps=args.warm_up_steps, prompt_loss=True, group_by_length=True)
    base = _Learned(args.train_python, out, BEFORE, "plain", out / "base", settings)
    yield from base.results().items()
    after = replace(settings, model=str(base.model), max_steps=args.steps, rate=args.rate / 2, prompt_loss=False)
    learned = [
        _Learned(args.train_python, out, name, rows, out / f"seed-{seed}" / rows, replace(after, seed=seed))
        for seed in range(args.seeds)
        for name, rows in ROWS.items()
    ]
    with ProcessPoolExecutor(args.workers, get_context("spawn"), end_with_parent) as pool:
        for results in pool.map(_Learned.results, learned):
            yield from results.items()


@dataclass(frozen=True, slots=True)
class _Learned:
    """A model and how it is trained."""

    python: Path
    out: Path
    name: str
    rows: str
    folder: Path
    settings: training.TrainingSettings

    @property
    def model(self) -> Path:
        return self.folder / "model"

    def results(self) -> dict[str, Results]:
        """Train the model and ask it about all bugs; results that exist already are reused."""
        kept = self.folder / "results.json"
        if not kept.exists():
            training.train(training.plan("sft", [self.out / self.rows], self.settings), self.folder, python=self.python)
            asked = {name: figures.told(results) for name, results in self._asked()}
            write_atomically(kept, json.dumps(asked).encode())
        found = {name: _read(facts) for name, facts in json.loads(kept.read_bytes()).items()}
        line = ", ".join(f"{name} {scores.needed(list(results.values())):.2f}" for name, results in found.items())
        print(f"{self.folder.relative_to(self.out)}: {line}", flush=True)
        return found

    def _asked(self) -> Iterator[tuple[str, Results]]:
        bugs = _bugs(self.out) if self.name == PRINTED else [bug.blind for bug in _bugs(self.out)]
        with Scoring(self.python, self.model) as scoring, closing(Ledger(self.folder / "asked.jsonl")) as kept:
            by = Remembered(ByModel(scoring), kept)
            yield self.name, figures.played(self.name, bugs, by)
            if self.name == PRINTED:
                others = figures.untrained(self.out)
                yield JOINED, figures.played(JOINED, bugs, Together((by, others["mutate"], others["counts"])))


class Scoring:
    """A model that scores texts, as `agent.models.scoring.ScoringModel` does, in a process that ends with the block."""

    price = None

    def __init__(self, python: Path, model: Path) -> None:
        self.name = model.parent.name
        command = [str(python), str(Path(__file__).with_name("scoring.py")), str(model)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def sampling(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Nothing is drawn."""
        return dict(parameters)

    def complete(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), **sampling: Any
    ) -> Completion:
        """The log-probability of each of `texts`, in order. Raises ModelError if the process has ended."""
        assert self._process.stdin
        assert self._process.stdout
        asked = {"prompt": messages[0]["content"], "texts": list(sampling["texts"])}
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        if not (answer := self._process.stdout.readline()):
            raise ModelError(f"{self.name}: the model cannot be asked; why is on stderr")
        return Completion("", logprobs=tuple(json.loads(answer)))

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def _bugs(out: Path) -> list[Tried]:
    return list(figures.tried_bugs(out, "repositories"))


def _print(results: Mapping[str, Sequence[Results]], out: Path) -> None:
    """Print the means over seeds, compared with several of them, and each seed's own."""
    means = {name: mean_of(each) for name, each in results.items()}
    for base in ("uniform", "counts", BEFORE, MORE, BLIND):
        if base in means:
            print("", scores.table(means, base), sep="\n", flush=True)
    for name, each in results.items():
        if len(each) > 1:
            print(f"{name}:", *(f"{scores.needed(list(found.values())):.2f}" for found in each))
    facts = {name: [figures.told(found) for found in each] for name, each in results.items()}
    (out / "scores.json").write_text(json.dumps(facts) + "\n", encoding="utf-8")


def _read(facts: Mapping[str, Sequence[Any]]) -> Results:
    """The results from `told`."""
    return {bug: Played(solved, tried) for bug, (solved, tried) in facts.items()}


def mean_of(seeds: Sequence[Results]) -> Results:
    """The results with the mean number of states. A bug is solved under every order, or under none."""
    return {bug: Played(seeds[0][bug].solved, mean(results[bug].tried for results in seeds)) for bug in seeds[0]}


def _options() -> argparse.ArgumentParser:
    parser = figures.options("python -m benchmarks.flywheel.printed", __doc__)
    parser.set_defaults(
        functions=200, a_function=4, mutants=800, held_out_mutants=160, plain_functions=1500, warm_up=12_000,
        rows_a_function=8, warm_up_steps=800, steps=1500,
    )  # fmt: skip
    parser.add_argument("--held-out-functions", type=int, default=44)
    parser.add_argument("--seeds", type=int, default=3, help="number of trainings of each model")
    return parser


if __name__ == "__main__":
    ended(main)
