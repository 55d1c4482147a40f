"""Keeps benchmark instances out of training data.

A run is excluded by the id, the repository or the base commit of its task, by an issue or a patch like that of a known
instance, and if it read such a text.
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

GRAM = 13
"""The length in words of an n-gram that only copies share."""
OVERLAP = 0.5
"""From this share of its n-grams on, a known text counts as contained in another."""
_SIGN = re.compile(r"^(?:(?:[\w./-]+:)?\s*\d+[\t:|-]|[+-])", re.MULTILINE)
"""A line number as `cat -n` and `grep -n` print it, or the sign of a line in a patch."""


@dataclass(slots=True)
class Exclusions:
    """Known instances. Only the lines that a patch adds are compared."""

    names: set[str] = field(default_factory=set)
    """Instance ids, repositories, base commits, and digests of patches (`patch_digest`)."""
    sizes: list[int] = field(default_factory=list)
    """The number of n-grams of each known issue and patch."""
    holders: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """For each n-gram, the indices in `sizes` of the texts with it."""
    digest: str = ""
    """A hash of the files that the instances were read from, for the manifest."""

    @classmethod
    def read(cls, paths: Iterable[Path]) -> Exclusions:
        """Read files with a name on each line, or with instances in SWE-bench's form: one object per line, or one list.

        Raises:
            UsageError: a file cannot be read.
        """
        exclusions, hashed = cls(), sha256()
        for path in paths:
            try:
                data = path.read_bytes()
            except OSError as error:
                raise UsageError(f"--exclude {path}: {error.strerror}") from error
            hashed.update(data)
            for entry in _entries(path, data):
                exclusions.add(entry)
        exclusions.digest = hashed.hexdigest() if exclusions.names or exclusions.sizes else ""
        return exclusions

    def add(self, entry: Mapping[str, Any] | str) -> None:
        """Add a name, or an instance with its id, base commit, issue and patches. To exclude a whole repository, add
        its name."""
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
        """Why a run is excluded; empty if it is not."""
        if not self.names and not self.sizes:
            return ""
        task = task_of(run)
        if self.names & {task.id, task.base, *map(plain, (repository(task), task.tags.get("source_url", "")))}:
            return "it is of an excluded instance, repository or commit"
        written_texts = [*_edits(run), *_patches(run)]
        if any(patch_digest(text) in self.names for text in written_texts):
            return "a patch of it is an excluded one"
        if not self.sizes:
            return ""
        if any(map(self._is_like, (task.statement, *written_texts))):
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
        """Whether the text contains much of a known one."""
        shared = Counter(known for gram in _grams(text) for known in self.holders.get(gram, ()))
        return any(count >= OVERLAP * self.sizes[known] for known, count in shared.items())


def patch_digest(added: str) -> str:
    """The SHA-256, in hex, of the lines that a patch adds, without white space."""
    return sha256("".join(added.split()).encode("utf-8", "replace")).hexdigest()


def _entries(path: Path, data: bytes) -> Iterator[Mapping[str, Any] | str]:
    text = data.decode("utf-8", "replace")
    if listed := text.lstrip().startswith("["):
        values = _json(text, f"--exclude {path} begins like a JSON list but is not valid JSON")
    else:
        values = map(str.strip, text.splitlines())
    for number, value in enumerate(values, 1):
        place = f"--exclude {path}, {'entry' if listed else 'line'} {number}"
        is_json = not listed and value.startswith(("{", "["))
        entry = _json(value, f"{place}: neither a name nor JSON") if is_json else value
        if not isinstance(entry, (str, Mapping)):
            raise UsageError(
                f"{place}: {str(entry)[:80]} is neither a name nor an instance, an object with instance_id"
            )
        if entry:
            yield entry


def _json(text: str, problem: str) -> Any:
    try:
        return loads(text)
    except ValueError as error:
        raise UsageError(f"{problem}: {error}") from error


def _added(patch: bytes) -> str:
    return "\n".join(line for file in parse(patch) for line in file.added.values())


def _edits(run: Run) -> Iterator[str]:
    """The text written on the path to each node, both with and without the unchanged lines of edits."""
    paths = [[above.id for above in run.tree.path(node.id)] for node in run.tree if node.steps]
    yield from filter(None, (text_of(run, path) for path in paths for text_of in (written, added)))


def _read(run: Run) -> Iterator[str]:
    """All observations of the run, without line numbers and patch signs at the beginning of lines."""
    for node in run.tree:
        for step in node.steps:
            yield from (_SIGN.sub("", observation.text) for observation in step.observations)


def _patches(run: Run) -> Iterator[str]:
    """The added lines of the patches in the journal: of verified states, and of states whose files were evicted."""
    for name in filter(None, (kept_patch(run, node.id) for node in run.tree)):
        yield _added(run.journal.get_blob(name))


def _grams(text: str) -> frozenset[str]:
    """The n-grams of a text's words; none if it is shorter than one."""
    all_words = words(text)
    return frozenset(" ".join(all_words[start : start + GRAM]) for start in range(len(all_words) - GRAM + 1))
