"""Contradictions between a model's account of a rollout and the journal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from agent.measure.ids import holds
from agent.models.answers import lines
from agent.run.action_log import commands
from agent.run.rollouts import Summary
from agent.solver.summaries.account import Account
from agent.solver.summaries.record import Record

_TEST = re.compile(r"[\w./-]+::[\w:]+(?:\[[^\]\s]*\])?")
_FILE = re.compile(
    r"(?<![\w./:-])[\w./-]*\w\.(?:py|pyi|js|ts|go|rs|java|c|h|cpp|toml|cfg|ini|txt|json|md|ya?ml)\b(?!::)"
)


class RecordedNames:
    """The names of tests and files that occur in a rollout's record."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self._tests = tuple(
            dict.fromkeys(
                (*record.goals, *_own(record), *(test for node in record.path for test in node.report.outcomes))
            )
        )
        observations = [each.seen.text for each in record.action_records]
        arguments = [str(value) for each in record.action_records for value in asdict(each.action).values()]
        traced = record.spectrum.executed.values() if record.spectrum else ()
        files = [path for executed in traced for path in executed] + [file.path for file in record.patch]
        labels = [node.label for node in record.path]
        messages = [message for node in record.path for message in node.report.messages.values()]
        self._text = "\n".join((*self._tests, *observations, *arguments, *files, *labels, *messages))

    def tests(self, name: str) -> tuple[str, ...]:
        """Return the tests that a name may mean: a test or a group of tests, with or without the file before it."""
        return tuple(test for test in self._tests if holds(name, test) or test.endswith(f"::{name}"))

    def knows(self, path: str) -> bool:
        """Whether the path occurs in an action, an observation, the patch or the tests."""
        return path.removeprefix("./") in self._text


def contradictions(account: Account, journal: Summary, names: RecordedNames) -> tuple[str, ...]:
    """Return the false statements of the account and the changes that it omits, one sentence each. `journal` is the
    summary made without a model."""
    found = list[str]()
    if account.outcome != journal.outcome and not (
        journal.outcome == "submitted" and account.outcome in ("solved", "improved")
    ):
        found.append(f"it says {account.outcome}; by the tests it is {journal.outcome}")
    found += _of_files(account, journal, names)
    found += _of_tests(account, names)
    ran = [" ".join(command.split()) for command in commands(names.record.action_records)]
    for command in account.commands:
        if not any(" ".join(command.split()) in longer for longer in ran):  # accounts shorten commands
            found.append(f"it says that `{command}` was run; it was not")
    found += _of_words(account.words, names)
    return tuple(dict.fromkeys(lines(found)))


def _of_files(account: Account, journal: Summary, names: RecordedNames) -> Iterator[str]:
    changed = [path.removeprefix("./") for path in account.files_changed]
    yield from (f"it says that {path} was changed; it was not" for path in changed if path not in journal.files_changed)
    yield from (f"it passes over {path}, which was changed" for path in journal.files_changed if path not in changed)
    unseen = (path for path in account.files_read if path not in journal.files_read and not names.knows(path))
    yield from (f"it says that {path} was read; nothing in the record shows it" for path in unseen)


def _of_tests(account: Account, names: RecordedNames) -> Iterator[str]:
    report, own = names.record.best.report, _own(names.record)
    for claimed, passed in ((account.tests_passed, True), (account.tests_failed, False)):
        for name in claimed:
            meant = names.tests(name)
            passes = all(report.passed(test) or test in own for test in meant)
            if not meant:
                yield f"it names the test {name}; there is none"
            elif passed and not passes:
                yield f"it says that {name} passes; it was not seen to pass"
            elif passes and not passed:
                yield f"it says that {name} fails; it passes"


def _own(record: Record) -> tuple[str, ...]:
    """Return the tests that the attempt added and that pass with its change. The report of the task's tests does not
    contain them."""
    return record.best.evaluation.reproduced_by


def _of_words(sentences: Sequence[str], names: RecordedNames) -> Iterator[str]:
    for text in sentences:
        yield from (f"it names the test {name}; there is none" for name in _TEST.findall(text) if not names.tests(name))
        unseen = (path for path in _FILE.findall(text) if not names.knows(path))
        yield from (f"it names {path}; nothing in the record shows such a file" for path in unseen)
