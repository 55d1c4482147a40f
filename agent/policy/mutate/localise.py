"""Fault localisation: Ochiai suspiciousness of lines, boosted by where the failures crashed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from math import sqrt

from agent.measure.messages import places_of

BOOST = 1.5
Suspicion = Mapping[str, Mapping[int, float]]
"""For each path and 1-based line, a value in [0, 1]: 1 is executed by every failing test and by no passing one."""


def ochiai(
    lines: Mapping[str, Iterable[tuple[str, int]]], failing: Collection[str], passing: Collection[str]
) -> Suspicion:
    """The suspicion of each (path, line) that a failing test executed, from the lines of each test.

    Ochiai coefficient, as in Abreu et al., "On the Accuracy of Spectrum-based Fault Localization" (TAICPART 2007).
    """
    failed: Counter[tuple[str, int]] = Counter()
    passed: Counter[tuple[str, int]] = Counter()
    ran = 0
    for test, executed in lines.items():
        if test in failing:
            failed.update(set(executed))
            ran += 1
        elif test in passing:
            passed.update(set(executed))
    suspicion: dict[str, dict[int, float]] = defaultdict(dict)
    for (path, line), count in failed.items():
        suspicion[path][line] = count / sqrt(ran * (count + passed[path, line]))
    return suspicion


def crash_sites(messages: Iterable[str], is_source: Callable[[str], bool]) -> Mapping[tuple[str, int], float]:
    """For each source line, its share of the failures that ended in the sources; outer frames count a tenth."""
    sites: Counter[tuple[str, int]] = Counter()
    ended = 0
    for message in messages:
        frames = places_of(message)
        if not frames or not is_source(frames[-1][0]):
            continue
        ended += 1
        sites[frames[-1]] += 10
        sites.update({frame for frame in frames[:-1] if is_source(frame[0])} - {frames[-1]})
    return {site: count / (10 * ended) for site, count in sites.items()}


def boosted(suspicion: Suspicion, crashes: Mapping[tuple[str, int], float]) -> Suspicion:
    """The suspicion, multiplied by up to `1 + BOOST` at lines where failures ended; only relative values matter."""
    return {
        path: {line: value * (1 + BOOST * crashes.get((path, line), 0.0)) for line, value in lines.items()}
        for path, lines in suspicion.items()
    }
