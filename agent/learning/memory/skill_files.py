"""The directory of skills: `SKILL.md` for people and models, `conflicts.md`, and `skills.json` for Ramify.

Invariants: the same skills give the same bytes; a directory with other contents is not touched.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from agent.errors import UsageError
from agent.files import write_atomically
from agent.learning.memory.items import Source, load_source
from agent.learning.memory.skills import Book, Skill
from agent.parsing import loads

INDEX = "skills.json"
FORMAT = 1


def write(book: Book, directory: Path) -> str:
    """Write the directory, replacing skills that it held before, and return the version, a digest of the skills.

    Raises:
        UsageError: the directory holds something other than skills.
    """
    if directory.exists() and (
        not directory.is_dir() or (any(directory.iterdir()) and not (directory / INDEX).is_file())
    ):
        raise UsageError(f"--out {directory} holds something other than skills; name a new directory")
    directory.mkdir(parents=True, exist_ok=True)
    facts = _facts(book)
    version = hashlib.sha256(_json(facts)).hexdigest()[:12]
    write_atomically(directory / "SKILL.md", "\n".join(_skill_lines(book, version)).encode())
    write_atomically(directory / "conflicts.md", "\n".join(_conflict_lines(book)).encode())
    write_atomically(directory / INDEX, _json({"format": FORMAT, "version": version, **facts}))
    return version


def read(directory: Path) -> tuple[list[Source], list[tuple[str, tuple[str, ...]]]]:
    """The runs behind the skills of a directory, and each skill with the ids of its runs.

    Raises:
        UsageError: the directory holds no skills or those of a newer version, or a skill cites an unknown run.
    """
    try:
        facts = loads((directory / INDEX).read_bytes())
        if facts["format"] > FORMAT:
            raise UsageError(
                f"{directory / INDEX} has format {facts['format']}, this ramify reads {FORMAT}: upgrade ramify"
            )
        sources = [load_source({**source, "added": "", "directory": ""}) for source in facts["sources"]]
        skills = [(skill["text"], tuple(skill["runs"])) for skill in facts["skills"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{directory} holds no skills; build them: ramify memory skills build RUN... --out DIR"
        ) from error
    cited = {run for _, runs in skills for run in runs}
    if unknown := sorted(cited.difference(source.id for source in sources)):
        raise UsageError(
            f"{directory / INDEX} cites the run {unknown[0]!r}, which is not among its sources: build the skills again"
        )
    return sources, skills


def _facts(book: Book) -> dict[str, Any]:
    """The book as JSON, without when and where its runs were read, so that the same runs give the same bytes."""
    sources = [{k: v for k, v in asdict(run).items() if k not in ("added", "directory")} for run in book.sources]
    skills, conflicts = ([asdict(record) for record in group] for group in (book.skills, book.conflicts))
    return {"skills": skills, "conflicts": conflicts, "sources": sources}


def _skill_lines(book: Book, version: str) -> Iterator[str]:
    yield from (
        "# Skills",
        "",
        f"Version {version}, of {len(book.sources)} verified runs. Each line ends with its runs.",
    )
    general = [skill for skill in book.skills if len(skill.repos) != 1]
    yield from _section("In general", general)
    for repo in sorted({skill.repos[0] for skill in book.skills if len(skill.repos) == 1}):
        yield from _section(repo, (skill for skill in book.skills if skill.repos == (repo,)))
    yield ""


def _section(title: str, skills: Iterable[Skill]) -> Iterator[str]:
    lines = [_line(skill) for skill in skills]
    if lines:
        yield from ("", f"## {title}", "", *lines)


def _conflict_lines(book: Book) -> Iterator[str]:
    yield from ("# Contradictions", "", "Kept is what more runs stand behind that solved their issue, then more runs.")
    for conflict in book.conflicts:
        yield from (
            "",
            f"Kept: {_line(conflict.kept)[2:]}",
            *(f"Dropped: {_line(skill)[2:]}" for skill in conflict.dropped),
        )
    yield ""


def _line(skill: Skill) -> str:
    return f"- {skill.text} [{', '.join(skill.runs)}]"


def _json(facts: dict[str, Any]) -> bytes:
    return (json.dumps(facts, indent=1, sort_keys=True, ensure_ascii=True) + "\n").encode()
