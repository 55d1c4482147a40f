"""`ramify bench regrade`: every verdict once more, from the evidence alone."""

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

__all__ = ["regrade"]


def regrade(
    target: Annotated[
        Path, typer.Argument(metavar="DIR|PREDS", help="A graded batch, a graded file, or a folder of evidence.")
    ],
    head: Annotated[
        str, typer.Option(metavar="SHA256", help="The head that grading named; its beginning will do.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Check verdicts against the evidence, without a sandbox: exit code 0 if all follow from it, 1 if not."""
    from benchmarks.grading.evidence import CHAIN, chain_head
    from benchmarks.grading.regrading import regrade_all
    from benchmarks.grading.verdicts import read_verdicts
    from benchmarks.reports.report import evidence_folder, verdicts_file

    preds = target / "preds.json" if target.is_dir() else target
    folder = target if (target / CHAIN).exists() else evidence_folder(preds)
    found = regrade_all(folder, read_verdicts(verdicts_file(preds)))
    ends = chain_head(folder)
    fault = (
        "" if ends.startswith(head) else f"the head is {ends} and not {head}: something was added, changed or removed"
    )
    bad = [each for each in found if each.fault]
    if as_json:
        rows = [asdict(each) for each in found]
        sys.stdout.write(json.dumps({"head": ends, "fault": fault, "holding": len(found) - len(bad), "bundles": rows}))
        sys.stdout.write("\n")
    else:
        sys.stdout.writelines(f"{_line(each)}\n" for each in found)
        sys.stdout.write(f"{len(found) - len(bad)} of {len(found)} verdicts follow from their evidence; head {ends}\n")
    if fault:
        say(fault)
    raise typer.Exit(1 if bad or fault else 0)


def _line(each: Regraded) -> str:
    """For a terminal: what a bundle says of itself was written by whoever made it."""
    status = each.verdict.status if each.verdict is not None else "unknown"
    mark, said = ("BAD", each.fault) if each.fault else ("ok ", status)
    return f"{mark} {one_line(each.bundle)}: {one_line(said)}"
