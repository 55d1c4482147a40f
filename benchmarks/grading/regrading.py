"""Derives every verdict again from the evidence that grading kept, without a sandbox or a network."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from agent.errors import UsageError
from agent.measure.logs import parse
from benchmarks.data.harness_logs import LOG, read_log
from benchmarks.data.jsonl_ledger import read_lines
from benchmarks.grading.evidence import CHAIN, Bundle, Forged, graded_elsewhere, line_digest, read_bundle
from benchmarks.grading.verdicts import Verdict, Verdicts, decide, patch_digest

_NAME = re.compile(r"[^./][^/]*/[0-9]+")


@dataclass(frozen=True, slots=True)
class Regraded:
    """The result for one bundle, or for a verdict without a bundle."""

    bundle: str
    """The folder of the bundle, `INSTANCE/N`, or the id of an instance without one."""
    verdict: Verdict | None
    """The verdict that follows from the evidence; None: the evidence cannot be trusted."""
    fault: str
    """What is wrong; empty if the evidence and the verdict agree."""


def regrade_all(folder: Path, verdicts: Verdicts) -> list[Regraded]:
    """Return the results for every bundle in a folder of evidence: first in the order of the chain, then for bundles
    that the chain does not have, then for verdicts without evidence. `verdicts` are those that reports use.

    Raises:
        UsageError: there is no evidence in the folder.
    """
    if not (folder / CHAIN).exists():
        raise UsageError(
            f"{folder} holds no evidence; `ramify bench grade` writes it for patches that it has not graded before"
        )
    lines = list(read_lines(folder / CHAIN, torn=True))
    chained = list(_chained(folder, lines, verdicts))
    return [*chained, *_strays(folder, lines), *_unproven(chained, verdicts)]


def _chained(folder: Path, lines: Iterable[Mapping[str, Any]], verdicts: Verdicts) -> Iterator[Regraded]:
    previous = ""
    for line in lines:
        name = str(line.get("bundle"))
        fault = (
            "" if line.get("previous") == previous else "the chain is broken before it: a line was changed or removed"
        )
        previous = line_digest(line)
        yield Regraded(name, None, fault) if fault else _one(folder, name, str(line.get("sha256")), verdicts)


def _one(folder: Path, name: str, sha256: str, verdicts: Verdicts) -> Regraded:
    if not _NAME.fullmatch(name):
        return Regraded(name, None, "the chain has a name that no bundle of this folder can have")
    try:
        bundle = read_bundle(folder / name, sha256)
    except Forged as error:
        return Regraded(name, None, str(error))
    by = graded_elsewhere(bundle.facts)
    if _misread(bundle):
        return Regraded(name, None, f"{by}the report does not follow from the log of the eval script")
    again = regrade(bundle)
    reported = verdicts.get((bundle.instance_id, patch_digest(bundle.patch)))
    if not _same(again, bundle.verdict):
        fault = f"{by}the verdict {bundle.verdict.status} does not follow from it: {again.summary} does"
        return Regraded(name, again, fault)
    if reported is not None and not _same(again, reported):
        return Regraded(name, again, f"reports use another verdict: {reported.summary}")
    return Regraded(name, again, "")


def regrade(bundle: Bundle) -> Verdict:
    """The verdict that follows from a bundle."""
    verdict = decide(bundle.instance_id, bundle.patch, bundle.hidden, bundle.finding)
    return replace(verdict, mode=bundle.verdict.mode, seconds=bundle.verdict.seconds)


def _misread(bundle: Bundle) -> bool:
    """Whether the log of an eval script differs from the report that the verdict is based on."""
    report, parser = bundle.finding.report, bundle.hidden.log_parser
    if report is None or not (report.valid and report.adapter == LOG and parser):
        return False
    again = read_log(bundle.finding.log.decode(errors="replace"), partial(parse, parser))
    return (again.valid, again.outcomes) != (True, report.outcomes)


def _same(one: Verdict, other: Verdict) -> bool:
    """Whether two verdicts are equal except for the mode and how long grading took."""
    return one == replace(other, mode=one.mode, seconds=one.seconds)


def _strays(folder: Path, lines: Iterable[Mapping[str, Any]]) -> Iterator[Regraded]:
    """Bundles that the chain does not have: grading was killed before it wrote the line, or somebody added them."""
    known = {line.get("bundle") for line in lines}
    for path in sorted(folder.glob("*/*/bundle.json")):
        if (name := str(path.parent.relative_to(folder))) not in known:
            yield Regraded(name, None, "the chain does not have it; remove its folder if grading was killed")


def _unproven(results: Iterable[Regraded], verdicts: Verdicts) -> Iterator[Regraded]:
    """Verdicts without a bundle. An instance with an unreadable bundle is left out: that bundle is already reported,
    and could be for any of the instance's verdicts."""
    proven = {(r.verdict.instance_id, r.verdict.patch_sha256) for r in results if r.verdict is not None}
    unread = {r.bundle.rpartition("/")[0] for r in results if r.verdict is None}
    for (instance_id, patch), verdict in sorted(verdicts.items()):
        if (instance_id, patch) not in proven and instance_id not in unread:
            yield Regraded(instance_id, None, f"there is no evidence of its verdict {verdict.status}")
