"""`ramify diagnose`: finds the step at which a failed rollout went wrong."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.runs import LAST, named
from agent.cli.show import read_run
from agent.errors import UsageError

if TYPE_CHECKING:
    from agent.analysis.diagnosis import Diagnosis
    from agent.analysis.diagnosis.divergence import Moment


def diagnose(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="RUN|FILE",
            callback=named,
            show_default=False,
            help="A run (its directory, its name, or `last`, the most recently changed run of this checkout), or a "
            "trajectory of mini-swe-agent, SWE-agent or OpenHands.",
        ),
    ] = LAST,
    other: Annotated[
        Path | None,
        typer.Argument(metavar="OTHER", help="Another run of the same task: show where the two first differ instead."),
    ] = None,
    node: Annotated[
        int | None,
        typer.Option(
            "--state",
            "--node",
            metavar="N",
            help="The last state of the rollout. Default: that of the best failed rollout.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Find the step at which a failed rollout went wrong. The output also shows the steps that depend on it, and how
    to continue from just before it.

    In the output, > marks the step, and | marks the steps that depend on it. With OTHER, the command prints where
    two rollouts first differ in their plan, their actions, what they observed, and the state that they reached."""
    if other is not None:
        _compare(source, other, node, as_json)
        return
    diagnosis = _of_file(source, node) if source.is_file() else _of_run(source, node)
    if as_json:
        sys.stdout.write(json.dumps(diagnosis.as_json()) + "\n")
        return
    from agent.analysis.report.diagnosis import diagnosis_text

    sys.stdout.write(diagnosis_text(diagnosis))


def _compare(one: Path, other: Path, node: int | None, as_json: bool) -> None:
    from agent.analysis.diagnosis.divergence import compare
    from agent.analysis.report.diagnosis import parted

    if node is not None:
        raise UsageError("--state is for one run; for two runs, the rollouts with the best states are compared")
    parting = compare(_moments(one), _moments(other))
    sys.stdout.write(json.dumps(parting.as_json()) + "\n" if as_json else parted(parting))


def _moments(source: Path) -> list[Moment]:
    from agent.analysis.diagnosis.divergence import moments, moments_of
    from agent.analysis.trajectories.reading import read_trajectory

    if source.is_file():
        return moments_of(read_trajectory(source).action_records)
    with read_run(source) as run:
        return moments(run)


def _of_run(directory: Path, node: int | None) -> Diagnosis:
    from agent.analysis.diagnosis import diagnose

    with read_run(directory) as run:
        return diagnose(run, node)


def _of_file(path: Path, node: int | None) -> Diagnosis:
    from agent.analysis.diagnosis import diagnose_deeds
    from agent.analysis.trajectories.reading import read_trajectory

    if node is not None:
        raise UsageError(f"--state is for runs of Ramify; {path} is a trajectory, which has no states")
    trajectory = read_trajectory(path)
    return diagnose_deeds(path, trajectory.action_records, f"({trajectory.format}): {trajectory.ended}")
