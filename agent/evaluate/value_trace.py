"""Value traces: the values that one test run showed, as a short text for the policy that repairs the code.

This is the instrumentation of TraceCoder (arXiv 2602.06875) without its probes in the source: values are recorded from
outside, so that no probe can end up in a patch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from agent.counting import counted
from agent.measure.probing.probes import Probe, ProbedRun
from agent.measure.probing.watched import Function, ProbeResult, Series, Watched

SOURCE_CHARACTERS = 90
VALUE_CHARACTERS = 200
CHANGE_CHARACTERS = 60
"""The most characters of a value that are shown beside a line."""
LINES = 40
"""How many lines of one function are shown."""
FUNCTIONS = 6
NAMED = 12
"""How many functions are named as alternatives to one that was never called."""


def describe(probed: ProbedRun, test: str, probes: tuple[Probe, ...]) -> str:
    """How and where the test ended, then the values: at each probe, or without probes in the functions that were active
    last."""
    watched = probed.watched
    if watched is None:
        why = probed.report.problem or "it did not come so far as to run a test"
        return f"Nothing was seen of {test}: {why}\n{probed.report.output}".strip()
    outcome = probed.report.outcomes.get(watched.id)
    parts = [_ending(probed, watched, outcome.value if outcome else "did not end")]
    parts += [_probed(probe, result, watched) for probe, result in zip(probes, watched.probes, strict=False)]
    functions = [f for f in watched.functions if f.wanted is not None or not probes][-FUNCTIONS:]
    parts += map(partial(_listing, probed.sources), functions)
    if watched.stopped:
        parts.append(f"The later part of the test was not watched: {watched.stopped}. Name probes to look there.")
    return "\n\n".join(filter(None, parts))


def _ending(probed: ProbedRun, watched: Watched, outcome: str) -> str:
    error = watched.error
    if error is None:
        return f"{watched.id}: {outcome}"
    lines = [f"{watched.id}: {outcome}, {error.said}", "It came from:"]
    calls = [f"  {f.path}:{f.line} in {f.name}: {_source(probed.sources, f.path, f.line)}" for f in error.frames]
    if error.left_out:
        calls.insert(len(calls) // 2, f"  ... {error.left_out} more calls ...")
    lines += calls
    if error.frames:
        lines += [f"      {name} = {value}" for name, value in error.frames[-1].values.items()]
    return "\n".join(lines)


def _probed(probe: Probe, result: ProbeResult, watched: Watched) -> str:
    """The values at a line, or why a probe has none; empty for a function that is listed."""
    if result.problem:
        return f"{probe}: the sandbox's Python cannot read the expression: {result.problem}"
    if not result.calls:
        others = ", ".join(watched.called[:NAMED]) or "none"
        what = "no such function was" if probe.name else "no function that holds this line was"
        return f"{probe}: {what} called while the test ran. Functions of the repository that were: {others}"
    if probe.name:
        return ""
    if not result.hits:
        nearest = min(result.ran, key=lambda line: abs(line - probe.line), default=None)
        near = f"; the nearest line that ran is {nearest}" if nearest else ""
        return f"{probe}: the line was never reached, in {counted(result.calls, 'call')} of its function{near}"
    count = result.values.count
    cut = f" (of the first {count})" if count < result.hits else ""
    return f"{probe}: reached {counted(result.hits, 'time')}; values{cut}: {_series(result.values)}"


def _listing(sources: Mapping[str, tuple[str, ...]], function: Function) -> str:
    """The lines that ran in a function's last call, each with the values that it changed."""
    call = function.last
    arguments = ", ".join(f"{name}={value}" for name, value in call.arguments.items())
    lines = [f"{function.name} ({function.path}:{function.line}), called {counted(function.calls, 'time')}"]
    if function.wanted is not None and function.wanted.count > 1:
        lines += [f"  {value}" for value in _shortened(function.wanted)]
    lines.append(f"The last call that was watched: ({arguments}) {call.ended or 'did not end'}".rstrip())
    lines += [_line(sources, function.path, *line) for line in call.lines[:LINES]]
    if len(call.lines) > LINES:
        lines.append(f"  ... and {len(call.lines) - LINES} more lines that ran")
    if function.cut:
        lines.append("  (It ran very many lines: the later ones, and later calls, are not shown.)")
    return "\n".join(lines)


def _line(
    sources: Mapping[str, tuple[str, ...]], path: str, line: int, hits: int, changed: Mapping[str, Series]
) -> str:
    became = "; ".join(f"{name} = {_series(series, CHANGE_CHARACTERS)}" for name, series in changed.items())
    notes = ", ".join(filter(None, (f"{hits} times" if hits > 1 else "", became)))
    return f"{line:5}  {_source(sources, path, line)}{f'   # {notes}' if notes else ''}"


def _series(series: Series, most: int = VALUE_CHARACTERS) -> str:
    return " | ".join(value if len(value) <= most else f"{value[:most]}..." for value in _shortened(series))


def _shortened(series: Series) -> Iterator[str]:
    yield from series.first
    left_out = series.count - len(series.first) - len(series.last)
    if left_out > 0:
        yield f"... {left_out} more ..."
    yield from series.last


def _source(sources: Mapping[str, tuple[str, ...]], path: str, line: int) -> str:
    lines = sources.get(path, ())
    return lines[line - 1][:SOURCE_CHARACTERS].rstrip() if 0 < line <= len(lines) else "?"
