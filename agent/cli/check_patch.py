"""`ramify check-patch`: checks whether a patch changes only source code."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from agent.errors import UsageError


def check_patch(
    patch: Annotated[str, typer.Argument(metavar="PATCH|-", help="A git patch; - is stdin.")],
    repo: Annotated[Path, typer.Option(metavar="DIR", help="The repository it is for; it is only read.")] = Path(),
    base: Annotated[str, typer.Option(metavar="COMMIT", help="The commit to apply it to.")] = "HEAD",
    allow: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE",
            help="A kind of change to allow; repeatable: ci, git, lock, tools, symlink, mode, submodule, big, name, "
            "hidden.",
        ),
    ] = None,
    max_bytes: Annotated[
        int | None, typer.Option(metavar="N", help="Refuse files larger than this. Default: 1000000.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")] = False,
) -> None:
    """Refuse a patch that changes more than source code. It refuses changes to CI pipelines, git's own files, lock
    files and file modes, symlinks that lead out of the repository, and more (see --allow). Exit code 1 if the patch
    is refused, 2 if the input is not a git patch."""
    from agent.cli.ci.patch_check import BIG_BYTES, RULES, check

    if unknown := set(allow or ()) - set(RULES):
        raise UsageError(f"--allow {min(unknown)}: there is no such rule; the rules are {', '.join(RULES)}")
    allowed = frozenset(rule for rule in RULES if rule in (allow or ()))
    big_bytes = BIG_BYTES if max_bytes is None else max_bytes
    given = _patch(patch)
    findings = check(repo, given, base=base, allow=allowed, big_bytes=big_bytes)
    if as_json:
        sys.stdout.write(json.dumps({"ok": not findings, "findings": [asdict(finding) for finding in findings]}) + "\n")
    else:
        sys.stdout.writelines(f"{finding}\n" for finding in findings)
        if not given.strip():
            sys.stderr.write("the patch is empty: there is nothing to check\n")
    raise typer.Exit(1 if findings else 0)


def _patch(source: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read the patch {source}: {error.strerror}") from error
