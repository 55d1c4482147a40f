"""Trees of a chat model train the chat model: a whole demonstration with a model from nothing.

    python -m benchmarks.flywheel.chat --out DIR --train-python PYTHON --serve-python PYTHON --cpu

A model learns from a teacher how to find, read and edit a function (`chat_world`), but not what is right. It then
learns from its own searches, round by round: `searched` from the ways that solved their task, and the control
`sampled`, by the same number of steps, from all lines of such searches, right or wrong. The single line of each
version is played on functions that none has seen. Each step leaves its result in a folder, so that an interrupted run
can be resumed."""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from agent.errors import UsageError
from agent.learning import serving, training
from agent.run.paths import runs_in
from agent.run.run import Run
from benchmarks.flywheel import chat_model, chat_world
from benchmarks.flywheel.sharing import agreed, ended
from benchmarks.self_training import scores
from benchmarks.self_training.exporting import export
from benchmarks.self_training.playing import Conditions, flags_of, play
from benchmarks.self_training.scores import Played

WORLD = ("demonstrations", "tasks", "held_out", "base_steps", "steps", "rollouts", "seed")
"""The options that determine what the folder holds."""
ARMS = ("searched", "sampled")
MAX_LENGTH = 768


def main(argv: Sequence[str] | None = None) -> int:
    """Print the share of tasks that each version solves."""
    args = _options().parse_args(argv)
    args.out = args.out.absolute()
    args.out.mkdir(parents=True, exist_ok=True)
    agreed(args.out / "world.json", args, WORLD)
    results = _Demonstration(args).results()
    text = table(results)
    (args.out / "table.md").write_text(text, encoding="utf-8")
    print(text, end="")
    return 0


@dataclass(frozen=True, slots=True)
class _Demonstration:
    """The steps, by the options of the command."""

    args: argparse.Namespace

    def base(self) -> Path:
        """The model that the teacher taught."""
        out: Path = self.args.out
        if not (out / "demonstrations" / "manifest.json").exists():
            taught = chat_world.cases("taught", self.args.demonstrations, self.args.seed)
            chat_world.write_demonstrations(out / "demonstrations", taught, Random(self.args.seed))
        if not (out / "random" / "config.json").exists():
            program, rows = Path(chat_model.__file__), out / "demonstrations" / "train.jsonl"
            subprocess.run([self.args.train_python, program, rows, out / "random"], check=True)
        settings = self._settings(out / "random", self.args.base_steps, rate=2e-3)
        return self._trained(out / "demonstrations", settings, out / "base")

    def results(self) -> dict[str, Mapping[str, Played]]:
        """What each version solved of the held-out tasks in a single line, and what the first one solved of those of
        round 1, in a line and in a search."""
        base = self.base()
        with self._served(base, "base") as flags:
            first = self._held_out("base/lines", flags)
            batch = self._batch("round-1", "base/runs", flags, self._search)
        results: dict[str, Mapping[str, Played]] = {
            "single line, tasks of round 1": _first_lines(batch),
            "search, tasks of round 1": scores.read(batch),
            "single line, held out": first,
        }
        for arm in ARMS:
            results |= self._rounds(arm, base, batch)
        return results

    def _rounds(self, arm: str, model: Path, batch: Path) -> dict[str, Mapping[str, Played]]:
        """The single line after each round of an arm; `batch` was played with `model`."""
        results: dict[str, Mapping[str, Played]] = {}
        for number in range(1, self.args.rounds + 1):
            name = f"{arm}-{number}"
            place = self.args.out / name
            rows = self._rows(arm, batch, place / "rows")
            model = self._trained(rows, self._settings(model, self.args.steps), place / "training")
            with self._served(model, name) as flags:
                results[f"after round {number}, {arm}"] = self._held_out(f"{name}/lines", flags)
                if number < self.args.rounds:
                    batch = self._batch(f"round-{number + 1}", f"{name}/runs", flags, self._search)
        return results

    def _rows(self, arm: str, batch: Path, out: Path) -> Path:
        """The solved ways of the searches, or all their lines, as rows.

        Raises:
            UsageError: there are none.
        """
        manifest = export(runs_in([batch]), "sft-masked" if arm == "searched" else "trajectories", out, near=None)
        if not manifest["rows"]:
            raise UsageError(f"{batch} has no rows to learn from: give more --tasks, or more --base-steps")
        if arm == "sampled":
            file = out / "train.jsonl"
            rows = (json.loads(line) for line in file.read_text(encoding="utf-8").splitlines())
            kept = [{key: row[key] for key in ("messages", "tools")} for row in rows]
            file.write_text("".join(json.dumps(row) + "\n" for row in kept), encoding="utf-8")
        return out

    def _settings(self, model: Path, steps: int, rate: float = 1e-3) -> training.TrainingSettings:
        return training.TrainingSettings(
            str(model), max_steps=steps, epochs=1000.0, batch=8, rate=rate, warmup_steps=steps // 10,
            max_length=MAX_LENGTH, cpu=self.args.cpu,
        )  # fmt: skip

    def _trained(self, rows: Path, settings: training.TrainingSettings, out: Path) -> Path:
        training.train(training.plan("sft", [rows], settings, mix_policies=True), out, python=self.args.train_python)
        return out / "model"

    @contextmanager
    def _served(self, model: Path, name: str) -> Iterator[list[str]]:
        """The settings that select the model, which is served while the block lasts."""
        server = serving.Server(
            str(model), name, port=self.args.port, max_model_len=chat_model.POSITIONS, cpu=self.args.cpu
        )
        with serving.running(server, str(self.args.serve_python), log=self.args.out / f"{name}.log"):
            yield flags_of("chat", model, server.served, f"{server.root}/v1")

    def _held_out(self, name: str, flags: list[str]) -> dict[str, Played]:
        return scores.read(self._batch("held-out", name, flags, self._search.once))

    def _batch(self, part: str, name: str, flags: list[str], conditions: Conditions) -> Path:
        out: Path = self.args.out
        tasks = out / "tasks" / part / "tasks.jsonl"
        if not tasks.exists():
            count = self.args.held_out if part == "held-out" else self.args.tasks
            chat_world.write_tasks(tasks.parent, chat_world.cases(part, count, self.args.seed))
        return play(tasks, out / name, flags, conditions)

    @property
    def _search(self) -> Conditions:
        """A search of several lines of work."""
        chat_world.write_prompts(self.args.out / "prompts")
        settings = (
            f"prompts={self.args.out / 'prompts'}", "policy.max_turns=3", "model.body.max_tokens=160",
            "model.temperature=1.0", "measure.baseline_runs=1", *self.args.config,
        )  # fmt: skip
        return Conditions(
            self.args.rollouts + 2, workers=self.args.workers, settings=settings, rollouts=self.args.rollouts
        )


def _first_lines(batch: Path) -> dict[str, Played]:
    """What the first line of each search solved."""
    found: dict[str, Played] = {}
    for path in runs_in([batch]):
        with Run.read(path) as run:
            if rollouts := run.rollouts():
                found[path.name] = Played(run.solved(rollouts[0].leaf), 1)
    return found


def table(results: Mapping[str, Mapping[str, Played]]) -> str:
    """The share of tasks that each version solved, and how much more than the single line of the first model and than
    the control on the same tasks, with 95 % intervals."""
    lines = ["| | tasks | solved | more than the first | more than the control |", "|---|---|---|---|---|"]
    for name, played in results.items():
        first = next(each for each in results.values() if each.keys() & played.keys())
        control = results.get(name.replace(ARMS[0], ARMS[1])) if ARMS[0] in name else None
        cells = [scores.cell(*scores.solved_share(played)), *(_more(than, played) for than in (first, control))]
        lines.append(f"| {name} | {len(played)} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _more(than: Mapping[str, Played] | None, played: Mapping[str, Played]) -> str:
    if than is None or than is played:
        return ""
    better = scores.compare_solved(*scores.common(than, played))
    return scores.cell(better.difference, better.interval)


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.flywheel.chat", description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--train-python", type=Path, required=True, help="interpreter with the packages for training")
    parser.add_argument("--serve-python", type=Path, required=True, help="interpreter with vLLM")
    parser.add_argument("--demonstrations", type=int, default=6000, help="lines of the teacher")
    parser.add_argument("--base-steps", type=int, default=1500, help="training steps on them, of 8 rows")
    parser.add_argument("--tasks", type=int, default=140, help="tasks of each round")
    parser.add_argument("--held-out", type=int, default=100, help="tasks that nothing is learned from")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=150, help="training steps of a round, of 8 rows")
    parser.add_argument("--rollouts", type=int, default=4, help="lines of a search")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-c", "--config", action="append", default=[], metavar="KEY=VALUE")
    return parser


if __name__ == "__main__":
    ended(main)
