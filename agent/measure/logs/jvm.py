"""What Maven, Gradle and Ant print."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator

from agent.measure import Outcome
from agent.measure.logs.lines import by_line, outcome_of

CLASS = re.compile(
    r"(?:\[\w+\] )?Tests run: (\d+), Failures: (\d+), Errors: (\d+), Skipped: (\d+).*? -{1,2} in (\S+)(?: .*)?"
)
METHOD = re.compile(r"(?:\[\w+\] )?(\S+?)(?:\(([\w.$]+)\))?(?:[( ].*?)?  ?(?:-- )?Time elapsed: .*<<< (FAILURE|ERROR)!")
ASKED = re.compile(r".*-Dtest=[\"']?([^\s\"']+).*")
BUILD = re.compile(r".*BUILD (SUCCESS|FAILURE)")
GRADLE = re.compile(r"(\S.*? > .+?) (PASSED|FAILED|SKIPPED)")
NAMED = re.compile(r"\S+ > \S+")


def maven(text: str) -> Iterator[tuple[str, Outcome]]:
    """`package.Class` as a whole, and `package.Class.method` of failures: Maven does not name the other methods."""
    for line in text.split("\n"):
        stripped = line.strip()
        if match := CLASS.fullmatch(stripped):
            yield match[5], _whole(*(int(number) for number in match.groups()[:4]))
        elif match := METHOD.fullmatch(stripped):
            yield f"{match[2]}.{match[1]}" if match[2] else match[1], outcome_of(match[3])


def single(text: str) -> Iterator[tuple[str, Outcome]]:
    """`Class#method` of runs of one test each (`mvn -Dtest=...`, echoed by `set -x`), with the outcome of the build.
    The shell's echo may appear after the outcome of the build, since both write to the log."""
    asked, early = deque[str](), deque[Outcome]()
    for line in text.split("\n"):
        if match := ASKED.fullmatch(line.strip()):
            asked.append(match[1])
        elif match := BUILD.fullmatch(line.strip()):
            if asked:
                yield asked.popleft(), outcome_of(match[1])
            else:
                early.append(outcome_of(match[1]))
    yield from zip(asked, early, strict=False)


def gradle(text: str) -> Iterator[tuple[str, Outcome]]:
    """`package.Class > method`, if the build prints its test events; the outcome may be on a later line."""
    waiting = ""
    for line in text.split("\n"):
        stripped = line.strip()
        if match := GRADLE.fullmatch(stripped):
            yield match[1], outcome_of(match[2])
            waiting = ""
        elif NAMED.fullmatch(stripped):
            waiting = stripped
        elif waiting and stripped in ("PASSED", "FAILED", "SKIPPED"):
            yield waiting, outcome_of(stripped)
            waiting = ""


ant = by_line(r"\[junit\]\s+\[(?P<end>PASS|FAIL|ERR)\]\s+(?P<test>.*)")


def _whole(run: int, failures: int, errors: int, skipped: int) -> Outcome:
    if errors or failures:
        return Outcome.ERROR if errors else Outcome.FAILED
    return Outcome.PASSED if run > skipped else Outcome.SKIPPED
