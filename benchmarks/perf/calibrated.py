"""A simulated developer and judge with the interface of a model, whose rates were measured on real lines of work.

Only the model is simulated. It edits real repositories: a right fix is the reference patch, a wrong one a variant of it
that the hidden tests refuse (`benchmarks.perf.variants`), so it is partly right, wrong, or breaks what worked, as often
as the variants of the task are. Its tests are hidden tests in a new file. It learns only what the program tells it.
These are drawn for each line of work:

- **the first fix** is right with probability `right`. Measured: 29 of 30 (`docs/figures.md`); lower rates stand for
  harder issues;
- **its test** is complete (all hidden tests of the issue) with probability `complete`. An incomplete test does not
  detect the line's own mistake. It consists of the hidden tests that also pass with a wrong fix. If there are none, it
  asserts the mistake: it passes if a hidden test fails with the same error as with the wrong fix. With probability
  `own_way` the test asks for more than the issue does, and only fixes of the lines that have it pass: they leave a mark
  in the source, and the test looks for it. Measured: each of 18 lines on libraries wrote a test that shows the issue.
  The tests of 13 lines were run on the reference patch, and those of 5 lines fail there; the tests of 5 others detected
  15 of 17 wrong variants;
- **a correction** follows if a test of its own fails, an existing test is newly broken, or a reviewer gives the
  change less than `ACCEPTS`. It is right as often as a first fix, and never a mistake that the line has made. A line
  makes at most `MOST_FIXES` fixes, then it submits. Measured: one first fix was wrong, and corrected;
- **the judge's score** of a change is one of those that real readers gave to right and to wrong patches. With
  probability `fooled`, a wrong change looks right: the measured mistakes are mutants, which may be easier to see than a
  model's own. Measured: 0 of 15. The score of a change is the same throughout a run;
- **what other searches ask** (a prior, a ranking, a checklist, where to return to) is answered from these scores;
  speeches, plans, strategies and reflections say nothing;
- **a vote** is for the change with the highest score, minus `HEEDS` times the share of the attempts' tests that fail
  with it, as far as the judge is shown these.

Assumed, without measurements: lines of a task are independent, and what a second round is told makes no fix better.

The draws of the n-th line on a task depend on the seed, the task and n only, so that searches can be compared in pairs.
Each draw has random numbers of its own, so that lines at different rates are as alike as the rates are.
"""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any

from agent.measure.diffs import parse
from agent.measure.ids import file_of
from agent.measure.messages import error_of
from agent.parsing import expression_tree, syntax_tree
from agent.prompts import render
from benchmarks.data.instances import Instance
from benchmarks.perf.answering import ATTEMPT, by_letter, called
from benchmarks.perf.lines import ACCEPTS
from benchmarks.perf.variants import Variant

RIGHT = 29 / 30
"""How often the first fix of a real line was right."""
COMPLETE = 15 / 17
"""The share of wrong variants that the tests of real lines detect, if the reference patch passes these tests."""
OWN_WAY = 5 / 13
"""The share of lines for which none of their tests passes with the reference patch."""
RIGHT_SCORES = (
    0.12, 0.20, 0.35, 0.72, 0.80, 0.80, 0.85, 0.85, 0.85, 0.92, 0.92, 0.93, 0.95, 0.95, 0.95, 0.96, 0.98,
)  # fmt: skip
"""The scores that readers gave to 17 right patches that came without a test."""
WRONG_SCORES = (0.01, 0.02, 0.02, 0.02, 0.02, 0.02, 0.03, 0.03, 0.03, 0.03, 0.05, 0.05, 0.08, 0.12, 0.12)
"""The scores that readers gave to 15 wrong patches."""
MOST_FIXES = 3
HEEDS = 0.5

_PARSING = Lock()
"""Python 3.11 does not parse in two threads at once."""
_MARK = re.compile(r"^Line (\d+), answer (\d+)\.$")
_SCORE = re.compile(r"gives it ([\d.]+) of 1")
_ENDS = re.compile(r"\b([A-Z]) (passed|failed)\b")
_CHANGE = re.compile(r"^Change ([A-Z]):$", re.MULTILINE)
_ITEM = re.compile(r"^(\d+)\. ", re.MULTILINE)
_CHECKLIST = "Answer each question of this checklist"
_CONTRAST = "Which of them only satisfy the tests"
_DIVIDE = "Divide it into as few parts"
_STRATEGY = "propose one strategy for this repair"
_FAILS = "A test of your own fails"
_BROKEN = render("chat_left", broken=True, goals=False).strip()
_BEGIN_WITH_TEST = render("chat_reproduce").strip()
MARK = "# in the way of line"
"""Begins the line of the source that a test looks for."""
MARKED = re.compile(rf"{MARK} \d+")
NEW_TESTS = "test_issue.py"
"""The name of the test files that lines write."""
_DECORATORS = """
import functools
import pytest


def with_mark(path, mark):
    def decorate(test):
        @functools.wraps(test)
        def passes_with_mark(*args, **kwargs):
            with open(path) as file:
                assert mark in file.read()
            test(*args, **kwargs)
        return passes_with_mark
    return decorate


def fails_with(error):
    def decorate(test):
        @functools.wraps(test)
        def passes_where_it_fails(*args, **kwargs):
            try:
                test(*args, **kwargs)
            except BaseException as raised:
                told = pytest.ExceptionInfo.from_exception(raised).exconly().strip().split("\\n")[0]
                assert told[:300] == error
            else:
                raise AssertionError("the issue asks for something else")
        return passes_where_it_fails
    return decorate
"""

Change = frozenset[tuple[tuple[str, str], int]]
"""How often each line of each file is added, or removed (negative)."""


def change_of(patch: str, paths: Iterable[str]) -> Change:
    """The changes that a git patch in a text makes to some files, however git shows them."""
    counts, path = Counter[tuple[str, str]](), ""
    for line in patch.splitlines():
        if line.startswith("+++ "):
            path = line[4:].removeprefix("b/").strip()
        elif line.startswith(("diff --git ", "</")):
            path = ""
        elif path in paths and line.startswith(("+", "-")) and not line.startswith(f"+{MARK}"):
            counts[path, line[1:]] += 1 if line[0] == "+" else -1
    return frozenset((place, count) for place, count in counts.items() if count)


@dataclass(frozen=True, slots=True)
class Rates:
    """Probabilities, in [0, 1]."""

    right: float = RIGHT
    """The probability that a fix is right."""
    complete: float = COMPLETE
    """The probability that a test fails with every wrong fix."""
    own_way: float = OWN_WAY
    """The probability that a test fails with the fixes of lines that do not have it."""
    fooled: float = 0.0
    """The probability that a wrong change looks right to the judge."""


@dataclass(frozen=True, slots=True)
class Known:
    """What the developer knows about a task."""

    instance: Instance
    right: Sequence[Variant]
    """The variants; the reference patch comes first."""
    wrong: Sequence[Variant]
    base: Variant
    """The base state as a variant without a patch."""
    tests: Mapping[str, str]
    """The files with hidden tests, by path."""

    @classmethod
    def of(cls, instance: Instance, variants: Sequence[Variant]) -> Known:
        """From `benchmarks.perf.variants.examined`; the instance is checked out."""
        base, *others = variants
        right, wrong = ([each for each in others if each.right is verdict] for verdict in (True, False))
        return cls(instance, right, wrong, base, _hidden_tests(instance))

    @property
    def paths(self) -> set[str]:
        """The files that fixes change."""
        return {file.path for file in parse(self.instance.hidden.patch)}

    def verdict(self, patch: bytes) -> bool | None:
        """What the hidden tests say of a patch, whatever tests it adds; None: it is no known fix."""
        change = change_of(patch.decode(errors="replace"), self.paths)
        if not change:
            return False
        return next((each.right for each in (*self.right, *self.wrong) if self._change(each) == change), None)

    def _change(self, variant: Variant) -> Change:
        return change_of(variant.patch.decode(), self.paths)


def _hidden_tests(instance: Instance) -> dict[str, str]:
    """The test files of the issue as the grader has them."""
    paths, checkout = {file_of(test) for test in instance.hidden.fail_to_pass}, instance.task.workspace.path
    assert checkout is not None
    with TemporaryDirectory() as folder:
        for path in paths:
            place = Path(folder, path)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(checkout / path, place)
        includes = [f"--include={path}" for path in paths]
        subprocess.run(
            ["git", "apply", *includes, "-"],
            cwd=folder,
            input=instance.hidden.test_patch,
            check=True,
            capture_output=True,
        )
        return {path: Path(folder, path).read_text() for path in paths}


@dataclass(slots=True)
class Line:
    """A line of work."""

    number: int
    first: Variant
    """Its first fix."""
    tests: Mapping[str, str]
    """The test files that it writes."""
    mark: str = ""
    """The mark that its fixes leave in the source for its tests; empty: none."""
    fixes: list[Variant] = field(default_factory=list)
    """The fixes that it has made."""
    answers: int = 0


class CalibratedDeveloper:
    """Answers requests for chat completions of one run."""

    def __init__(self, known: Known, rates: Rates, seed: int) -> None:
        self._known, self._rates, self._seed = known, rates, seed
        self._lines: list[Line] = []

    def __call__(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """The assistant's message for a request."""
        messages = asked["messages"]
        system, question = str(messages[0]["content"]), str(messages[-1].get("content") or "")
        if system.startswith(render("chat_system").strip()):
            return self._work(messages)
        if system.startswith(render("judge_system").strip()):
            return {"content": json.dumps(self._reviewed(question))}
        if system.startswith(render("tournament_system").strip()):
            return {"content": json.dumps({"suspects": []} if _CONTRAST in question else self._vote(question))}
        if system.startswith(render("summary_system").strip()):
            return {"content": json.dumps({"hypothesis": "", "outcome": "improved", "progress": ""})}
        if question.rstrip().endswith('{"reflection": "..."}'):
            return {"content": json.dumps({"reflection": "Nothing that was not known."})}
        if _DIVIDE in question:
            whole = {"id": "all", "statement": "All of it.", "goal_tests": [], "files": [], "depends_on": []}
            return {"content": json.dumps({"parts": [whole]})}
        return {"content": json.dumps({"steps": []})}

    def line(self, number: int) -> Line:
        """The draws of a line of work, before its first answer."""
        known, rates = self._known, self._rates
        complete = self._rng(number, "complete").random() < rates.complete
        first = self._fix(number, ())
        mistake = self._rng(number, "mistake").choice(known.wrong) if first.right else first
        names = known.instance.hidden.fail_to_pass
        partly = [] if complete else [name for name in names if name in mistake.passed - known.base.passed]
        misled = {} if complete or partly or first.right else _mistakes(known, first)
        decorators = {name: [f"fails_with({errors!r})"] for name, errors in misled.items()}
        mark = f"{MARK} {number}" if self._rng(number, "way").random() < rates.own_way else ""
        if mark:
            looks = f"with_mark({min(known.paths)!r}, {mark!r})"
            decorators = {name: [looks, *decorators.get(name, ())] for name in misled or partly or names}
        return Line(number, first, dict(_files(known.tests, set(misled or partly or names), decorators)), mark)

    def _fix(self, number: int, made: Sequence[Variant]) -> Variant:
        """The next fix of a line that has made these."""
        if self._rng(number, f"right {len(made)}").random() < self._rates.right:
            return self._known.right[0]
        others = [each for each in self._known.wrong if each not in made]
        return self._rng(number, f"wrong {len(made)}").choice(others or self._known.wrong)

    def _rng(self, *what: object) -> Random:
        return Random("/".join(map(str, (self._seed, self._known.instance.id, *what))))

    def _work(self, messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        if _STRATEGY in str(messages[-1].get("content")):
            return {"content": f"Strategy {sum(str(m.get('content')).count('- Strategy') for m in messages) + 1}."}
        said = [n for n, message in enumerate(messages) if message["role"] == "assistant"]
        told = "\n".join(str(message.get("content") or "") for message in messages[(said or [0])[-1] + 1 :])
        mark = _MARK.match(str(messages[said[-1]].get("content"))) if said else None
        number, answer = (int(mark[1]), int(mark[2])) if mark else (-1, 0)
        if not mark or self._lines[number].answers != answer:  # another line has continued from here
            begun = self.line(len(self._lines))
            if mark:
                begun.tests, begun.mark = self._lines[number].tests, self._lines[number].mark
            self._lines.append(begun)
            number, answer = len(self._lines) - 1, 0
        line = self._lines[number]
        calls = list(self._turn(line, told, shared=mark is not None))
        line.answers += 1
        tools = called(calls, f"{number}_{line.answers}_")
        return {"content": f"Line {number}, answer {line.answers}.", "tool_calls": tools}

    def _turn(self, line: Line, told: str, *, shared: bool) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """The calls of a line's next answer. `shared`: it began at a state that has a test of its own."""
        if not line.answers and not shared:
            for path, text in line.tests.items():
                yield "bash", {"command": f"cat > {path} <<'THE_END'\n{text}\nTHE_END"}
        only_test = not line.answers and _BEGIN_WITH_TEST in told
        if not only_test and (not line.fixes or (_shown_wrong(told) and len(line.fixes) < MOST_FIXES)):
            line.fixes.append(self._fix(line.number, line.fixes) if line.fixes else line.first)
            yield "bash", {"command": self._apply(line.fixes[-1], line.mark)}
        elif not only_test:
            yield "submit", {}
            return
        yield "run_tests", {}

    def _apply(self, fix: Variant, mark: str) -> str:
        """The command that makes a fix in place of any other. It leaves git's index as it is, so that equal states have
        equal digests."""
        back = [f"git show HEAD:{path} > {path}" for path in sorted(self._known.paths)]
        leave = [f"echo {mark!r} >> {min(self._known.paths)}"] if mark else []
        return "\n".join(("set -e", *back, f"git apply <<'THE_END'\n{fix.patch.decode()}THE_END", *leave))

    def _score(self, change: Change, right: bool | None) -> float:
        fooled = self._rng(sorted(change), "fooled").random() < self._rates.fooled
        return self._rng(sorted(change), "score").choice(RIGHT_SCORES if right or fooled else WRONG_SCORES)

    def _scored(self, text: str) -> float:
        return self._score(change_of(text, self._known.paths), self._known.verdict(text.encode()))

    def _reviewed(self, question: str) -> dict[str, Any]:
        """A judge's answer about a change, or about several from which the search is to continue. It covers every
        question that a judge can be asked."""
        scores = {letter: self._scored(text) for letter, text in by_letter(_CHANGE, question).items()}
        score = self._scored(question)
        items = [int(number) for number in _ITEM.findall(question.rpartition(_CHECKLIST)[2])]
        return {
            "value": score,
            "interest": score,
            "score": 100 * score,
            "verdict": "accept" if score >= ACCEPTS else "refine",
            "assessment": "As scored.",
            "ranking": sorted(scores, key=lambda letter: -scores[letter]),
            "return_to": "new",
            "items": ["Does the change solve the issue?"],
            "answers": [{"item": item, "answer": "yes" if score >= ACCEPTS else "no", "reason": ""} for item in items],
        }

    def _vote(self, question: str) -> dict[str, str]:
        scores = {letter: self._scored(text) for letter, text in by_letter(ATTEMPT, question).items()}
        for letter, share in _failing(question).items():
            scores[letter] -= HEEDS * share
        best = max(scores, key=lambda letter: scores[letter])
        return {"winner": best, "reason": f"Scored {scores[best]:.2f}."}


def _shown_wrong(told: str) -> bool:
    score = _SCORE.search(told)
    return _FAILS in told or _BROKEN in told or (score is not None and float(score[1]) < ACCEPTS)


def _failing(question: str) -> dict[str, float]:
    """The share of the attempts' tests that fail with each attempt, by its letter."""
    ends = _ENDS.findall(question.partition("The attempts wrote tests of their own.")[2])
    ran, failed = Counter(letter for letter, _ in ends), Counter(letter for letter, end in ends if end == "failed")
    return {letter: failed[letter] / ran[letter] for letter in ran}


def _mistakes(known: Known, wrong: Variant) -> dict[str, str]:
    """How hidden tests fail with a wrong fix, if they fail in another way in the base state. Parametrised tests are
    left out."""
    errors = {test: error_of(message) for test, message in wrong.messages.items() if "[" not in test}
    before = {test: error_of(message) for test, message in known.base.messages.items()}
    return {test: error for test, error in errors.items() if error and before.get(test, error) != error}


def _files(
    tests: Mapping[str, str], names: set[str], decorators: Mapping[str, Sequence[str]]
) -> Iterator[tuple[str, str]]:
    """New test files with these tests of some files, and with these decorators of tests."""
    for path, text in tests.items():
        chosen = {_function(name): decorators.get(name, ()) for name in names if file_of(name) == path}
        if chosen:
            with _PARSING:
                found = _only(text, chosen)
            yield str(Path(path).parent / NEW_TESTS), found


def _function(name: str) -> str:
    return name.partition("[")[0].rpartition("::")[2]


def _only(text: str, chosen: Mapping[str, Sequence[str]]) -> str:
    """The source of a test file without its other tests, and with decorators of these."""
    tree = syntax_tree(text)
    tree.body = [kept for kept in (_kept(each, chosen) for each in tree.body) if kept is not None]
    future = [
        n for n, each in enumerate(tree.body, 1) if isinstance(each, ast.ImportFrom) and each.module == "__future__"
    ]
    at = max(future, default=0)
    tree.body[at:at] = syntax_tree(_DECORATORS if any(chosen.values()) else "").body
    return ast.unparse(tree)


def _kept(node: ast.stmt, chosen: Mapping[str, Sequence[str]]) -> ast.stmt | None:
    if isinstance(node, ast.ClassDef):
        body = [kept for kept in (_kept(each, chosen) for each in node.body) if kept is not None]
        node.body = body or [ast.Pass()]
    if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
        if node.name not in chosen:
            return None
        node.decorator_list[:0] = [expression_tree(each) for each in chosen[node.name]]
    return node
