"""Exclusions: benchmarks that must not leak into training data, and what of a run is one of them.

A run is excluded by the id, the repository or the base commit of its task, by an issue or a patch like a known one's,
and where it read one.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from agent.errors import UsageError
from agent.learning.export.changes import added, written
from agent.learning.export.duplicates import words
from agent.learning.export.provenance import repository
from agent.learning.export.splits import plain
from agent.measure.diffs import parse
from agent.parsing import loads
from agent.run.action_log import task_of
from agent.run.eviction import kept_patch
from agent.run.run import Run

__all__ = ["Exclusions", "patch_digest"]

GRAM = 13
"""Words in a row that only the same text has."""
OVERLAP = 0.5
"""The share of a known text's rows of words from which on it is found in another."""
_SIGN = re.compile(r"^(?:(?:[\w./-]+:)?\s*\d+[\t:|-]|[+-])", re.MULTILINE)
"""The number of a line, as `cat -n` and `grep -n` write it, and what tells of a line in a patch."""


@dataclass(slots=True)
class Exclusions:
    """Known instances. What is compared of a patch is the lines that it adds."""

    names: set[str] = field(default_factory=set)
    """Instance ids, repositories, base commits, and digests of patches (`patch_digest`)."""
    sizes: list[int] = field(default_factory=list)
    """How many rows of words each known issue and patch has."""
    holders: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Which of those have a row of words."""
    digest: str = ""
    """Of the files that it was read from, for the record."""

    @classmethod
    def read(cls, paths: Iterable[Path]) -> Exclusions:
        """From files of names, one a line, or of instances in SWE-bench's form, an object a line or one list.

        Raises:
            UsageError: a file cannot be read.
        """
        found, hashed = cls(), sha256()
        for path in paths:
            try:
                data = path.read_bytes()
            except OSError as error:
                raise UsageError(f"--exclude {path}: {error.strerror}") from error
            hashed.update(data)
            for entry in _entries(path, data):
                found.add(entry)
        found.digest = hashed.hexdigest() if found.names or found.sizes else ""
        return found

    def add(self, entry: Mapping[str, Any] | str) -> None:
        """A name, or an instance: its id, its commit, its issue and its patches. Its repository is not excluded whole:
        for that, give its name."""
        if isinstance(entry, str):
            self.names.update((entry, plain(entry)))
            return
        self.names.update(str(entry[key]) for key in ("instance_id", "base_commit") if entry.get(key))
        for key in ("patch", "test_patch"):
            if added := _added(str(entry.get(key) or "").encode()):
                self.names.add(patch_digest(added))
                self._learn(added)
        self._learn(str(entry.get("problem_statement") or ""))

    def reason(self, run: Run) -> str:
        """Why a run is excluded; empty where it is not."""
        if not self.names and not self.sizes:
            return ""
        task = task_of(run)
        if self.names & {task.id, task.base, *map(plain, (repository(task), task.tags.get("source_url", "")))}:
            return "it is of an excluded instance, repository or commit"
        made = [*_edits(run), *_patches(run)]
        if any(patch_digest(text) in self.names for text in made):
            return "a patch of it is an excluded one"
        if not self.sizes:
            return ""
        if any(map(self._is_like, (task.statement, *made))):
            return "its issue or a patch of it is like an excluded one"
        if any(map(self._is_like, _read(run))):
            return "it read an issue or a patch like an excluded one"
        return ""

    def _learn(self, text: str) -> None:
        if grams := _grams(text):
            for gram in grams:
                self.holders[gram].append(len(self.sizes))
            self.sizes.append(len(grams))

    def _is_like(self, text: str) -> bool:
        """Whether much of a known text is in it."""
        found = Counter(known for gram in _grams(text) for known in self.holders.get(gram, ()))
        return any(count >= OVERLAP * self.sizes[known] for known, count in found.items())


def patch_digest(added: str) -> str:
    """The SHA-256, in hex, of the lines that a patch adds, without white space."""
    return sha256("".join(added.split()).encode("utf-8", "replace")).hexdigest()


def _entries(path: Path, data: bytes) -> Iterator[Mapping[str, Any] | str]:
    text = data.decode("utf-8", "replace")
    listed = text.lstrip().startswith("[")
    for number, given in enumerate(_listed(path, text) if listed else text.splitlines(), 1):
        place = f"--exclude {path}, {'entry' if listed else 'line'} {number}"
        entry = given if listed else _entry(place, given.strip())
        if not isinstance(entry, (str, Mapping)):
            raise UsageError(
                f"{place}: {str(entry)[:80]} is neither a name nor an instance, an object with instance_id"
            )
        if entry:
            yield entry


def _listed(path: Path, text: str) -> list[Any]:
    try:
        found: list[Any] = loads(text)
    except ValueError as error:
        raise UsageError(f"--exclude {path} begins like a list but is not one: {error}") from error
    return found


def _entry(place: str, line: str) -> Any:
    try:
        return loads(line) if line.startswith(("{", "[")) else line
    except ValueError as error:
        raise UsageError(f"{place}: neither a name nor JSON: {error}") from error


def _added(patch: bytes) -> str:
    return "\n".join(line for file in parse(patch) for line in file.added.values())


def _edits(run: Run) -> Iterator[str]:
    """What was written on the way to each node, with the lines around it and without."""
    paths = [[each.id for each in run.tree.path(node.id)] for node in run.tree if node.steps]
    yield from filter(None, (told(run, path) for path in paths for told in (written, added)))


def _read(run: Run) -> Iterator[str]:
    """What the actions on the way to the nodes showed, without the signs that lines of files and patches begin with."""
    for observation in (seen for node in run.tree for step in node.steps for seen in step.observations):
        yield _SIGN.sub("", observation.text)


def _patches(run: Run) -> Iterator[str]:
    """What the patches add that the journal has: of states that were verified, and of those whose files are gone."""
    for name in filter(None, (kept_patch(run, node.id) for node in run.tree)):
        yield _added(run.journal.get_blob(name))


def _grams(text: str) -> frozenset[str]:
    """The rows of words of a text; none where it is too short to be told from others by them."""
    said = words(text)
    return frozenset(" ".join(said[start : start + GRAM]) for start in range(len(said) - GRAM + 1))
