"""Skills: what the lessons of many runs come to when they are held against one another (Trace2Skill).

Laws: the same runs give the same skills in whatever order they come; every skill names the runs behind it; of skills
that contradict each other exactly one is left, and what it was held against is reported.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from agent.learning.memory.claims import alike, opposed
from agent.learning.memory.items import Source

__all__ = ["Book", "Conflict", "Lessons", "Skill", "consolidate"]


@dataclass(frozen=True, slots=True)
class Lessons:
    """What one verified run taught."""

    source: Source
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Skill:
    """A sentence, and what it rests on."""

    text: str
    runs: tuple[str, ...]
    """The ids of the runs behind it, ascending; at least one."""
    repos: tuple[str, ...]
    """The repositories of those runs, ascending, where they have names. Of more than one: it holds in general."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """Skills that contradict one another."""

    kept: Skill
    """The one behind which there are most runs that solved their issue, then most runs."""
    dropped: tuple[Skill, ...]


@dataclass(frozen=True, slots=True)
class Book:
    """What many runs taught."""

    skills: tuple[Skill, ...]
    """Those of most runs first."""
    conflicts: tuple[Conflict, ...]
    sources: tuple[Source, ...]
    """The runs that were looked at, by id."""


def consolidate(taught: Iterable[Lessons]) -> Book:
    """Merge the lessons of each repository's runs, then those of all repositories, and settle what contradicts."""
    runs = {each.source.id: each for each in taught}
    by_repo = defaultdict[str, list[Skill]](list)
    for name in sorted(runs):
        repo = runs[name].source.issue.repo
        by_repo[repo] += [Skill(text, (name,), (repo,) if repo else ()) for text in runs[name].sentences]
    merged = _merged([skill for repo in sorted(by_repo) for skill in _merged(by_repo[repo])])
    solved = {name for name, each in runs.items() if each.source.outcome == "solved"}
    kept, conflicts = _settled(merged, solved)
    kept.sort(key=lambda skill: (-len(skill.runs), skill.text))
    return Book(tuple(kept), tuple(conflicts), tuple(runs[name].source for name in sorted(runs)))


def _merged(skills: Iterable[Skill]) -> list[Skill]:
    """Those that say the same as one, in the words that most runs used, then the fewest."""
    return [_one(group) for group in _groups(skills, alike)]


def _one(group: Sequence[Skill]) -> Skill:
    words = min(group, key=lambda skill: (-len(skill.runs), len(skill.text), skill.text)).text
    runs = {run for skill in group for run in skill.runs}
    repos = {repo for skill in group for repo in skill.repos}
    return Skill(words, tuple(sorted(runs)), tuple(sorted(repos)))


def _settled(skills: Iterable[Skill], solved: Iterable[str]) -> tuple[list[Skill], list[Conflict]]:
    kept, conflicts, good = list[Skill](), list[Conflict](), frozenset(solved)
    for group in _groups(skills, opposed):
        best, *others = sorted(
            group, key=lambda s: (-len(good.intersection(s.runs)), -len(s.runs), len(s.text), s.text)
        )
        kept.append(best)
        if others:
            conflicts.append(Conflict(best, tuple(others)))
    return kept, conflicts


def _groups(skills: Iterable[Skill], related: Callable[[str, str], bool]) -> list[list[Skill]]:
    """The skills that are related, directly or through others, each group in the order of its texts."""
    groups: list[list[Skill]] = []
    for skill in skills:
        near = [group for group in groups if any(related(skill.text, each.text) for each in group)]
        groups = [group for group in groups if group not in near]
        groups.append([*(each for group in near for each in group), skill])
    return [sorted(group, key=lambda each: (each.text, each.runs)) for group in groups]
