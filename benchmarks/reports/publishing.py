"""Publishes a whole batch as a dataset in the format of the Hugging Face Hub: Parquet tables and a card.

Invariants: as in `agent.learning.export`, the same batch gives the same bytes, and secrets are removed. The grader's
verdicts are included, but never a hidden test or a reference patch.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

from agent.counting import counted
from agent.files import write_atomically
from agent.learning.export import Row
from agent.learning.export.parquet import require, tabulate
from agent.learning.export.scrubbing import clean, scrubbed
from agent.learning.export.trajectories import Trajectories
from agent.learning.export.writing import as_line, new_folder
from agent.run.paths import runs_in
from agent.run.run import Run
from benchmarks.batch.batch import Attempt, Identity, read_identity
from benchmarks.grading.verdicts import Verdicts, patch_digest
from benchmarks.reports.report import read_graded, report

SPLIT = "train"
"""The Hub's name for the split of rows that are not divided."""
_TEXTS = {
    "instances": "a row for each instance: how its attempt ended, the patch, what was spent, and any verdict on it",
    "rollouts": "a row for each rollout, also failed ones: messages, tools, the patch and the value of each state",
}


def publish(batch: Path, out: Path) -> dict[str, int]:
    """Write the dataset of a batch to a new folder. Returns the number of rows of each table.

    Raises:
        UsageError: the folder is not a batch, `out` is not empty, or Parquet cannot be written.
        agent.errors.JournalError: a run cannot be read.
    """
    require()
    identity, (attempts, verdicts) = read_identity(batch), read_graded(batch)
    tables: dict[str, Callable[[], Iterable[Row]]] = {
        "instances": lambda: _instances(identity, attempts, verdicts),
        "rollouts": lambda: _rollouts(batch, attempts),
    }
    folder = new_folder(out)
    rows = {name: _write(folder, name, make()) for name, make in tables.items()}
    rows = {name: count for name, count in rows.items() if count}
    text = "\n".join([*_front(rows), *_body(identity, attempts, verdicts, rows)]) + "\n"
    write_atomically(folder / "README.md", text.encode())
    return rows


def _instances(identity: Identity, attempts: list[Attempt], verdicts: Verdicts) -> Iterator[Row]:
    by_id = {attempt.instance_id: attempt for attempt in attempts}
    for line in report(attempts, verdicts):
        attempt = by_id[line.instance_id]
        verdict = verdicts.get((line.instance_id, patch_digest(attempt.patch)))
        row = {
            **asdict(line),
            "status": attempt.facts.get("status", ""),
            "verdict": verdict.status if verdict else None,
            "model_name_or_path": identity.model,
            "model_patch": attempt.patch.decode(errors="replace"),
            "usage": asdict(attempt.usage),
        }
        yield {key: clean(value) if key != "instance_id" else value for key, value in row.items()}


def _rollouts(batch: Path, attempts: list[Attempt]) -> Iterator[Row]:
    """The rollouts of finished runs, by instance id."""
    finished = {attempt.instance_id for attempt in attempts if attempt.finished}
    has_runs = any((batch / name / "journal.jsonl").is_file() for name in finished)
    for path in runs_in([batch]) if has_runs else ():
        if path.name in finished:
            with Run.read(path) as run:
                rows = Trajectories()(run) if run.started is not None and len(run.tree) else iter(())
                yield from (scrubbed(row)[0] for row in rows if "skipped" not in row)


def _write(folder: Path, name: str, rows: Iterable[Row]) -> int:
    """Write the table and return its row count; with no rows, no file is written."""
    draft, target = folder / f".{name}.jsonl", folder / "data" / f"{name}.parquet"
    try:
        with draft.open("wb") as file:
            count = sum(bool(file.write(as_line(row))) for row in rows)
        if count:
            target.parent.mkdir(exist_ok=True)
            tabulate(draft, target)
    finally:
        draft.unlink()
    return count


def _front(rows: dict[str, int]) -> Iterator[str]:
    yield from ("---", "tags:", "- ramify", "- swe-bench", "configs:")
    for name in rows:
        yield from (f"- config_name: {name}", "  data_files:", f"  - split: {SPLIT}", f"    path: data/{name}.parquet")
    yield from ("---", "")


def _body(identity: Identity, attempts: list[Attempt], verdicts: Verdicts, rows: dict[str, int]) -> Iterator[str]:
    lines = report(attempts, verdicts)
    graded = [line for line in lines if line.resolved is not None]
    yield f"# {identity.model}: {counted(len(lines), 'instance')}, {identity.mode} tests"
    yield ""
    if identity.mode == "revealed":
        yield "The solver saw the failing tests, as on a red build: not to be compared with results on hidden tests."
    resolved = f"{sum(bool(line.resolved) for line in graded)} of {counted(len(graded), 'graded instance')} resolved"
    yield f"{resolved}; {len(lines) - len(graded)} are not graded. Made by `ramify bench export`."
    yield ""
    yield from (f"- `{name}` ({counted(count, 'row')}): {_TEXTS[name]}" for name, count in rows.items())
    yield from (
        "",
        "```python",
        f'datasets.load_dataset(PATH, "{next(iter(rows), "instances")}", split="{SPLIT}")',
        "```",
    )
    facts = {"source": Path(identity.source).name, "settings": identity.settings, "seed": identity.seed}
    yield from ("", "| batch | |", "|---|---|", *(f"| {key} | {json.dumps(value)} |" for key, value in facts.items()))
    yield ""
    yield "What is nested is JSON, which `datasets` 5.2 reads as such. `provenance` of a rollout says which run, node,"
    yield "policy and licence it comes from; patches and messages hold code under the licences of the repositories."
