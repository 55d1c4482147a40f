"""`ramify doctor`: reports what this machine and a model server can do, and what to change if they cannot."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from agent.errors import UsageError


def doctor(
    model: Annotated[
        str | None, typer.Option(metavar="openai/NAME", help="Check the server of this model instead.")
    ] = None,
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="The URL of the server, as in model.base_url.")
    ] = None,
) -> None:
    """Show which sandboxes work on this machine. For those that do not, it says what to change."""
    from agent.cli.doctor.model_probe import examine_model
    from agent.cli.doctor.report import examine

    if base_url and model is None:
        raise UsageError(f"--base-url {base_url} needs a model: add --model openai/NAME")
    findings = examine() if model is None else tuple(examine_model(model, base_url))
    for finding in findings:
        sys.stdout.write(f"{'ok  ' if finding.ok else 'no  '}{finding.name:<10} {finding.detail}\n")
        if finding.remedy:
            sys.stdout.write(f"    {'':<10} -> {finding.remedy}\n")
    good = any(f.ok for f in findings if f.is_sandbox) if model is None else findings[0].ok
    raise typer.Exit(0 if good else 6 if model is None else 4)
