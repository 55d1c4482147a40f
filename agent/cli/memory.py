"""`ramify memory`: keeps lessons of verified runs for later runs."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.help import example, new_app
from agent.cli.options import Interface
from agent.counting import counted
from agent.errors import UsageError

if TYPE_CHECKING:
    from agent.budget import Usage
    from agent.learning.memory import Memory
    from agent.learning.memory.items import Item, Kind


app = new_app(
    help="Keep lessons of verified runs in one file, for later runs.", no_args_is_help=True, add_completion=False
)
skills_app = new_app(help="Consolidate what many runs taught.", no_args_is_help=True, add_completion=False)
app.add_typer(skills_app, name="skills")

LINE_CHARS = 136
"""The width of a listed item: its id, its kind, and as much of its text as fits."""

MemoryFile = Annotated[Path, typer.Option("--memory", metavar="FILE", help="The memory file.")]
Runs = Annotated[list[Path], typer.Argument(metavar="RUN", help="Directories of runs that have ended.")]
KINDS: tuple[Kind, ...] = ("episode", "insight", "reflection", "experience")


@app.command(epilog=example("ramify memory add runs/words --memory notes"))
def add(
    runs: Runs,
    memory: MemoryFile,
    model: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="The model that formulates the insights, in one call per run."),
    ] = None,
    config: Interface = None,
) -> None:
    """Remember runs whose outcome was verified. Runs that are already in the memory are read again. Exit code 1 if a
    run is refused."""
    from agent.config import load, split
    from agent.learning.memory import Memory
    from agent.learning.memory.admission import Unverified
    from agent.learning.memory.attaching import distiller
    from agent.learning.memory.distilling import Tally
    from agent.run.paths import journal_of
    from agent.run.run import Run

    journals = [journal_of(run) for run in runs]
    kept, refused = Memory(memory), 0
    settings, tally = load(*split(config or ())), Tally()
    with distiller(model, settings.model, tally.ask) as distil:
        for journal in journals:
            with Run.read(journal.parent) as run:
                try:
                    items = kept.add(run, distil)
                except Unverified as why:
                    refused += 1
                    sys.stdout.write(f"refused {journal.parent}: {why}\n")
                else:
                    sys.stdout.write(f"added {journal.parent}: {_counted(items)}\n")
    sys.stdout.write(_asked(model, tally.usage))
    raise typer.Exit(1 if refused else 0)


@app.command(epilog=example("ramify memory search 'KeyError in the parser' --memory notes"))
def search(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="An issue, an error, or a few words.")],
    memory: MemoryFile,
    count: Annotated[int, typer.Option("-k", metavar="N", min=1, help="Maximum number of items of each kind.")] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
) -> None:
    """Print the items that best match a text, by its words and the errors in it."""
    from agent.learning.memory.clusters import cluster_of
    from agent.measure.messages import error_of

    opened = _existing(memory)
    alike = opened.met([cluster_of(error_of(text))], count)
    results: list[tuple[Item, float]] = [(item, item.score) for item in alike]
    for kind in KINDS:
        hits = [hit for hit in opened.search(text, kind, count) if hit.score > 0 and hit.item not in alike]
        results += [(hit.item, hit.score) for hit in hits]
    for item, score in results:
        line = json.dumps({"score": round(score, 4), **asdict(item)}) if as_json else f"{score:6.2f}  {_line(item)}"
        sys.stdout.write(line + "\n")


@app.command(epilog=example("ramify memory show --memory notes"))
def show(
    memory: MemoryFile,
    item: Annotated[str | None, typer.Argument(metavar="ID", help="The id of an item or of a run.")] = None,
) -> None:
    """List the runs and what was learned from them, or print one item."""
    store = _existing(memory).store
    sources = store.sources()
    if item is not None:
        records = [asdict(record) for record in store.get([item])] or [
            asdict(source) for source in sources.values() if source.id == item
        ]
        if not records:
            raise UsageError(f"{item} is not in {memory}; `ramify memory show --memory {memory}` lists what is")
        sys.stdout.write(json.dumps(records[0], indent=2) + "\n")
        return
    for source in sources.values():
        sys.stdout.write(f"{source.id}  {source.added}  {source.outcome}: {source.evidence}\n")
    for kind in KINDS:
        for record in store.items(kind):
            sys.stdout.write(f"{_line(record)}\n")


@app.command(epilog=example("ramify memory prune --memory notes --older-than 90"))
def prune(
    memory: MemoryFile,
    older_than: Annotated[
        float | None, typer.Option(metavar="DAYS", min=0, help="Forget runs that were remembered longer ago than this.")
    ] = None,
    run: Annotated[
        list[str] | None, typer.Option(metavar="RUN", help="Forget this run, by its id or directory.")
    ] = None,
    item: Annotated[list[str] | None, typer.Option("--id", metavar="ID", help="Forget this item.")] = None,
) -> None:
    """Forget runs, with the items that only they support, or single items."""
    if older_than is None and not run and not item:
        raise UsageError("say what to forget: --older-than DAYS, --run RUN or --id ID")
    runs = {*(run or ()), *(str(Path(name).resolve()) for name in run or ())}
    count = _existing(memory).prune(older_than_days=older_than, runs=sorted(runs), ids=item or ())
    sys.stdout.write(f"forgot {count}\n")


@app.command(epilog=example("ramify memory export notes.jsonl --memory notes"))
def export(
    memory: MemoryFile,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="The file to write, one JSON object per line; an existing file is replaced."
        ),
    ],
) -> None:
    """Write all runs and items as JSON lines: runs first, then items, by id."""
    from agent.files import write_atomically
    from agent.learning.memory.items import to_json

    store = _existing(memory).store
    records = [to_json(source) for source in sorted(store.sources().values(), key=lambda source: source.id)]
    records += [to_json(item) for item in store.items()]
    write_atomically(file, "".join(f"{line}\n" for line in records).encode())
    sys.stdout.write(f"wrote {counted(len(records), 'line')} to {file}\n")


@skills_app.command(epilog=example("ramify memory skills build runs/words --out skills"))
def build(
    runs: Runs,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="A new directory, or one that holds skills.")],
    model: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="The model that proposes lessons, in one call per run, and merges them."),
    ] = None,
    config: Interface = None,
) -> None:
    """Merge the lessons of verified runs into skills, each with the runs that support it, and list contradictions. Exit
    code 1 if a run was refused."""
    from agent.config import load, split
    from agent.learning.memory.attaching import distiller
    from agent.learning.memory.consolidating import Consolidator
    from agent.learning.memory.distilling import Tally
    from agent.learning.memory.learning import lessons_of
    from agent.learning.memory.skill_files import write
    from agent.learning.memory.skills import by_words, consolidate

    settings, tally = load(*split(config or ())), Tally()
    with distiller(model, settings.model, tally.ask) as distil:
        taught, refused = lessons_of(runs, distil)
        book = consolidate(taught, Consolidator(distil.model, distil.ask) if distil else by_words)
    for run, why in refused:
        sys.stdout.write(f"refused {run}: {why}\n")
    if not taught:
        raise UsageError("all runs were refused, so nothing was written")
    version = write(book, out)
    for conflict in book.conflicts:
        sides = "; ".join(f'"{skill.text}" ({", ".join(skill.runs)})' for skill in (conflict.kept, *conflict.dropped))
        sys.stdout.write(f"contradiction, the first is kept: {sides}\n")
    sys.stdout.write(f"wrote {_skills(book.skills, book.sources)} to {out}, version {version}\n")
    sys.stdout.write(_asked(model, tally.usage))
    raise typer.Exit(1 if refused else 0)


@skills_app.command(epilog=example("ramify memory skills load skills --memory notes"))
def load(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="What `skills build` wrote.")], memory: MemoryFile
) -> None:
    """Import the skills of a directory into a memory, as insights with the runs that support them."""
    from agent.learning.memory import Memory
    from agent.learning.memory.skill_files import read

    sources, skills = read(directory)
    Memory(memory).take_skills(sources, skills)
    sys.stdout.write(f"imported {_skills(skills, sources)} into {memory}\n")


def _asked(model: str | None, spent: Usage) -> str:
    """Return a line with the number and cost of the model calls; empty without a model."""
    if model is None:
        return ""
    return f"asked {model}: {counted(spent.model_calls, 'call')}, {spent.tokens} tokens, ${spent.cost_usd:.4f}\n"


def _skills(skills: Collection[object], sources: Collection[object]) -> str:
    return f"{counted(len(skills), 'skill')} of {counted(len(sources), 'run')}"


def _existing(path: Path) -> Memory:
    from agent.learning.memory import Memory

    return Memory(path, make=False)


def _counted(items: list[Item]) -> str:
    return ", ".join(counted(sum(item.kind == kind for item in items), kind) for kind in KINDS)


def _line(item: Item) -> str:
    from agent.untrusted import one_line

    match item.kind:
        case "episode":
            text = f"[{item.outcome}] {item.issue}"
        case "insight":
            text = f"({len(item.sources)}) {item.text}"
        case "reflection":
            text = f"state {item.node}: expected {item.predicted:.2f}, measured {item.measured:.2f}: {item.done}"
        case "experience":
            text = f"+{item.score:.2f} {item.error}: {item.done}"
    return f"{item.id}  {item.kind:<10}  {one_line(text)}"[:LINE_CHARS]
