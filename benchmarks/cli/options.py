"""Options and output that the commands of `ramify bench` share."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from agent.errors import UsageError
from agent.untrusted import escaped

SOURCES = (
    "Instances: a .jsonl, .json, .parquet or .arrow file of SWE-bench, SWE-Gym, SWE-smith, R2E-Gym, SWE-rebench, "
    "SWE-bench-Live, SWE-bench Pro or Multi-SWE-bench rows; a folder of such files, with an instances.jsonl and its "
    "bundles, or of QuixBugs, RefactorBench or Harbor tasks; or owner/name, a dataset on the Hugging Face Hub. "
    "SOURCE:PART selects one split, or one level of RefactorBench."
)
SourceName = Annotated[str, typer.Argument(metavar="SOURCE", help=SOURCES)]
Ids = Annotated[
    list[str] | None,
    typer.Option(
        "--ids", metavar="ID", help="Ids of the instances to use: a,b,c, or @FILE with one id on each line; repeatable."
    ),
]
Filter = Annotated[
    str, typer.Option("--filter", metavar="REGEX", help="Only instances whose id matches this regular expression.")
]
Slice = Annotated[str, typer.Option("--slice", metavar="A:B", help="Only this part of the selected instances.")]
Shuffle = Annotated[
    bool, typer.Option("--shuffle", help="Shuffle the instances before --slice; the order depends only on --seed.")
]
Workers = Annotated[int, typer.Option("-w", "--workers", metavar="N", min=1, help="Instances at the same time.")]
Executor = Annotated[str, typer.Option(metavar="local|ray", help="Where instances run.")]
RayAddress = Annotated[
    str, typer.Option(metavar="HOST:PORT", help="The Ray cluster. Default: the one of this machine.")
]
RayResources = Annotated[
    str,
    typer.Option(
        metavar="NAME=N,...", help="Ray resources for each instance, such as CPU=2,memory=8e9,docker=1. Default: CPU=1."
    ),
]
RayEnv = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME", help="An environment variable to pass to the workers, such as an API key; repeatable."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]


def split(ids: list[str] | None) -> tuple[str, ...]:
    """Return the ids of a repeatable option. Each value is one or more ids, or a file with an id on each line.

    Raises:
        UsageError: a file cannot be read, or names no instance (no ids at all would select every instance).
    """
    return tuple(name for item in ids or () for name in (_listed(item) if item[:1] == "@" else item.split(",")) if name)


def _listed(item: str) -> list[str]:
    try:
        names = Path(item[1:]).read_text(encoding="utf-8").split()
    except (OSError, ValueError) as error:
        raise UsageError(f"--ids {item} cannot be read: {error}") from error
    if not names:
        raise UsageError(f"--ids {item} names no instance")
    return names


def say(line: str) -> None:
    """Print a line on stderr, with control characters escaped: parts of it may be untrusted text."""
    sys.stderr.write("\n".join(map(escaped, line.split("\n"))) + "\n")
