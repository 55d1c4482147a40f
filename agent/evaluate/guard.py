"""The guard against cheating: a solution must not change the files that decide test results, nor forge a result.

Measuring restores protected files, so changing them gains nothing. Code inside the test process could still forge
results: in Python tests, negative controls detect that (`agent.evaluate.negative_controls`), elsewhere the guard looks
at the source. A patch that tries to cheat is never worth more than the base state. A change of an existing test is
reported to people and does not count against the patch, unless the test is disabled.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from agent.evaluate.process_exits import suspicions
from agent.measure.adapters import Adapter
from agent.measure.adapters.inner import inner_tests
from agent.measure.adapters.logs import LOG, forges
from agent.measure.diffs import FilePatch, parse
from agent.measure.protection import BUILT, SETTINGS_FILES, Protection, matches
from agent.run.tree.evaluation import MANIPULATION, Evaluation
from sandboxes import Change, Provider, Sandbox, Snapshot

CI_FILES = (".github/*", ".gitlab-ci.yml", ".travis.yml", "azure-pipelines.yml", ".circleci/*", "noxfile.py", "tox.ini")
NOT_RUN = ("*.py", "*.md", "*.rst", "*.adoc")
"""Files that are not sources in a language other than Python."""
DISABLED = re.compile(
    r"(@|\b(pytest|mark|unittest|self)\.)(skip|skipif|skipIf|skipUnless|skipTest|xfail|expectedFailure)\b"
)
PYTEST_SETTING = re.compile(
    r"\s*(\[(tool:|tool\.)?pytest|(addopts|testpaths|python_(files|classes|functions)|norecursedirs|pythonpath"
    r"|xfail_strict|usefixtures|required_plugins|collect_imported_tests|consider_namespace_packages)\s*=)"
)


@dataclass(frozen=True, slots=True)
class Flag:
    """A reason not to trust a patch."""

    path: str
    line: int
    """1-based, in the patched file; 0 means the whole file."""
    reason: str
    harmless: bool = False
    """Whether it is only reported to people, because the file is restored before tests run."""

    def __str__(self) -> str:
        return f"{self.path}{f':{self.line}' if self.line else ''}: {self.reason}"


def inspect(provider: Provider, base: Snapshot, snapshot: Snapshot, protection: Protection) -> tuple[Flag, ...]:
    """All reasons not to trust the difference between a state and the base; empty for an honest patch."""
    changes = provider.changes(base, snapshot)
    patches = {patch.path: patch for patch in parse(provider.diff(base, snapshot))}
    flags = [flag for change in changes for flag in _path_flags(change, patches.get(change.path), protection)]
    if protection.by_exit_code:
        sources = [c.path for c in changes if c.kind != "removed" and c.path in patches and c.path.endswith(".py")]
        flags += _endings(provider, snapshot, [patches[path] for path in sources if not protection.is_test(path)])
    if adapter := protection.adapter:
        if adapter.name.startswith(LOG):
            texts = [patch for patch in patches.values() if not protection.is_test(patch.path)]
            flags += [flag for patch in texts for flag in _forgeries(patch, adapter.name.removeprefix(LOG))]
        foreign = [c for c in changes if c.path in patches and not matches(c.path, (*NOT_RUN, *adapter.manifests))]
        foreign = [change for change in foreign if not protection.is_test(change.path)]
        flags += [flag for change in foreign for flag in _tricks(patches[change.path], adapter)]
        existing = [change for change in foreign if change.kind != "added"]
        if adapter.inner and existing:
            flags += _inner_flags(provider, base, snapshot, existing, adapter.inner)
    return tuple(flags)


def _endings(provider: Provider, snapshot: Snapshot, patches: Sequence[FilePatch]) -> Iterator[Flag]:
    """Flags for lines of Python that end the process."""
    with provider.at(snapshot) as box:
        for patch in patches:
            text = text_of(box, patch.path)
            # The target of a link may have a name that is not a source's, so that it is checked nowhere else.
            lines: Collection[int] = range(1, text.count("\n") + 2) if patch.link else patch.added.keys()
            yield from (Flag(patch.path, line, why) for line, why in suspicions(text, lines))


def _tricks(patch: FilePatch, adapter: Adapter) -> Iterator[Flag]:
    """Flags for lines that talk to the test runner, in a language other than Python."""
    matched = ((line, adapter.tricks.search(text)) for line, text in patch.added.items())
    yield from (Flag(patch.path, line, f"talks to the test runner: {trick[0]!r}") for line, trick in matched if trick)


def _forgeries(patch: FilePatch, parser: str) -> Iterator[Flag]:
    """Flags for source lines with a log's text for a passed test. Documents, which may quote it, are exempt."""
    if not matches(patch.path, NOT_RUN[1:]):
        forged = (line for line, text in patch.added.items() if forges(parser, text))
        yield from (Flag(patch.path, line, "holds what the log says of a test that passed") for line in forged)


def _inner_flags(
    provider: Provider, base: Snapshot, snapshot: Snapshot, changes: Sequence[Change], inner: re.Pattern[str]
) -> Iterator[Flag]:
    """Flags for sources in which an existing inner test was changed. New inner tests are harmless."""
    with provider.at(base) as before, provider.at(snapshot) as after:
        for change in changes:
            kept = text_of(after, change.path)
            if any(test not in kept for test in inner_tests(text_of(before, change.path), inner)):
                yield Flag(change.path, 0, "an existing test inside of the source was changed")


def text_of(box: Sandbox, path: str) -> str:
    """The text of a file; empty if it does not exist, for example behind a dangling link."""
    try:
        return box.read(path).decode(errors="replace")
    except OSError:
        return ""


def cap(evaluation: Evaluation, base: Evaluation, flags: tuple[Flag, ...]) -> Evaluation:
    """The evaluation of a state with these flags. If a flag is not harmless, the state is not solved, not accepted by a
    critic, and worth at most as much as the base."""
    flags = tuple(flag for flag in flags if not flag.harmless)
    if not flags:
        return evaluation
    notes = "\n".join([MANIPULATION, *map(str, flags[:10])])
    parts = {name: part for name, part in evaluation.parts.items() if name not in ("accept", "reproduction")}
    if "tests" in parts:
        parts["tests"] = min(parts["tests"], base.value)
    value = min(evaluation.value, base.value)
    return replace(evaluation, value=value, solved=False, parts=parts, notes=notes, opinion="", reproduced_by=())


def _path_flags(change: Change, patch: FilePatch | None, protection: Protection) -> Iterator[Flag]:
    path = change.path
    if protection.configures(change):
        yield Flag(path, 0, f"{change.kind}: it tells the test runner what to do")
    elif protection.is_test(path) and not matches(path, BUILT):
        if change.kind == "removed":
            yield Flag(path, 0, "a file among the tests was removed")
        elif change.kind == "modified" and patch is not None:
            disabled = next(filter(DISABLED.search, patch.added.values()), "")
            if disabled:
                yield Flag(path, 0, f"a test was disabled: {disabled.strip()[:80]}")
            elif patch.removed:
                yield Flag(path, 0, "an existing test or its data was changed", harmless=True)
    elif matches(path, SETTINGS_FILES) and patch is not None:
        if any(PYTEST_SETTING.match(line) for line in _changed_lines(patch)):
            yield Flag(path, 0, "settings of the test runner were changed")
    elif protection.adapter and patch is not None and matches(path, protection.adapter.manifests):
        if any(protection.adapter.config_lines.match(line) for line in _changed_lines(patch)):
            yield Flag(path, 0, "how the tests are run was changed")
    elif matches(path, CI_FILES):
        yield Flag(path, 0, "it decides how the tests are run")


def _changed_lines(patch: FilePatch) -> list[str]:
    return [*patch.added.values(), *patch.removed]
