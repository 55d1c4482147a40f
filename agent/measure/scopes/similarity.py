"""Score how similar a test file is to a change, by file name and by shared identifiers.

A developer looks for tests in the same way: for those named after the file, or about the same things.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from math import log, sqrt
from posixpath import basename, commonprefix, dirname

from agent.measure.scopes.changed import FileChange
from agent.measure.scopes.index import Index

PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
TEST_NAMES = re.compile(r"^(tests?_+)+|(_+tests?)+$")
NO_WORDS = frozenset({"test", "src", "lib", "init", "py", "unit", "integration"})
STEM, FOLDER, SYMBOL = 1.0, 0.6, 0.5
"""The weight of a word by its origin: the changed file's name, its folders (less for outer ones), and the changed
names."""
SAME_STEM = 0.7
"""The score of a test named after the file, wherever it is; the rest, up to 1, is for being in the expected place."""
SAME_PLACE = 0.4
"""The score of a test in the expected place, but with another name."""
WORDS_ALIKE = 0.8
SATURATION, LENGTH = 1.2, 0.1
"""k1 and b of BM25 (Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009). The length of a file weighs
little: a long one tests more."""
SURE = 1.5
"""The lowest score that counts as 1, in multiples of the rarity of a word that only one file has: half of what a
changed name counts."""
NAMED, HOLDER = 3.0, 2.0
"""The weight of a hit: a changed name, and a class around it."""
WORDS, USERS = 4.0, 4.0
"""Total weight that the words of the changed lines share, and that the users of what is changed share; none gets more
than 1."""


class Similarity:
    """Scores the test files of an index against changes."""

    def __init__(self, index: Index, tests: Collection[str]) -> None:
        self._tests = sorted(tests)
        self._paths = {test: _path_words(test) for test in self._tests}
        self._path_rarity = rarity(self._paths.values(), len(self._paths))
        self._words = {test: index.files[test].words for test in self._tests if test in index.files}
        self._lengths = {test: sum(words.values()) for test, words in self._words.items()}
        self._mean = sum(self._lengths.values()) / max(1, len(self._lengths)) or 1.0
        self._rarity = rarity(self._words.values(), len(self._words))

    def by_name(self, changed: Mapping[str, FileChange]) -> dict[str, float]:
        """How alike the path of each test file is to those of the changed files, in (0, 1]; others are left out."""
        found: dict[str, float] = {}
        for path, change in changed.items():
            wanted = self._weighed(_change_words(path, change))
            for test in self._tests:
                alike = max(_convention(path, test), WORDS_ALIKE * self._cosine(wanted, self._paths[test]))
                if alike > found.get(test, 0.0):
                    found[test] = alike
        return found

    def by_words(self, changed: Mapping[str, FileChange]) -> dict[str, float]:
        """How much the text of each test file is about the changes, in (0, 1]; the best scores 1 if it is similar
        enough. Test files without a hit are left out."""
        wanted = terms(changed).items()
        known = {word: weight * self._rarity[word] for word, weight in wanted if word in self._rarity}
        scores: dict[str, float] = {}
        for test, words in self._words.items():
            hits = known.keys() & words.keys()
            if hits:
                norm = SATURATION * (1 - LENGTH + LENGTH * self._lengths[test] / self._mean)
                scores[test] = sum(
                    known[word] * words[word] * (SATURATION + 1) / (words[word] + norm) for word in sorted(hits)
                )
        most = max([*scores.values(), SURE * log(1 + len(self._words))])
        return {test: score / most for test, score in scores.items()}

    def _weighed(self, words: Mapping[str, float]) -> dict[str, float]:
        rarest = log(1 + len(self._tests))
        return {word: weight * self._path_rarity.get(word, rarest) for word, weight in words.items()}

    def _cosine(self, wanted: Mapping[str, float], words: Collection[str]) -> float:
        shared = wanted.keys() & words
        if not shared:
            return 0.0
        own = {word: self._path_rarity[word] for word in sorted(words)}
        product = sum(wanted[word] * own[word] for word in sorted(shared))
        length = sqrt(sum(each * each for each in wanted.values()) * sum(each * each for each in own.values()))
        return product / length if length else 0.0


def rarity(documents: Iterable[Collection[str]], count: int) -> dict[str, float]:
    """How rare each word of these documents is among `count` of them: BM25's inverse document frequency, above 0."""
    spread = Counter(word for words in documents for word in words)
    return {word: log(1 + (count - times + 0.5) / (times + 0.5)) for word, times in spread.items()}


def terms(changed: Mapping[str, FileChange]) -> dict[str, float]:
    """The identifiers that a test of these changes might mention, with weights up to NAMED."""
    weights: dict[str, float] = {}

    def add(word: str, weight: float) -> None:
        if not word.startswith("__"):
            weights[word] = max(weight, weights.get(word, 0.0))

    for change in changed.values():
        for word in change.words:
            add(word, min(1.0, WORDS / len(change.words)))
        for name, distance in change.users.items():
            add(name.rsplit(".", 1)[-1], min(1.0, USERS / len(change.users)) / distance)
        for name in change.names:
            *holders, last = name.split(".")
            add(last, NAMED)
            for holder in holders:
                add(holder, HOLDER)
    return dict(sorted(weights.items()))


def _change_words(path: str, change: FileChange) -> dict[str, float]:
    """Words that a test of this change might be named by, with their weights."""
    weights: dict[str, float] = {}
    folders = dirname(path).split("/") if dirname(path) else []
    stem = basename(path).rsplit(".", 1)[0]
    if stem == "__init__" and folders:
        stem = folders.pop()
    sources = [(stem, STEM)]
    sources += [(folder, FOLDER * 0.8**distance) for distance, folder in enumerate(reversed(folders))]
    sources += [(part, SYMBOL) for name in change.names for part in name.split(".")]
    for text, weight in sources:
        for word in name_words(text):
            weights[word] = max(weight, weights.get(word, 0.0))
    return dict(sorted(weights.items()))


def _path_words(path: str) -> frozenset[str]:
    return frozenset(word for part in path.removesuffix(".py").split("/") for word in name_words(part))


def name_words(text: str) -> set[str]:
    """The words of a name, in the singular and in lower case; for a name in camel case, also all of them joined."""
    parts = [_singular(part.lower()) for piece in text.split("_") for part in PART.findall(piece)]
    words = {part for part in parts if len(part) > 1}
    if len(parts) > 1 and "_" not in text:
        words.add("".join(parts))
    return words - NO_WORDS


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word


def _convention(path: str, test: str) -> float:
    """How well place and name of a test follow the usual conventions for a file, in [0, 1]."""
    folders, stem = _folders_and_stem(path)
    test_folders, test_stem = _folders_and_stem(test)
    place = _shared_part(folders, test_folders)
    stems = {stem, stem.strip("_"), "_".join([*folders[-1:], stem.strip("_")])}
    if test_stem and test_stem.strip("_") in stems:
        return SAME_STEM + (1 - SAME_STEM) * place
    return SAME_PLACE * place if test_folders else 0.0


def _folders_and_stem(path: str) -> tuple[list[str], str]:
    """The folders of a file without those that only hold tests or sources, and its name without test markers.
    `__init__.py` and `tests.py` are named after their folder."""
    folders = [part for part in dirname(path).split("/") if part not in ("", "test", "tests", "src", "lib", "testing")]
    stem = TEST_NAMES.sub("", basename(path).rsplit(".", 1)[0])
    if stem in ("__init__", "tests", "test", "") and folders:
        stem = TEST_NAMES.sub("", folders.pop())
    return [TEST_NAMES.sub("", folder) for folder in folders], stem


def _shared_part(folders: list[str], others: list[str]) -> float:
    """The share of their parts in which two folders agree, from either end; the first part of one may be the project's
    own package."""
    if folders == others or folders[1:] == others:
        return 1.0
    end = commonprefix([folders[::-1], others[::-1]])
    start = commonprefix([folders[1:], others[1:] if others[:1] == folders[:1] else others])
    return max(len(start), len(end)) / max(len(folders), len(others), 1)
