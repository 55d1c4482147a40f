"""`ramify bench check`: see that the instances of a source can be graded here."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.untrusted import escaped
from benchmarks.cli.options import Config, Filter, Ids, Image, Json, Sandbox, Slice, SourceName, Workers, split

if TYPE_CHECKING:
    from benchmarks.grading.validation import Check

__all__ = ["check"]


def check(
    source: SourceName,
    workers: Workers = 1,
    ids: Ids = None,
    pattern: Filter = "",
    part: Slice = "",
    sandbox: Sandbox = None,
    image: Image = None,
    config: Config = None,
    as_json: Json = False,
    evidence: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep the evidence, for `ramify bench regrade`.")
    ] = None,
) -> None:
    """Check that the instances work here: the reference solution resolves them, and no patch does not."""
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
        checks = list(_shown(pool.map(checked, chosen), len(chosen), as_json=as_json))
    sys.stdout.write(_in_all(checks, as_json=as_json) + "\n")
    raise typer.Exit(0 if all(each.valid for each in checks) else 1)


def _in_all(checks: Sequence[Check], *, as_json: bool) -> str:
    valid = sum(each.valid for each in checks)
    if not as_json:
        return f"{valid} of {len(checks)} instances hold"
    return json.dumps({"valid": valid, "instances": [{**asdict(each), "valid": each.valid} for each in checks]})


def _shown(found: Iterable[Check], total: int, *, as_json: bool) -> Iterator[Check]:
    """The checks, each shown when it is there: as a row of a table on a terminal, else as a line."""
    if as_json:
        yield from found
    elif sys.stdout.isatty():
        yield from _in_a_table(found, total)
    else:
        for each in found:
            reference, base = _said(each)
            sys.stdout.write(f"{_mark(each)} {escaped(f'{each.instance_id}: reference {reference}; base {base}')}\n")
            sys.stdout.flush()
            yield each


def _in_a_table(found: Iterable[Check], total: int) -> Iterator[Check]:
    from rich.live import Live
    from rich.table import Table
    from rich.text import Text

    table = Table("", "instance", "reference", "base", caption=f"0 of {total}", caption_justify="left")
    with Live(table, vertical_overflow="visible") as live:
        for number, each in enumerate(found, 1):
            style = "green" if each.valid else "red"
            table.add_row(Text(_mark(each), style), *map(Text, (each.instance_id, *_said(each))))
            table.caption = f"{number} of {total}"
            live.refresh()
            yield each


def _mark(each: Check) -> str:
    return "ok " if each.valid else "BAD"


def _said(each: Check) -> tuple[str, str]:
    """Of the reference solution, and of the base state."""
    reference = "not in the set" if each.gold is None else each.gold or "resolved"
    return reference, each.empty or "fails as it should"
