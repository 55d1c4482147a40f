"""`ramify bench keep`: keep skills if a batch resolves more instances with them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from agent.counting import counted


def keep(
    skills: Annotated[Path, typer.Argument(metavar="DIR", help="What `ramify memory skills build` wrote.")],
    without: Annotated[Path, typer.Argument(metavar="WITHOUT", help="A graded batch without the skills.")],
    with_skills: Annotated[
        Path, typer.Argument(metavar="WITH", help="A graded batch of the same instances that was shown the skills.")
    ],
    memory: Annotated[Path, typer.Option("--memory", metavar="FILE", help="The memory that keeps them.")],
) -> None:
    """Load skills into a memory if more held-out instances are resolved with them than without. Batches that share an
    issue with the runs behind the skills are refused. Exit code 1 if the skills are not kept."""
    from agent.learning.memory import Memory
    from agent.learning.memory.skill_files import read
    from benchmarks.cli.compare import as_text
    from benchmarks.reports.skill_trial import skill_trial

    sources, found = read(skills)
    trial = skill_trial(sources, [text for text, _ in found], without, with_skills)
    graded = counted(trial.comparison.instances, "instance is", "instances are")
    sys.stdout.write(
        f"{graded} graded in both, {trial.shown} of them shown a skill; {counted(trial.left_out, 'other')} left out\n"
        f"A: without the skills, B: with them\n{as_text(trial.comparison)}"
    )
    if not trial.kept:
        sys.stdout.write(f"not kept: no more is resolved with the skills, and {memory} is left as it is\n")
        raise typer.Exit(1)
    Memory(memory).take_skills(sources, found)
    doubt = "; it may be chance, as the interval includes 0" if trial.comparison.interval[0] <= 0 else ""
    sys.stdout.write(f"kept: {counted(len(found), 'skill')} taken into {memory}{doubt}\n")
