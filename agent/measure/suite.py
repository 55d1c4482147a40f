"""Run a task's tests in a scratch fork.

Invariant: everything outside the workspace, and every protected file in it, is as in the base state.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from weakref import WeakKeyDictionary

from agent.measure import Outcome, SuiteReport
from agent.measure.adapters.registry import adapter_of, framework_of
from agent.measure.adapters.running import UNKNOWN, run_adapted, run_unknown
from agent.measure.ids import file_of
from agent.measure.parts import run_in_parts
from agent.measure.protection import Protection, protect
from agent.measure.reading import Transcript, fetch, from_exit_code, from_transcript
from agent.measure.warm.plugins import Limits, RunNames, find_site_packages, install_reporter, run_names, shell
from agent.measure.warm.rewritten import Rewritten
from agent.measure.warm.runner import Warm, find_warm
from agent.task import Task
from sandboxes import Change, ExecResult, Provider, Sandbox, Snapshot
from sandboxes.forking.shell import run_script

GENEROUS = Limits(cpu_s=20, wall_s=120, run_s=600, timeouts=1_000_000)
"""Limits for a suite that has never run."""

MORE_TIMEOUTS = 3
"""A run is cut short if this many more tests time out than in the base state."""

NO_FILES: Mapping[str, bytes] = MappingProxyType({})
_Found = tuple[tuple[str, ...], Warm | None, Rewritten]
_FOUND: WeakKeyDictionary[Provider, dict[tuple[str, str], _Found]] = WeakKeyDictionary()
"""By provider, then by base state and command: the site-packages folders, the template and the archives of rewritten
test files. Looking them up takes as long as a quick test."""


@dataclass(frozen=True, slots=True)
class Rules:
    """How the states of a task are measured."""

    protection: Protection
    site_packages: tuple[str, ...]
    """Further folders that get the reporting plugin."""
    limits: Limits = GENEROUS
    adapter: str = "pytest"
    warm: Warm | None = None
    """How runs are copied from a template; None: each run starts a new process."""
    by_path: bool = False
    """Give pytest the files of the named tests instead of the command's own selection."""
    rewritten: Rewritten = field(default_factory=Rewritten, compare=False, repr=False)
    """The test files that pytest does not have to rewrite again."""


def rules_for(provider: Provider, task: Task, base: Snapshot, baseline: SuiteReport | None = None) -> Rules:
    """Return the rules for measuring the states of a task. Without a baseline, protection is based on file names and
    `task.protected_paths`."""
    adapter = baseline.adapter if baseline else framework_of(task.framework, task.test_command)
    protection = protect(task, baseline or SuiteReport())
    limits = calibrate(baseline) if baseline else GENEROUS
    if adapter_of(adapter):
        return Rules(protection, (), limits, adapter)
    site_packages, warm, rewritten = _looked_up(provider, base, task.test_command)
    warm = warm if baseline and adapter == "pytest" else None
    return Rules(protection, site_packages, limits, adapter, warm, rewritten=rewritten)


def _looked_up(provider: Provider, base: Snapshot, command: str) -> _Found:
    known = _FOUND.setdefault(provider, {})
    key = (base.id, command)
    if key not in known:
        with provider.at(base) as box:
            known[key] = find_site_packages(box, command), find_warm(box, command), Rewritten()
    return known[key]


def calibrate(baseline: SuiteReport) -> Limits:
    """Derive limits from how long passing tests take. They are generous: a repaired test may be the slowest of all, and
    tests take longer on a loaded machine."""
    slowest = max((baseline.durations.get(test, 0.0) for test in baseline.passes), default=0.0)
    cpu_s = max(3.0, 10 * slowest)
    wall_s = max(15.0, 4 * cpu_s)
    timeouts = sum(outcome is Outcome.TIMEOUT for outcome in baseline.outcomes.values()) + MORE_TIMEOUTS
    return Limits(cpu_s, wall_s, max(120.0, 4 * baseline.duration_s + 2 * wall_s), timeouts)


def run_suite(
    provider: Provider,
    task: Task,
    snapshot: Snapshot,
    base: Snapshot,
    tests: Sequence[str] = (),
    rules: Rules | None = None,
    files: Mapping[str, bytes] = NO_FILES,
) -> SuiteReport:
    """In a fork of `snapshot`, reset the protected files to `base`, write `files`, and run the tests (all if none is
    named).

    Raises:
        sandboxes.SandboxError: the sandbox failed, not the tests.
    """
    rules = rules or rules_for(provider, task, base)
    put_back = [change.path for change in provider.changes(base, snapshot) if rules.protection.covers(change)]
    return run_restored(provider, task, snapshot, base, put_back, tests, rules, files)


def run_restored(
    provider: Provider,
    task: Task,
    snapshot: Snapshot,
    base: Snapshot,
    put_back: Sequence[str],
    tests: Sequence[str],
    rules: Rules,
    files: Mapping[str, bytes] = NO_FILES,
) -> SuiteReport:
    """Like `run_suite`, but reset exactly the paths `put_back`. The report is invalid if one of `files` cannot be
    written."""
    with provider.scratch(snapshot, base, put_back) as box:
        if problem := _write(box, files):
            return SuiteReport(valid=False, problem=problem)
        if rules.adapter == "exit-code":
            return from_exit_code(run_script(box, task.test_command, timeout_s=rules.limits.run_s))
        if rules.adapter == UNKNOWN:
            return run_unknown(box, task.test_command, rules.limits)
        if adapter := adapter_of(rules.adapter):
            return run_adapted(box, adapter, task.test_command, tests, rules.limits)
        is_base = snapshot.digest == base.digest and not files
        transcript, result = _run_pytest(box, task.test_command, tests, rules, archive=is_base)
    report = from_transcript(transcript, result, tests)
    return replace(report, command=_by_path(task.test_command, tests)) if rules.by_path else report


def copy_run(
    provider: Provider, snapshot: Snapshot, base: Snapshot, tests: Sequence[str], rules: Rules, *, session: bool
) -> SuiteReport:
    """Like `run_suite`, but copy the run from the template of `rules.warm`. `session`: copy it from a session of the
    base state if possible; otherwise from a process that has only imported pytest and its plugins.

    Raises:
        sandboxes.TemplateLost: this sandbox has no such template, or it failed.
    """
    warm, protection, limits = rules.warm, rules.protection, rules.limits
    assert warm is not None
    changes = provider.changes(base, snapshot)
    put_back = [change.path for change in changes if protection.covers(change)]
    edited = _edited([change for change in changes if not protection.covers(change)]) if session else None
    report, nonce = f"/tmp/{secrets.token_hex(16)}", secrets.token_hex(16)  # noqa: S108  # inside the sandbox
    with provider.scratch(snapshot, base, put_back, warm.template) as box:
        result = box.perform(warm.request(tests, edited, report, nonce, limits), timeout_s=limits.kill_s)
        transcript = Transcript() if result.timed_out else fetch(box, report, nonce)
    return replace(from_transcript(transcript, result, tests), start=transcript.start)


def _edited(changes: Sequence[Change]) -> list[str] | None:
    """The edited Python files; None if there are other changes too."""
    edited = [change.path for change in changes if change.kind == "modified" and change.path.endswith(".py")]
    return edited if len(edited) == len(changes) else None


def _write(box: Sandbox, files: Mapping[str, bytes]) -> str:
    """Write the files; return why one could not be written (for example, a directory is in the way), else ""."""
    try:
        for path, content in files.items():
            box.write(path, content)
    except OSError as error:
        return f"a test file could not be written: {error}"
    return ""


def _run_pytest(
    box: Sandbox, command: str, tests: Sequence[str], rules: Rules, *, archive: bool
) -> tuple[Transcript, ExecResult]:
    if rules.limits.jobs > 1 and not rules.by_path:
        limits, rewritten = rules.limits, rules.rewritten
        return run_in_parts(box, command, tests, rules.site_packages, limits, rewritten, archive=archive)
    names = run_names(rules.site_packages)
    archives = rules.rewritten.write(box, names)
    install_reporter(box, names, tests, rules.limits, by_path=rules.by_path, archives=archives, archive=archive)
    transcript, result = run_with_plugins(box, command, names, rules.limits)
    if archive and not result.timed_out:
        rules.rewritten.fetch(box, names)
    return transcript, result


def run_with_plugins(box: Sandbox, command: str, names: RunNames, limits: Limits) -> tuple[Transcript, ExecResult]:
    """Run the command with the plugins installed and read its report. The transcript is empty if the fork was lost."""
    result = box.exec(shell(command, names), timeout_s=limits.kill_s)
    return (Transcript() if result.timed_out else fetch(box, names.report, names.nonce)), result


def _by_path(command: str, tests: Sequence[str]) -> str:
    files = " ".join(dict.fromkeys(map(file_of, tests)))
    return f"{command} (with {files} instead of its own tests)"
