"""Skills: the lessons of many runs, merged and freed of contradictions (Trace2Skill).

Invariants: the same runs give the same skills in any order; every skill names the runs behind it; of skills that
contradict each other exactly one is kept, and the others are reported.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from agent.learning.memory.claims import alike, opposed
from agent.learning.memory.items import Source


@dataclass(frozen=True, slots=True)
class Lessons:
    """The lessons of one verified run."""

    source: Source
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Skill:
    """A sentence, and the runs that support it."""

    text: str
    runs: tuple[str, ...]
    """The ids of the runs behind it, ascending; at least one."""
    repos: tuple[str, ...]
    """The named repositories of those runs, ascending. A skill with more than one is general."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """Skills that contradict one another."""

    kept: Skill
    """The skill with most runs that solved their issue, then with most runs."""
    dropped: tuple[Skill, ...]


@dataclass(frozen=True, slots=True)
class Book:
    """The skills of many runs."""

    skills: tuple[Skill, ...]
    """Skills with most runs first."""
    conflicts: tuple[Conflict, ...]
    sources: tuple[Source, ...]
    """All runs that were read, by id."""


@dataclass(frozen=True, slots=True)
class Related:
    """How some skills relate to one another."""

    skills: list[Skill]
    """Skills that say the same are merged into one."""
    opposed: list[list[Skill]]
    """Groups of these skills that contradict one another."""


Relate = Callable[[Sequence[Skill]], Related]


def by_words(skills: Sequence[Skill]) -> Related:
    """The relations by the words that skills share: skills that say the same get the wording with most runs, then the
    shortest."""
    same = [_one(group) for group in _groups(skills, alike)]
    return Related(same, [group for group in _groups(same, opposed) if len(group) > 1])


def consolidate(taught: Iterable[Lessons], relate: Relate = by_words) -> Book:
    """Merge the lessons of each repository's runs, then those of all repositories, and resolve contradictions."""
    runs = {lessons.source.id: lessons for lessons in taught}
    by_repo = defaultdict[str, list[Skill]](list)
    for name in sorted(runs):
        repo = runs[name].source.issue.repo
        by_repo[repo] += [Skill(text, (name,), (repo,) if repo else ()) for text in runs[name].sentences]
    related = relate([skill for repo in sorted(by_repo) for skill in relate(by_repo[repo]).skills])
    solved = frozenset(name for name, lessons in runs.items() if lessons.source.outcome == "solved")
    conflicts = _resolved(related.opposed, solved)
    dropped = {skill for conflict in conflicts for skill in conflict.dropped}
    kept = sorted(set(related.skills) - dropped, key=lambda skill: (-len(skill.runs), skill.text))
    return Book(tuple(kept), tuple(conflicts), tuple(runs[name].source for name in sorted(runs)))


def merged(group: Sequence[Skill], text: str) -> Skill:
    """One skill in place of several."""
    runs = {run for skill in group for run in skill.runs}
    repos = {repo for skill in group for repo in skill.repos}
    return Skill(text, tuple(sorted(runs)), tuple(sorted(repos)))


def _one(group: Sequence[Skill]) -> Skill:
    return merged(group, min(group, key=lambda skill: (-len(skill.runs), len(skill.text), skill.text)).text)


def _resolved(opposed: Iterable[Sequence[Skill]], solved: frozenset[str]) -> list[Conflict]:
    """For each group, the skill that is kept; a skill that an earlier group dropped takes part in no later one."""
    conflicts, gone = list[Conflict](), set[Skill]()
    for group in opposed:
        left = [skill for skill in group if skill not in gone]
        if len(left) > 1:
            best, *others = sorted(
                left, key=lambda s: (-len(solved.intersection(s.runs)), -len(s.runs), len(s.text), s.text)
            )
            gone.update(others)
            conflicts.append(Conflict(best, tuple(others)))
    return conflicts


def _groups(skills: Iterable[Skill], related: Callable[[str, str], bool]) -> list[list[Skill]]:
    """Groups of skills that are related directly or through others, each sorted by text."""
    groups: list[list[Skill]] = []
    for skill in skills:
        near = [group for group in groups if any(related(skill.text, other.text) for other in group)]
        groups = [group for group in groups if group not in near]
        groups.append([*(other for group in near for other in group), skill])
    return [sorted(group, key=lambda skill: (skill.text, skill.runs)) for group in groups]
