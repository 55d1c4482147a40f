"""Run the tests of the base state once, and record which lines each test executes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent.measure import SuiteReport
from agent.measure.probing.spectrum import Lines, Spectrum
from agent.measure.protection import Protection
from agent.measure.reading import from_transcript
from agent.measure.suite import rules_for, run_with_plugins
from agent.measure.warm.plugins import install_reporter, install_tracer, run_names
from agent.parsing import loads
from agent.task import Task
from sandboxes import Change, Provider, Snapshot

NOTHING = "no line of the repository ran under the tracer: another tracer replaced it, or other processes ran the code"


def trace(provider: Provider, task: Task, base: Snapshot, baseline: SuiteReport, tests: Sequence[str] = ()) -> Spectrum:
    """Run these tests of the base state, or all if none is named, and record what they execute.

    For a test that times out, the lines that it ran until then are recorded. If lines cannot be recorded, the spectrum
    is empty and says why.
    """
    if baseline.adapter != "pytest":
        return Spectrum(baseline.outcomes, problem="lines can be recorded for pytest only")
    rules = rules_for(provider, task, base, baseline)
    names = run_names(rules.site_packages, trace=True)
    with provider.scratch(base, base) as box:
        install_reporter(box, names, tests, rules.limits)
        lines_file = install_tracer(box, names)
        transcript, result = run_with_plugins(box, task.test_command, names, rules.limits)
        report = from_transcript(transcript, result, tests)
        if not report.valid:
            return Spectrum(report.outcomes, problem=report.problem)
        try:
            found = loads(box.read(lines_file))
        except ValueError as error:
            return Spectrum(report.outcomes, problem=f"the tests changed the coverage file: {error}")
        except FileNotFoundError:
            return Spectrum(report.outcomes, problem="no coverage package works with the Python of the tests")
    lines = {test: _sources(files, rules.protection) for test, files in found.items()}
    imported = lines.pop("", {})
    problem = "" if imported or any(lines.values()) else NOTHING
    return Spectrum(report.outcomes, {test: lines.get(test, {}) for test in report.outcomes}, imported, problem)


def _sources(files: Mapping[str, Sequence[int]], protection: Protection) -> Lines:
    """The lines of the files that a patch may change."""
    return {
        path: tuple(sorted(set(numbers)))
        for path, numbers in sorted(files.items())
        if not protection.covers(Change(path, "modified"))
    }
