"""Runs tests on versions of functions, each in a copy of one process that has already collected the tests.

It is copied into a sandbox and run there as its own program: `python3 copied.py ORDER REPORT`. The order is JSON:
`arguments` for pytest, `cpu_s` for one version, and `jobs`. A job breaks one function (`bug`). Without `candidates`,
the tests that reach it are traced. With `candidates`, each of which is a list of functions, the job reports for each
whether all tests that reach one of its functions pass, `failing` ones first. A function is replaced by its code and its
defaults, so that modules that imported it get the new one. The report has a line for the unbroken tests, then one line
for each job."""

from __future__ import annotations
import __future__

import gc
import json
import os
import select
import signal
import sys
from functools import partial
from types import FunctionType
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Set, Tuple

import pytest

TRACED = 10
"""The limit of a traced run of many tests, as a multiple of the limit of one version."""
IDLE = 10
"""How long a copy may be idle, for example waiting for a lock, as a multiple of the limit of one version."""
PATIENCE_S = 600
"""The limit of a copy in wall-clock seconds."""


class Unfit(Exception):
    """The function cannot be replaced in a running process."""


class Jobs:
    """A plugin that carries out the jobs instead of running the tests."""

    def __init__(self, order: Dict[str, Any], say: Callable[[Any], None]) -> None:
        self.order = order
        self.say = say
        self.outcomes: Dict[str, str] = {}
        self.messages: Dict[str, str] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Make failures name the files and lines on their way."""
        config.option.tbstyle = "native"
        self.root = str(config.rootpath) + os.sep

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Carry out all jobs once the tests are collected."""
        self.items = {item.nodeid: item for item in session.items}
        self.functions = _functions(self.root)
        gc.freeze()
        base = self._copy(partial(self._traced, list(self.items)), TRACED)
        self.say(base)
        self.reached = _by_line(base.get("lines", {}))
        for job in self.order["jobs"]:
            candidates = job.get("candidates", ())  # while one runs, the job's own copy is idle
            self.say(self._copy(partial(self._job, job), TRACED + len(candidates), 0 if candidates else IDLE))
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note one stage of one test; a failure is final."""
        if self.outcomes.get(report.nodeid) != "failed" and (report.when == "call" or not report.passed):
            self.outcomes[report.nodeid] = report.outcome
            if report.failed:
                self.messages[report.nodeid] = str(report.longrepr).replace(self.root, "")[-2000:]

    def _job(self, job: Dict[str, Any]) -> Dict[str, Any]:
        self._put(job["bug"])
        if "candidates" not in job:
            return self._traced(self._reaching([job["bug"]]))
        found: List[Any] = []
        for pieces in job["candidates"]:
            tests = [*job["failing"], *self._reaching([job["bug"], *pieces])]
            found.append(self._copy(partial(self._passes, pieces, tests)))
            if job["stop"] and found[-1].get("passes"):
                break
        return {"candidates": found}

    def _passes(self, pieces: Sequence[Dict[str, Any]], tests: Iterable[str]) -> Dict[str, Any]:
        for piece in pieces:
            self._put(piece)
        return {"passes": self._run(list(dict.fromkeys(tests)), stop=True)}

    def _run(self, tests: Sequence[str], stop: bool = False, before: Callable[[str], None] = lambda test: None) -> bool:
        """Run tests. Returns whether none fails; with `stop`, the first failure ends the run."""
        items = [self.items[test] for test in tests]
        for number, (test, item) in enumerate(zip(tests, items), 1):  # noqa: B905 - Python 3.8
            before(test)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=items[number] if items[number:] else None)
            if stop and self.outcomes.get(test) == "failed":
                return False
        return "failed" not in self.outcomes.values()

    def _traced(self, tests: Sequence[str]) -> Dict[str, Any]:
        lines: Dict[str, Dict[str, Set[int]]] = {}
        tracer = _Tracer({self.root + path: path for path in self.order["sources"]})
        sys.settrace(tracer.call)
        self._run(tests, before=lambda test: tracer.begin(lines.setdefault(test, {})))
        sys.settrace(None)
        told = {test: {path: sorted(known) for path, known in files.items()} for test, files in lines.items()}
        return {"outcomes": self.outcomes, "messages": self.messages, "lines": told}

    def _reaching(self, pieces: Iterable[Dict[str, Any]]) -> List[str]:
        """The tests that execute a line of these functions in the unbroken code."""
        reaching = [
            test
            for piece in pieces
            for line in range(piece["first"], piece["last"] + 1)
            for test in self.reached.get((piece["path"], line), ())
        ]
        return list(dict.fromkeys(reaching))

    def _put(self, piece: Dict[str, Any]) -> None:
        """Replace a function. Raises Unfit if that is not possible."""
        known = self.functions.get((piece["path"], piece["first"], piece["name"].rpartition(".")[2]), [])
        if not known:
            raise Unfit("{path}: {name} is not to be found".format(**piece))
        new = _made(piece, known[0], self.root + piece["path"])
        for function in known:
            try:
                function.__code__ = new.__code__
            except ValueError as error:
                raise Unfit(str(error)) from error
            function.__defaults__, function.__kwdefaults__ = new.__defaults__, new.__kwdefaults__

    def _copy(self, work: Callable[[], Dict[str, Any]], times: int = 1, idle: int = IDLE) -> Dict[str, Any]:
        """The result of `work` in a copy of this process. `times` is its limit and `idle` how long it may be idle, both
        as multiples of the limit of one version; an `idle` of 0 is no limit."""
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            _answer(work, writing, times * self.order["cpu_s"], 0 if idle == 0 else PATIENCE_S)
        os.close(writing)
        said = _said(child, reading, idle * self.order["cpu_s"] or None)
        os.close(reading)
        os.waitpid(child, 0)
        found: Dict[str, Any] = json.loads(said) if said else {"problem": "it took too long, or ended the process"}
        return found


class _Tracer:
    """Notes which lines of some files are executed."""

    def __init__(self, sources: Dict[str, str]) -> None:
        self.sources = sources
        self.lines: Dict[str, Set[int]] = {}

    def begin(self, lines: Dict[str, Set[int]]) -> None:
        """Collect lines by path in this dict from now on."""
        self.lines = lines

    def call(self, frame: Any, event: str, argument: Any) -> Any:
        """The trace function for `sys.settrace`."""
        path = self.sources.get(frame.f_code.co_filename)
        if path is None:
            return None
        add = self.lines.setdefault(path, set()).add

        def line(frame: Any, event: str, argument: Any) -> Any:
            if event == "line":
                add(frame.f_lineno)
            return line

        return line


def _said(child: int, reading: int, idle_s: Optional[float]) -> bytes:
    """Everything that a copy writes. A copy that is idle for `idle_s` is killed."""
    said, used = b"", -1
    while True:
        if select.select([reading], [], [], idle_s)[0]:
            part = os.read(reading, 1 << 16)
            if not part:
                return said
            said += part
        else:
            before, used = used, _ticks(child)
            if used == before:
                os.kill(child, signal.SIGKILL)
                return said


def _ticks(process: int) -> int:
    """The CPU time of a process, in clock ticks."""
    with open("/proc/%d/stat" % process, encoding="utf-8") as file:
        fields = file.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def _answer(work: Callable[[], Dict[str, Any]], writing: int, cpu_s: float, wall_s: float) -> None:
    """Work and write the result to a pipe. Never returns. SIGPROF ends a copy that takes too much CPU; copies of it
    have their own limits. A `wall_s` of 0 is no limit."""
    try:
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, cpu_s)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, wall_s)
        try:
            found = work()
        except Unfit as error:
            found = {"unfit": str(error)}
        said = json.dumps(found).encode()
        while said:
            said = said[os.write(writing, said) :]
    finally:
        os._exit(0)


def _made(piece: Dict[str, Any], known: FunctionType, file: str) -> FunctionType:
    """The function that a text defines, with the globals of its module. Annotations are not evaluated."""
    code = compile(piece["text"], file, "exec", __future__.annotations.compiler_flag, dont_inherit=True)
    place: Any = dict(known.__globals__)
    try:
        exec(code, place)  # noqa: S102 - what is under test
        for name in piece["name"].split("."):
            place = place[name] if isinstance(place, dict) else vars(place)[name]
    except Exception as error:
        raise Unfit(repr(error)) from error
    made: FunctionType = getattr(place, "__func__", place)
    return made


def _by_line(lines: Dict[str, Dict[str, List[int]]]) -> Dict[Tuple[str, int], List[str]]:
    """The tests that execute each line of each file."""
    found: Dict[Tuple[str, int], List[str]] = {}
    for test, files in lines.items():
        for path, numbers in files.items():
            for line in numbers:
                found.setdefault((path, line), []).append(test)
    return found


def _functions(root: str) -> Dict[Tuple[str, int, str], List[FunctionType]]:
    """All functions by file below `root`, first line and name."""
    found: Dict[Tuple[str, int, str], List[FunctionType]] = {}
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and each.__code__.co_filename.startswith(root):
            code = each.__code__
            key = code.co_filename[len(root) :], code.co_firstlineno, code.co_name
            found.setdefault(key, []).append(each)
    return found


def main(order_file: str, report_file: str) -> None:
    """Carry out all jobs; each line of the report is written as soon as it is known."""
    with open(order_file, encoding="utf-8") as file:
        order = json.load(file)
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    with open(report_file, "w", encoding="utf-8") as report:

        def say(line: Any) -> None:
            report.write(json.dumps(line) + "\n")
            report.flush()

        pytest.main([*order["arguments"], "-p", "no:cacheprovider"], plugins=[Jobs(order, say)])


if __name__ == "__main__":
    sys.path.insert(0, os.getcwd())  # as `python -m pytest` does
    main(sys.argv[1], sys.argv[2])
