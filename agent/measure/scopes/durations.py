"""How long tests of the base state take: as measured, else estimated by those of the same file, else of other files.

Estimates are low rather than high. A file that is taken for too long is not run, so nothing corrects that; one that
takes longer than thought is measured by that.

What was not measured in the base state has to run there, too, before the state can be compared: it counts twice.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from statistics import median_low

from agent.measure import SuiteReport
from agent.measure.ids import file_of

TEST_S = 0.1
"""Estimate for a test when none was measured; it then counts like a measured file."""
FILE_S = 1.0
"""Estimate for a file whose tests were never listed."""
BOTH = 2
"""Runs of what the base state lacks: there, and in the state."""


class Durations:
    """Seconds to measure a state by files and by functions, from the report of the base state."""

    def __init__(self, report: SuiteReport) -> None:
        self._late = report.late
        self._listed = Counter(map(file_of, report.outcomes)) + Counter(report.late)
        self._measured = Counter(map(file_of, report.durations))
        self._known: defaultdict[str, float] = defaultdict(float)
        for test, duration_s in report.durations.items():
            for name in {file_of(test), _function_of(test)}:
                self._known[name] += duration_s
        means = [self._known[file] / count for file, count in self._measured.items()]
        self._usual_s = median_low([TEST_S, *means])

    def of_file(self, file: str) -> float:
        """Seconds for all tests of a file. The base state runs a file as a whole if it lacks some of its tests."""
        if file not in self._listed:
            return BOTH * FILE_S
        late = self._late.get(file, 0)
        return (self._known.get(file, 0.0) + self.of_test(file) * late) * (BOTH if late else 1)

    def of_test(self, file: str) -> float:
        """Seconds for a test of a file that was not measured: the mean of those that were. Without any, what is usual
        in other files: the (lower) median of their means, as a few slow files would make the mean of all too high."""
        count = self._measured[file]
        return self._known[file] / count if count else self._usual_s

    def of_functions(self, file: str, functions: Sequence[str]) -> dict[str, float]:
        """Seconds for each of these functions, given that the file has no others. One that was not measured has as many
        parameters as the mean of all."""
        each_s = self.of_test(file) * max(1.0, self._listed[file] / max(1, len(functions)))
        return {function: self._known.get(function, BOTH * each_s) for function in functions}


def _function_of(test_id: str) -> str:
    """A test's id without its parameters."""
    return test_id.split("[", 1)[0]
