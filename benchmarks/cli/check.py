"""`ramify bench check`: find out whether the instances of a source can be graded here."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.options import Config, Image, SandboxKind
from agent.counting import counted
from agent.untrusted import escaped
from benchmarks.cli.options import Filter, Ids, Json, Slice, SourceName, Workers, split

if TYPE_CHECKING:
    from benchmarks.grading.validation import Check


def check(
    source: SourceName,
    workers: Workers = 1,
    ids: Ids = None,
    pattern: Filter = "",
    part: Slice = "",
    sandbox: SandboxKind = None,
    image: Image = None,
    config: Config = None,
    as_json: Json = False,
    evidence: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep the evidence, for `ramify bench regrade`.")
    ] = None,
) -> None:
    """Check that the instances work here. The reference solution has to resolve them, and an empty patch must not."""
    import threading
    from concurrent.futures import ThreadPoolExecutor

    from agent.config import given
    from benchmarks.batch.sandbox_choice import grading_place
    from benchmarks.data.instances import select
    from benchmarks.grading import validation
    from benchmarks.grading.evidence import Archive
    from sandboxes.docker.pulls import until

    settings = given(config or (), {"sandbox.kind": sandbox, "sandbox.image": image})
    with ExitStack() as stack:
        archive = stack.enter_context(closing(Archive(evidence))) if evidence else None
        opened, provider = stack.enter_context(grading_place(source, settings))
        pool, stopping = stack.enter_context(ThreadPoolExecutor(workers)), threading.Event()
        stack.callback(stopping.set)
        chosen = select(opened.instances(), ids=split(ids), pattern=pattern, part=part)
        checked = until(stopping)(lambda instance: validation.check(instance, opened, provider, archive))
        checks = list(_show(pool.map(checked, chosen), as_json=as_json))
    sys.stdout.write(_summary(checks, as_json=as_json) + "\n")
    raise typer.Exit(0 if all(check.valid for check in checks) else 1)


def _summary(checks: Sequence[Check], *, as_json: bool) -> str:
    valid = sum(check.valid for check in checks)
    if not as_json:
        return f"{valid} of {counted(len(checks), 'instance is', 'instances are')} valid"
    return json.dumps({"valid": valid, "instances": [{**asdict(check), "valid": check.valid} for check in checks]})


def _show(checks: Iterable[Check], *, as_json: bool) -> Iterator[Check]:
    """Yield the checks; unless `as_json`, print each on a line as soon as it is made."""
    for check in checks:
        if not as_json:
            reference, base = _outcomes(check)
            outcomes = f"reference {reference}; base {base}" if base else reference
            mark = "ok " if check.valid else "BAD"
            sys.stdout.write(f"{mark} {escaped(f'{check.instance_id}: {outcomes}')}\n")
            sys.stdout.flush()
        yield check


def _outcomes(check: Check) -> tuple[str, str]:
    """The outcomes of the reference solution and of the base state. The second is empty if both failed for the same
    reason."""
    if check.gold and check.gold == check.empty:
        return check.gold, ""
    reference = "not in the set" if check.gold is None else check.gold or "resolved"
    return reference, check.empty or "fails as it should"
