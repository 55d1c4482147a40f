"""Runs unittest's own program with a result that says, from inside the sandbox, how each test ended.

It is planted in a package of a random name and run as `python -m`. Stdlib only, Python 3.8 and later.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
import unittest
from typing import Any

from .channel import Channel
from .failures import Failures

ROOT = os.getcwd()  # tests may go elsewhere
clock = time.perf_counter


class Result(unittest.TextTestResult):
    """Says each test's end; a failure stands whatever follows. A class that is skipped as a whole is no test."""

    channel: Channel

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.outcome, self.message, self.unexpected, self.told = "", "", False, 0
        self.seen: dict[str, int] = {}

    def startTest(self, test: Any) -> None:  # noqa: N802  # unittest's name
        self.outcome, self.message, self.unexpected, self.began = "", "", False, clock()
        super().startTest(test)

    def stopTest(self, test: Any) -> None:  # noqa: N802
        super().stopTest(test)
        self.tell(test, self.outcome or "error", self.message, clock() - self.began)

    def learn(self, outcome: str, message: str = "") -> None:
        if self.outcome not in ("failed", "error"):
            self.outcome, self.message = outcome, message

    def tell(self, test: Any, outcome: str, message: str, seconds: float) -> None:
        self.told += 1
        facts = {"id": self.name(test), "outcome": outcome, "seconds": round(seconds, 6), "message": message}
        self.channel.say("test", unexpected=self.unexpected and outcome == "passed", **facts)

    def name(self, test: Any) -> str:
        """A test that comes up again is another: of a class that two modules have, say."""
        known = _id(test)
        self.seen[known] = self.seen.get(known, 0) + 1
        return known if self.seen[known] == 1 else f"{known} ({self.seen[known]})"

    def addSuccess(self, test: Any) -> None:  # noqa: N802
        super().addSuccess(test)
        self.learn("passed")

    def addError(self, test: Any, err: Any) -> None:  # noqa: N802
        super().addError(test, err)
        if hasattr(test, "_testMethodName"):
            self.learn("error", _text(test, err))
        else:  # a module or a class whose set-up failed
            self.channel.say("broken", id=_id(test), message=_text(test, err))

    def addFailure(self, test: Any, err: Any) -> None:  # noqa: N802
        super().addFailure(test, err)
        self.learn("failed", _text(test, err))

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:  # noqa: N802
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.learn("failed", _text(test, err))

    def addSkip(self, test: Any, reason: str) -> None:  # noqa: N802
        super().addSkip(test, reason)
        self.learn("skipped", reason)

    def addExpectedFailure(self, test: Any, err: Any) -> None:  # noqa: N802
        super().addExpectedFailure(test, err)
        self.learn("passed")

    def addUnexpectedSuccess(self, test: Any) -> None:  # noqa: N802
        super().addUnexpectedSuccess(test)
        self.learn("passed")
        self.unexpected = True


class Runner(unittest.TextTestRunner):
    """The runner, whose result is ours."""

    resultclass = Result


def _text(test: Any, err: Any) -> str:
    """What a failure says."""
    failures = Failures(ROOT)
    try:
        return failures.told(err[1], _file(test))
    except Exception:  # an exception of the candidate's may break whatever looks at it
        return failures.plain(str(err[0]))


def _file(test: Any) -> str:
    return getattr(sys.modules.get(type(test).__module__), "__file__", None) or ""


def _id(test: Any) -> str:
    """`file::Class::test`, the file relative to the workspace; of a module that cannot be imported its file."""
    if type(test).__name__ == "_FailedTest":
        return str(test.id()).partition("._FailedTest.")[2].replace(".", "/") + ".py"
    if not hasattr(test, "_testMethodName"):
        return str(test.id())
    file = _file(test)
    place = os.path.relpath(file, ROOT) if file else type(test).__module__
    return f"{place}::{type(test).__qualname__}::{test.id().rpartition('.')[2]}"


def main(orders: dict[str, Any]) -> None:
    """Run what the rest of the command line says, as `python -m unittest` does."""
    shutil.rmtree(orders["folder"], ignore_errors=True)
    sys.path[:] = [entry for entry in sys.path if entry != orders["folder"]]
    channel = Result.channel = Channel()
    os.makedirs(os.path.dirname(orders["report"]), exist_ok=True)
    channel.open(orders["report"], orders["nonce"])
    channel.say("open")
    sys.argv[0] = "python -m unittest"
    program = unittest.main(module=None, testRunner=Runner, exit=False)
    result = program.result
    assert isinstance(result, Result)
    good = result.wasSuccessful()
    channel.say("end", exit=0 if good else 1, collected=result.told, tests=result.told, left_out=0)
    sys.exit(0 if good else 1)
