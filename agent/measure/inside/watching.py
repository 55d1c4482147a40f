"""Watch one test while it runs: record the values at probes, and the last call of each function of the workspace.

Only the test's own thread is watched. Stdlib only, Python 3.8 and later.
PYTEST_DONT_REWRITE
"""

from __future__ import annotations

import dis
import inspect
import os
import sys
import time
from types import CodeType, FrameType, ModuleType, TracebackType
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from .notes import ENDS, Call, Function, Probe, qualified
from .values import TooSlow, Values

HITS_EACH = 3_000
"""Number of times a probe is evaluated; later hits are only counted."""
TRACED_S = 10.0
"""Seconds after which watching stops."""
FUNCTIONS = 2_000
"""Maximum number of functions recorded."""
REPORTED = 12
"""Number of functions that are reported with more than their names."""
EXPRESSION_S = 2.0
"""Time limit for one evaluation of an expression."""
NAMES = 12
UNSEEN = (ModuleType, type, type(len), type(lambda: None))
"""Values of these types are not informative."""
INSTALLED = ("site-packages", "dist-packages")
RESUMED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR

# Tests patch this function; what is watched must not depend on that.
clock = time.perf_counter

Trace = Optional[Callable[[FrameType, str, Any], Any]]


class Watch:
    """Watches one test: the probes, or without probes all functions of the workspace that it calls."""

    def __init__(self, root: str, probes: List[Dict[str, Any]]) -> None:
        self.root = os.path.realpath(root)
        self.values = Values()
        self.probes = [Probe(probe) for probe in probes]
        self.paths: Dict[str, str] = {}
        self.functions: Dict[CodeType, Function] = {}
        self.events = 0
        self.until = clock() + TRACED_S
        self.stopped = ""
        self.error: Optional[Dict[str, Any]] = None

    # -- the trace function

    def enter(self, frame: FrameType, event: str, arg: Any) -> Trace:
        """Handle the call of a function, wherever it is defined."""
        try:
            path = self.path(frame.f_code.co_filename)
            return self.entered(frame, path) if path else None
        except TooSlow:  # the alarm for a value that was shown in the meantime
            return None

    def path(self, filename: str) -> str:
        """The path relative to the workspace; "" outside it."""
        known = self.paths.get(filename)
        if known is None:
            real = os.path.realpath(filename)
            inside = real.startswith(self.root + os.sep) and filename.endswith(".py")
            of_project = inside and not any(part in real for part in INSTALLED)
            known = self.paths[filename] = os.path.relpath(real, self.root).replace(os.sep, "/") if of_project else ""
        return known

    def entered(self, frame: FrameType, path: str) -> Trace:
        if not frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            return None  # the body of a module or class
        if not self.probes and frame.f_code.co_name[:1] == "<":
            return None  # a comprehension
        function = self.function(path, frame.f_code)
        if function is None or clock() > self.until:
            self.stopped = self.stopped or "too much was called"
            sys.settrace(None)
            return None
        last = function.last
        resumed = last is not None and last.frame is frame
        if not resumed:
            function.calls += 1
        listed = function.left > 0 and (function.wanted or not self.probes)
        if not (listed or function.probes):
            return None
        if last is None or not resumed:
            last = function.last = Call(self.kept(frame), self.locals(frame))
        return Frame(self, function, last).trace

    @staticmethod
    def kept(frame: FrameType) -> Optional[FrameType]:
        return frame if frame.f_code.co_flags & RESUMED else None

    def function(self, path: str, code: CodeType) -> Optional[Function]:
        """Return the record of a function; None if there are too many."""
        known = self.functions.get(code)
        if known is None and len(self.functions) < FUNCTIONS:
            fitting = [probe for probe in self.probes if probe.fits(path, code)]
            named = any(probe.name for probe in fitting)
            known = Function(path, code, named, [probe for probe in fitting if not probe.name])
            for probe in fitting:
                probe.inside.append(known)
            self.functions[code] = known
        return known

    def locals(self, frame: FrameType) -> Dict[str, str]:
        """The informative names and values of a frame."""
        found = {}
        for name, value in list(frame.f_locals.items()):
            if name[:1] not in "@." and type(value) not in UNSEEN:
                found[name] = self.values.show(value)
                if len(found) == NAMES:
                    break
        return found

    def evaluate(self, probe: Probe, frame: FrameType) -> None:
        """Evaluate a probe just before its line runs."""
        probe.hits += 1
        if probe.hits > HITS_EACH or probe.problem:
            return
        expression = probe.expression
        if expression is None:
            text = ", ".join("%s=%s" % pair for pair in self.locals(frame).items()) or "no local names"
        else:
            names = dict(frame.f_globals)
            names.update(frame.f_locals)
            slow = "<it takes too long>"
            text = self.values.guarded(lambda: self.values.text(eval(expression, names)), lambda: slow, EXPRESSION_S)
        probe.series.add(text)

    # -- the end

    def learn(self, error: BaseException) -> None:
        """Record the exception that ended the test, and where in the workspace."""
        frames = list(self.frames(error.__traceback__))
        left_out = max(0, len(frames) - 2 * ENDS)
        self.error = {
            "said": self.values.error(error),
            "frames": [
                {"path": path, "line": line, "name": qualified(frame.f_code), "values": self.locals(frame)}
                for path, line, frame in frames[:ENDS] + frames[ENDS + left_out :]
            ],
            "left_out": left_out,
        }

    def frames(self, trace: Optional[TracebackType]) -> Iterator[Tuple[str, int, FrameType]]:
        while trace is not None:
            path = self.path(trace.tb_frame.f_code.co_filename)
            if path:
                yield path, trace.tb_lineno, trace.tb_frame
            trace = trace.tb_next

    def facts(self) -> Dict[str, Any]:
        """All records, ready for JSON."""
        known = list(self.functions.values())
        reported = sorted((f for f in known if f.last is not None), key=lambda f: (f.wanted, f.seen))[-REPORTED:]
        return {
            "functions": [function.facts() for function in reported],
            "called": sorted({"%s in %s" % (qualified(f.code), f.path) for f in known}),
            "probes": [probe.facts() for probe in self.probes],
            "error": self.error,
            "stopped": self.stopped,
        }


class Frame:
    """One call that is being watched."""

    def __init__(self, watch: Watch, function: Function, call: Call) -> None:
        self.watch, self.function, self.call = watch, function, call
        self.listed = function.wanted or not watch.probes
        """Whether the changes of each line are recorded."""

    def trace(self, frame: FrameType, event: str, arg: Any) -> Trace:
        """Handle a line of the call, or its end."""
        watch, function = self.watch, self.function
        watch.events += 1
        function.seen = watch.events
        try:
            if event == "line":
                self.line(frame)
            elif event == "return":
                self.leave(frame, arg)
            elif event == "exception":
                self.call.error = arg[1]
        except TooSlow:  # the alarm for a value that was shown in the meantime
            pass
        return self.trace

    def line(self, frame: FrameType) -> None:
        line, function = frame.f_lineno, self.function
        function.ran.add(line)
        for probe in function.probes:
            if probe.line == line:
                self.watch.evaluate(probe, frame)
        if self.listed and function.left > 0:
            function.left -= 1
            self.call.learn(self.watch.locals(frame))
            self.call.reach(line)
        elif self.listed and not function.probes:
            frame.f_trace_lines = False

    def leave(self, frame: FrameType, result: Any) -> None:
        if not self.listed:
            return
        call, doing = self.call, dis.opname[frame.f_code.co_code[frame.f_lasti]]
        if self.function.left > 0:
            call.learn(self.watch.locals(frame))
        suspended = doing.startswith("YIELD") or (doing == "RESUME" and call.error is None)  # the latter from 3.13 on
        if suspended or doing.startswith("RETURN"):
            call.error = None  # it was handled
            call.ended = "%s %s" % ("yielded" if suspended else "returned", self.watch.values.show(result))
        elif call.error is not None:
            call.ended = "raised " + self.watch.values.error(call.error)
        self.function.keep(call)
        if self.function.wanted:
            given = ", ".join("%s=%s" % pair for pair in call.arguments.items())
            self.function.series.add("(%s) %s" % (given, call.ended))
