"""Contradictions: where a model's account of a rollout says other than what was recorded."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from agent.measure.ids import holds
from agent.models.conversing import lines
from agent.run.action_log import commands
from agent.run.rollouts import Summary
from agent.solver.summaries.record import Record
from agent.solver.summaries.told import Told

__all__ = ["Witness", "contradictions"]

_TEST = re.compile(r"[\w./-]+::[\w:]+(?:\[[^\]\s]*\])?")
_FILE = re.compile(
    r"(?<![\w./:-])[\w./-]*\w\.(?:py|pyi|js|ts|go|rs|java|c|h|cpp|toml|cfg|ini|txt|json|md|ya?ml)\b(?!::)"
)


class Witness:
    """What a rollout's record knows by name."""

    def __init__(self, record: Record) -> None:
        self._tests = tuple(
            dict.fromkeys((*record.goals, *(test for node in record.path for test in node.report.outcomes)))
        )
        shown = [deed.seen.text for deed in record.action_records]
        done = [str(value) for deed in record.action_records for value in asdict(deed.action).values()]
        traced = record.spectrum.executed.values() if record.spectrum else ()
        files = [path for executed in traced for path in executed] + [file.path for file in record.patch]
        told = [node.label for node in record.path] + [m for n in record.path for m in n.report.messages.values()]
        self._text = "\n".join((*self._tests, *shown, *done, *files, *told))

    def tests(self, name: str) -> tuple[str, ...]:
        """The tests that a name may mean: a test, or what holds some, with or without the file before it."""
        return tuple(test for test in self._tests if holds(name, test) or test.endswith(f"::{name}"))

    def knows(self, path: str) -> bool:
        """Whether the path was named anywhere: by an action, in what came of one, in the patch, in the tests."""
        return path.removeprefix("./") in self._text


def contradictions(told: Told, journal: Summary, record: Record) -> tuple[str, ...]:
    """What the account says that is not so, and the changes that it passes over, a sentence each. `journal` is the
    summary without a model."""
    witness = Witness(record)
    found = [f"it says {told.outcome}; by the tests it is {journal.outcome}"] if told.outcome != journal.outcome else []
    found += _of_files(told, journal, witness)
    found += _of_tests(told, record, witness)
    ran = [_spaced(command) for command in commands(record.action_records)]
    found += [f"it says that `{each}` was run; it was not" for each in told.commands if not _among(_spaced(each), ran)]
    found += _of_words(told.words, witness)
    return tuple(dict.fromkeys(lines(found)))


def _of_files(told: Told, journal: Summary, witness: Witness) -> Iterator[str]:
    changed = [path.removeprefix("./") for path in told.files_changed]
    yield from (f"it says that {path} was changed; it was not" for path in changed if path not in journal.files_changed)
    yield from (f"it passes over {path}, which was changed" for path in journal.files_changed if path not in changed)
    unseen = (path for path in told.files_read if path not in journal.files_read and not witness.knows(path))
    yield from (f"it says that {path} was read; nothing in the record shows it" for path in unseen)


def _of_tests(told: Told, record: Record, witness: Witness) -> Iterator[str]:
    report = record.best.report
    for names, passed in ((told.tests_passed, True), (told.tests_failed, False)):
        for name in names:
            meant = witness.tests(name)
            if not meant:
                yield f"it names the test {name}; there is none"
            elif passed and not all(report.passed(test) for test in meant):
                yield f"it says that {name} passes; it was not seen to pass"
            elif not passed and all(report.passed(test) for test in meant):
                yield f"it says that {name} fails; it passes"


def _of_words(sentences: Sequence[str], witness: Witness) -> Iterator[str]:
    for text in sentences:
        yield from (
            f"it names the test {name}; there is none" for name in _TEST.findall(text) if not witness.tests(name)
        )
        unseen = (path for path in _FILE.findall(text) if not witness.knows(path))
        yield from (f"it names {path}; nothing in the record shows such a file" for path in unseen)


def _spaced(command: str) -> str:
    return " ".join(command.split())


def _among(told: str, ran: Sequence[str]) -> bool:
    """Whether a command is one of those that were run, or a part of one: accounts shorten."""
    return any(told in command for command in ran)
