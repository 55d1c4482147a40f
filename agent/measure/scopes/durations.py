"""Estimate how long tests take: as measured in the base state, else like tests of the same file, else like tests of
other files.

Estimates are low rather than high. A file whose estimate is too high is not run, so nothing corrects the estimate; a
file that takes longer than estimated is measured when it runs.

Tests that were not measured in the base state have to run there, too, before a state can be compared with it, so they
count twice.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from statistics import median_low

from agent.measure import SuiteReport
from agent.measure.ids import file_of

TEST_S = 0.1
"""Estimate for a test if none was measured. It counts like the mean of one more measured file."""
FILE_S = 1.0
"""Estimate for a file whose tests were never listed."""
BOTH = 2
"""Number of runs of a test without a result in the base state: one there, and one in the measured state."""


class Durations:
    """Estimated seconds for test files and functions, from the report of the base state."""

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
        """Seconds for all tests of a file. If the base state lacks results for some of them, it has to run the whole
        file, too."""
        if file not in self._listed:
            return BOTH * FILE_S
        late = self._late.get(file, 0)
        return (self._known.get(file, 0.0) + self.of_test(file) * late) * (BOTH if late else 1)

    def of_test(self, file: str) -> float:
        """Seconds for a test of this file that was not measured: the mean of those that were. If there are none, the
        (lower) median of the means of other files, because a few slow files would make an overall mean too high."""
        count = self._measured[file]
        return self._known[file] / count if count else self._usual_s

    def of_functions(self, file: str, functions: Sequence[str]) -> dict[str, float]:
        """Seconds for each of these functions, which are all test functions of the file. A function that was not
        measured is assumed to have as many tests (one for each set of parameters) as the average function."""
        each_s = self.of_test(file) * max(1.0, self._listed[file] / max(1, len(functions)))
        return {function: self._known.get(function, BOTH * each_s) for function in functions}


def _function_of(test_id: str) -> str:
    """A test's id without its parameters."""
    return test_id.split("[", 1)[0]
