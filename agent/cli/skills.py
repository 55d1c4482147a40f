"""`ramify memory skills`: lessons of many runs as a directory of skills."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from agent.errors import UsageError

__all__ = ["app"]

app = typer.Typer(
    help="Consolidate what many runs taught.", rich_markup_mode=None, no_args_is_help=True, add_completion=False
)


@app.command()
def build(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Directories of runs that have ended.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="A new directory, or one that holds skills.")],
) -> None:
    """Merge the lessons of verified runs into skills, each with the runs that support it, and list contradictions. Exit
    code 1 if a run was refused."""
    from agent.learning.memory.learning import lessons_of
    from agent.learning.memory.skill_files import write
    from agent.learning.memory.skills import consolidate

    taught, refused = lessons_of(runs)
    for run, why in refused:
        sys.stdout.write(f"refused {run}: {why}\n")
    if not taught:
        raise UsageError("all runs were refused, so nothing was written")
    book = consolidate(taught)
    version = write(book, out)
    for conflict in book.conflicts:
        sides = "; ".join(f'"{skill.text}" ({", ".join(skill.runs)})' for skill in (conflict.kept, *conflict.dropped))
        sys.stdout.write(f"contradiction, the first is kept: {sides}\n")
    sys.stdout.write(f"wrote {len(book.skills)} skills of {len(book.sources)} runs to {out}, version {version}\n")
    raise typer.Exit(1 if refused else 0)


@app.command()
def load(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="What `skills build` wrote.")],
    memory: Annotated[Path, typer.Option("--memory", metavar="FILE", help="The memory.")],
) -> None:
    """Import the skills of a directory into a memory, as insights with the runs that support them."""
    from agent.learning.memory import Memory
    from agent.learning.memory.skill_files import read

    sources, skills = read(directory)
    Memory(memory).take_skills(sources, skills)
    sys.stdout.write(f"took {len(skills)} skills of {len(sources)} runs into {memory}\n")
