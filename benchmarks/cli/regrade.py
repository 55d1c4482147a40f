"""`ramify bench regrade`: check every verdict again, from the evidence alone."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.untrusted import one_line
from benchmarks.cli.options import Json, say

if TYPE_CHECKING:
    from benchmarks.grading.regrading import Regraded


def regrade(
    target: Annotated[
        Path, typer.Argument(metavar="DIR|PREDS", help="A graded batch, a graded file, or a folder of evidence.")
    ],
    head: Annotated[
        str,
        typer.Option(
            metavar="SHA256", help="The evidence hash (`head`) that `ramify bench grade` printed, or a prefix of it."
        ),
    ] = "",
    as_json: Json = False,
) -> None:
    """Check verdicts against the evidence. No sandbox is needed; exit code 0 if all follow from it, 1 if not."""
    from benchmarks.grading.evidence import CHAIN, chain_head
    from benchmarks.grading.regrading import regrade_all
    from benchmarks.grading.verdicts import read_verdicts
    from benchmarks.reports.report import evidence_folder, verdicts_file

    preds = target / "preds.json" if target.is_dir() else target
    folder = target if (target / CHAIN).exists() else evidence_folder(preds)
    results = regrade_all(folder, read_verdicts(verdicts_file(preds)))
    actual = chain_head(folder)
    changed = f"the evidence hash is {actual}, not {head}: evidence was added, changed or removed"
    fault = "" if actual.startswith(head) else changed
    bad = sum(bool(result.fault) for result in results)
    if as_json:
        rows = [asdict(result) for result in results]
        facts = {"head": actual, "fault": fault, "holding": len(results) - bad, "bundles": rows}
        sys.stdout.write(json.dumps(facts) + "\n")
    else:
        sys.stdout.writelines(f"{_line(result)}\n" for result in results)
        sys.stdout.write(f"{len(results) - bad} of {len(results)} verdicts follow from their evidence; head {actual}\n")
    if fault:
        say(fault)
    raise typer.Exit(1 if bad or fault else 0)


def _line(result: Regraded) -> str:
    """A line for the terminal, with the untrusted text of the bundle escaped."""
    status = result.verdict.status if result.verdict is not None else "unknown"
    mark, text = ("BAD", result.fault) if result.fault else ("ok ", status)
    return f"{mark} {one_line(result.bundle)}: {one_line(text)}"
