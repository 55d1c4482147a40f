"""Run one test in a scratch fork and record the values of its variables. The state itself does not change.

The facts come from a process in which the patch's own code ran. A policy may read them, but no decision depends on
them.
"""

from __future__ import annotations

import posixpath
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from types import CodeType

from agent.errors import MeasureError
from agent.measure import SuiteReport
from agent.measure.probing.watched import Watched, first_failure
from agent.measure.reading import from_transcript
from agent.measure.suite import Rules, run_with_plugins
from agent.measure.warm.plugins import install_prober, run_names
from agent.parsing import expression_tree
from agent.task import Task
from sandboxes import Provider, Sandbox, Snapshot

SLOWDOWN = 2
"""How many times longer than usual a watched test may take."""
FILE_BYTES = 1_000_000
"""Longer files are not probed by line: Python would need too much memory to parse them."""

_WARNING_FILTERS = threading.Lock()


@dataclass(frozen=True, slots=True)
class Probe:
    """What to watch: all local names or one expression just before a line runs; or the calls of a function."""

    path: str = ""
    line: int = 0
    expression: str = ""
    name: str = ""
    """The name of a function, qualified by class and module as far as necessary; empty for a line."""

    def __str__(self) -> str:
        return self.name or f"{self.path}:{self.line}{f': {self.expression}' if self.expression else ''}"


@dataclass(frozen=True, slots=True)
class ProbedRun:
    """What a probed run showed."""

    report: SuiteReport
    watched: Watched | None = None
    """What was seen of the first failed test, else of the last one; None if the run did not get that far."""
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The lines of each file that `watched` names."""


def read_probe(text: str) -> Probe:
    """Parse a probe as a policy writes it: `PATH:LINE`, `PATH:LINE: EXPRESSION`, or the name of a function.

    Raises:
        MeasureError: the text is none of these.
    """
    path, _, rest = text.strip().partition(":")
    line, _, expression = rest.partition(":")
    if line.strip().isdecimal() and path and len(line) <= 9:
        return Probe(posixpath.normpath(path.strip()), int(line), _checked(expression.strip()))
    name = text.strip().removesuffix("()")
    if all(part.isidentifier() for part in name.split(".")):
        return Probe(name=name)
    raise MeasureError(
        f"the probe {text[:100]!r} is neither PATH:LINE, nor PATH:LINE: EXPRESSION, nor the name of a function"
    )


def run_probes(
    provider: Provider,
    task: Task,
    snapshot: Snapshot,
    base: Snapshot,
    put_back: Sequence[str],
    test: str,
    probes: Sequence[Probe],
    rules: Rules,
) -> ProbedRun:
    """In a fork of `snapshot` with the paths `put_back` as in `base`, run the test and record what the probes ask for;
    without probes, record the last call of each workspace function.

    Raises:
        MeasureError: a probe's file or line cannot be reached; nothing was run.
        sandboxes.SandboxError: the sandbox failed, not the test.
    """
    limits = replace(
        rules.limits, cpu_s=SLOWDOWN * rules.limits.cpu_s, wall_s=SLOWDOWN * rules.limits.wall_s, timeouts=1
    )
    limits = replace(limits, run_s=limits.run_s + limits.wall_s)
    with provider.scratch(snapshot, base, put_back) as box:
        reachable = [_reachable_probe(box, probe) for probe in probes]
        names = run_names(rules.site_packages)
        install_prober(box, names, [test], limits, [asdict(probe) for probe in reachable], by_path=rules.by_path)
        transcript, result = run_with_plugins(box, task.test_command, names, limits)
        watched = first_failure(transcript.values)
        sources = {} if watched is None or result.timed_out else {p: _lines(box, p) for p in sorted(_paths(watched))}
    return ProbedRun(from_transcript(transcript, result, [test]), watched, sources)


def _checked(expression: str) -> str:
    try:
        with _quietly():
            expression_tree(expression or "0")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise MeasureError(f"the expression {expression[:100]!r} of a probe cannot be read: {error}") from error
    return expression


def _reachable_probe(box: Sandbox, probe: Probe) -> Probe:
    """Return the probe with its path relative to the workspace. Its line has to be one that can be reached."""
    if probe.name:
        return probe
    inside = probe.path.removeprefix(f"{posixpath.normpath(box.workdir)}/")
    try:
        source = box.read(inside)
    except OSError as error:
        raise MeasureError(f"the probe `{probe}`: there is no file {probe.path}") from error
    if len(source) > FILE_BYTES:
        raise MeasureError(
            f"the probe `{probe}`: {probe.path} has {len(source)} bytes, and in a file of more than {FILE_BYTES} none "
            "is placed at a line; name a function instead"
        )
    lines = _reachable(source)
    if lines and probe.line not in lines:
        nearest = min(lines, key=lambda line: (abs(line - probe.line), line))
        raise MeasureError(
            f"the probe `{probe}`: line {probe.line} of {probe.path} holds nothing that runs inside a function; the "
            f"nearest line that does is {nearest}"
        )
    return replace(probe, path=inside)


def _reachable(source: bytes) -> set[int]:
    """Return the lines with code inside functions; none if they are unknown, for example in a file for another Python
    version."""
    try:
        with _quietly():
            module = compile(source, "<probed>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    return {line for code in _codes(module) for line in _body(code)}


@contextmanager
def _quietly() -> Iterator[None]:
    """Suppress Python's warnings about an agent's code. Warning filters are global to the process."""
    with _WARNING_FILTERS, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _body(code: CodeType) -> set[int]:
    """The lines of a function without the first one, unless it has no other."""
    lines = {line for _, _, line in code.co_lines() if line}
    return lines - {code.co_firstlineno} or lines


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The functions in a code object. Class bodies do not count: they run during the import."""
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            if inner.co_flags & 1:  # CO_OPTIMIZED: a function
                yield inner
            yield from _codes(inner)


def _paths(watched: Watched) -> set[str]:
    frames = watched.error.frames if watched.error else ()
    return {function.path for function in watched.functions} | {frame.path for frame in frames}


def _lines(box: Sandbox, path: str) -> tuple[str, ...]:
    try:
        return tuple(box.read(path).decode(errors="replace").replace("\r\n", "\n").split("\n"))
    except OSError:
        return ()
