"""`ramify bench grade`: run the hidden tests on predictions."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.options import Config, Image, SandboxKind
from agent.errors import UsageError
from benchmarks.cli.options import SOURCES, Json, Workers, say

if TYPE_CHECKING:
    from benchmarks.data.predictions import Prediction
    from benchmarks.data.sources import Source
    from benchmarks.grading.evidence import Archive
    from benchmarks.grading.harness.agreement import Agreement
    from benchmarks.grading.harness.official import Harness
    from benchmarks.grading.verdicts import Verdict, VerdictCache
    from sandboxes import Provider


Candidates = Annotated[
    bool,
    typer.Option(
        "--candidates", help="For batches with several rollouts: also grade the patches that were not chosen."
    ),
]
SecondGrader = Annotated[str | None, typer.Option(metavar="swebench", help="A second grader to compare with ours.")]
Interpreter = Annotated[str, typer.Option(metavar="PYTHON", help="An interpreter with swebench 4 or 5.")]


def grade(
    target: Annotated[Path, typer.Argument(metavar="DIR|PREDS", help="A batch, or a file of predictions.")],
    source: Annotated[
        str, typer.Option(metavar="SOURCE", help=f"{SOURCES} Default: the one that the batch was run on.")
    ] = "",
    workers: Workers = 1,
    sandbox: SandboxKind = None,
    image: Image = None,
    config: Config = None,
    as_json: Json = False,
    candidates: Candidates = False,
    harness: SecondGrader = None,
    harness_python: Interpreter = sys.executable,
) -> None:
    """Run the hidden tests on each predicted patch. Each gets a fresh clone and a sandbox of its own."""
    from agent.config import given
    from benchmarks.batch.batch import refresh_predictions
    from benchmarks.batch.sandbox_choice import grading_place
    from benchmarks.data.predictions import read_predictions
    from benchmarks.reports import selectors
    from benchmarks.reports.report import evidence_folder

    if (target / "batch.json").exists():
        refresh_predictions(target)
    source = source or _source_of(target)
    preds = target / "preds.json" if target.is_dir() else target
    predictions = read_predictions(preds)
    others = list(selectors.candidates(target)) if candidates else []
    settings = given(config or (), {"sandbox.kind": sandbox, "sandbox.image": image})
    second = None if harness is None else _second(harness, harness_python)
    with _kept(preds) as (cache, archive), grading_place(source, settings) as (opened, provider):
        verdicts = _graded([*predictions, *others], opened, provider, cache, archive, workers)
        compared = None if second is None else _compare(second, opened, predictions, verdicts, preds, workers)
        if archive.head:
            say(f"evidence: {evidence_folder(preds)}, head {archive.head}")
    _print_verdicts(verdicts[: len(predictions)], compared, as_json=as_json)
    if target.is_dir():
        say(f"next: ramify bench report {target}")
    raise typer.Exit(1 if any(v.status == "error" for v in verdicts) else 0)


def _source_of(target: Path) -> str:
    """Return the name of a batch's source. Raises UsageError if the source no longer exists."""
    from benchmarks.batch.batch import read_identity
    from benchmarks.data.sources import parted

    if not target.exists():
        raise UsageError(f"there is no {target}: name a batch, or a file of predictions")
    if not (target / "batch.json").exists():
        raise UsageError(f"{target} is not a batch, so name its instances with --source")
    source = read_identity(target).source
    if Path(source).is_absolute() and not Path(parted(source)[0]).exists():
        raise UsageError(f"{target} was run on {source}, which no longer exists: name its place with --source")
    return source


@contextmanager
def _kept(preds: Path) -> Iterator[tuple[VerdictCache, Archive]]:
    """Yield the verdicts and evidence kept beside the predictions, locked against other processes that grade them."""
    from benchmarks.grading.evidence import Archive
    from benchmarks.grading.verdicts import VerdictCache
    from benchmarks.reports.report import evidence_folder, verdicts_file

    with closing(VerdictCache(verdicts_file(preds))) as cache, closing(Archive(evidence_folder(preds))) as archive:
        yield cache, archive


def _graded(
    predictions: list[Prediction],
    source: Source,
    provider: Provider,
    cache: VerdictCache,
    archive: Archive,
    workers: int,
) -> list[Verdict]:
    """Grade the predictions and return our verdicts; each is printed as soon as it is known."""
    from benchmarks.grading import grading

    verdicts = []
    for verdict in grading.grade_all(
        predictions,
        {instance.id: instance for instance in source.instances()},
        cache,
        lambda instance, patch: grading.grade(instance, patch, source, provider, archive),
        workers=workers,
    ):
        say(_verdict_line(verdict))
        verdicts.append(verdict)
    return verdicts


def _second(name: str, python: str) -> Harness:
    """Find the second grader, before anything is run."""
    from benchmarks.grading.harness.official import find

    if name != "swebench":
        raise UsageError(f"unknown --harness {name!r}: give swebench")
    return find(python)


def _compare(
    harness: Harness, source: Source, predictions: list[Prediction], ours: list[Verdict], preds: Path, workers: int
) -> Agreement:
    """Let the second grader grade the same predictions, and compare. Its files are kept beside the predictions."""
    from benchmarks.grading.harness import official
    from benchmarks.grading.harness.agreement import agreement

    folder = preds.with_suffix(f".{harness.name}")
    say(f"{harness.name} grades the same predictions; its output is in {folder / 'harness.log'}")
    ids = {prediction.instance_id for prediction in predictions}
    instances = [instance for instance in source.instances() if instance.id in ids]
    theirs = official.run(harness, instances, predictions, folder.absolute(), workers=workers)
    for verdict in theirs:
        say(f"{harness.name}: {_verdict_line(verdict)}")
    return agreement(ours, theirs, harness.name)


def _print_verdicts(verdicts: list[Verdict], compared: Agreement | None, *, as_json: bool) -> None:
    from collections import Counter
    from dataclasses import asdict

    counts = Counter(verdict.status for verdict in verdicts)
    if as_json:
        facts = {"counts": counts, "verdicts": [asdict(v) for v in verdicts]}
        agreement = {} if compared is None else {"agreement": compared.to_json()}
        sys.stdout.write(json.dumps(facts | agreement) + "\n")
    else:
        statuses = ", ".join(f"{count} {status}" for status, count in counts.most_common())
        modes = "/".join(sorted({verdict.mode for verdict in verdicts}))
        sys.stdout.write(f"{modes} tests: {statuses}\n" if verdicts else "there are no predictions to grade yet\n")
        sys.stdout.writelines(f"{line}\n" for line in (compared.lines() if compared else ()))


def _verdict_line(verdict: Verdict) -> str:
    why = f" ({verdict.reason})" if verdict.reason else ""
    return f"{verdict.mode} {verdict.instance_id}: {verdict.status}{why}"
