"""A world of small repositories in which a chat model finds a function, reads it and corrects it.

A function computes something of its two arguments, and the issue says in a word what it should be. A correct line of
work takes five calls in three answers: find the file, view it, then edit, test and submit. The teacher knows everything
but the meaning of the words: it replaces the operator by one of the others at random. So what a word means can only be
learned by trying.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from agent.actions.replacing import numbered
from agent.actions.tools import schema
from agent.models import Completion, Message, ToolCall
from benchmarks.data.clones import git
from sandboxes.git.command import Git

PROMPTS = {"chat_system": "Repair the function.\n", "chat_task": "{{ issue }}\n"}
"""Prompts that are short enough for a tiny model, by the names of the prompts that they replace."""
MEANINGS = {"sum": "+", "gap": "-", "area": "*", "rest": "%", "share": "//", "growth": "**"}
OPERATORS: Mapping[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "%": operator.mod,
    "//": operator.floordiv,
    "**": pow,
}
VERBS = ("add", "bill", "count", "draw", "fill", "find", "grow", "join", "make", "pack", "pick", "rate", "send", "sort")
NOUNS = (
    "apple",
    "book",
    "cake",
    "door",
    "farm",
    "gold",
    "hill",
    "iron",
    "lake",
    "milk",
    "nest",
    "oven",
    "pond",
    "rope",
)
MODULES = ("bank", "camp", "dock", "fort", "home", "mill", "park", "shop")
VARIABLES = ("a", "b", "c", "d", "e", "g", "h", "k", "m", "n", "p", "q", "r", "s", "u", "v")
INPUTS = ((7, 2), (9, 4))
"""Arguments for which no two operators give the same."""
A_MODULE = 1
"""The number of functions in a module; a repository has two modules."""


@dataclass(frozen=True, slots=True)
class Function:
    """One function of a repository."""

    name: str
    first: str
    second: str
    operator: str

    def line(self, operator: str) -> str:
        """The statement that returns the result, with this operator."""
        return f"return {self.first} {operator} {self.second}"

    @property
    def text(self) -> str:
        """Its source."""
        return f"def {self.name}({self.first}, {self.second}):\n    {self.line(self.operator)}\n"


@dataclass(frozen=True, slots=True)
class Case:
    """A repository with one wrong function, and the issue."""

    name: str
    modules: Mapping[str, tuple[Function, ...]]
    module: str
    wrong: Function
    word: str

    @property
    def issue(self) -> str:
        """What should be computed, in words."""
        return f"{self.wrong.name} has to give the {self.word}"

    def files(self, operator: str) -> dict[str, str]:
        """The repository with this operator in the function that is wrong."""
        written = {}
        for module, functions in self.modules.items():
            own = (Function(f.name, f.first, f.second, operator) if f == self.wrong else f for f in functions)
            written[f"{module}.py"] = "\n\n".join(f.text for f in own)
        right = [self._test(module, f) for module, functions in self.modules.items() for f in functions]
        return {**written, "test_all.py": "\n\n".join(right)}

    def _test(self, module: str, function: Function) -> str:
        meant = MEANINGS[self.word] if function == self.wrong else function.operator
        given = ((pair, OPERATORS[meant](*pair)) for pair in INPUTS)
        checks = "".join(f"    assert {function.name}{pair} == {value}\n" for pair, value in given)
        return f"def test_{function.name}():\n    from {module} import {function.name}\n\n{checks}"


def cases(part: str, count: int, seed: int) -> list[Case]:
    """Cases of a part of the world. Parts have no function's name in common: `held-out` has those of a quarter."""
    rng = Random(f"{seed}/{part}")
    every = [f"{verb}_{noun}" for verb in VERBS for noun in NOUNS]
    Random(seed).shuffle(every)
    quarter = len(every) // 4
    names = every[:quarter] if part == "held-out" else every[quarter:]
    return [_case(f"{part}-{number}", names, rng) for number in range(count)]


def _case(name: str, names: list[str], rng: Random) -> Case:
    word = rng.choice([*MEANINGS])
    functions = iter(rng.sample(names, 2 * A_MODULE))
    variables = iter(rng.sample(VARIABLES, 4 * A_MODULE))
    modules = {
        module: tuple(
            Function(next(functions), next(variables), next(variables), rng.choice([*OPERATORS]))
            for _ in range(A_MODULE)
        )
        for module in sorted(rng.sample(MODULES, 2))
    }
    module, place = rng.choice([*modules]), rng.randrange(A_MODULE)
    own = modules[module][place]
    wrong = Function(own.name, own.first, own.second, rng.choice([o for o in OPERATORS if o != MEANINGS[word]]))
    modules[module] = tuple(wrong if f == own else f for f in modules[module])
    return Case(name, modules, module, wrong, word)


def demonstration(case: Case, rng: Random) -> list[Message]:
    """The teacher's work on a case, up to its last answer, as a search would have recorded it."""
    function, path = case.wrong, f"{case.module}.py"
    text = case.files(function.operator)[path]
    place = text.splitlines().index(f"def {function.name}({function.first}, {function.second}):") + 1
    tried = rng.choice([each for each in OPERATORS if each != function.operator])
    edit = {"path": path, "old_str": function.line(function.operator), "new_str": function.line(tried)}
    found = f"exit code: 0\n{path}:{place}:def {function.name}({function.first}, {function.second}):"
    shown = text.removesuffix("\n").split("\n")
    return [
        {"role": "system", "content": PROMPTS["chat_system"].strip()},
        {"role": "user", "content": case.issue},
        _says(("bash", {"command": f'grep -n "def {function.name}" *.py'})),
        {"role": "tool", "content": found},
        _says(("view", {"path": path})),
        {"role": "tool", "content": f"{path} ({len(shown)} lines)\n{numbered(shown, 1)}"},
        _says(("edit", edit), ("run_tests", {}), ("submit", {})),
    ]


def exercise(case: Case) -> list[Message]:
    """Lines to repeat: from these, an untrained model learns to copy much sooner than from demonstrations."""
    text = "\n".join(case.files(case.wrong.operator)[f"{module}.py"] for module in case.modules)
    shown = "".join(f"{case.module}.py {line.strip()}\n" for line in text.splitlines() if line)
    return [{"role": "user", "content": shown}, {"role": "assistant", "content": shown}]


def _says(*calls: tuple[str, Mapping[str, Any]]) -> Message:
    made = [ToolCall(f"call_{n}", name, json.dumps(arguments)) for n, (name, arguments) in enumerate(calls)]
    message = Completion("", tuple(made)).message
    for call in message["tool_calls"]:
        call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    return message


def write_demonstrations(folder: Path, demonstrated: list[Case], rng: Random) -> None:
    """Write the teacher's lines, and as many exercises, as an export of the format `sft`."""
    folder.mkdir(parents=True, exist_ok=True)
    tools = [*schema()]
    rows = [each for case in demonstrated for each in (demonstration(case, rng), exercise(case))]
    written = (json.dumps({"messages": messages, "tools": tools}) for messages in rows)
    (folder / "train.jsonl").write_text("".join(f"{row}\n" for row in written), encoding="utf-8")
    manifest = {"format": "sft", "counts": {"policy": {"teacher": len(demonstrated)}}}
    (folder / "manifest.json").write_text(json.dumps(manifest) + "\n", encoding="utf-8")


def write_prompts(folder: Path) -> None:
    """Write the prompts, for `-c prompts=FOLDER`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in PROMPTS.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")


def write_tasks(folder: Path, written: list[Case]) -> Path:
    """Write the cases as instances of one bundle, a commit for each. Returns the file."""
    place = folder / "repository"
    place.mkdir(parents=True)
    Git.init(place)
    rows = [_row(case, _committed(place, case)) for case in written]
    git("bundle", "create", "-q", "../world.bundle", "--all", cwd=place)
    file = folder / "tasks.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


def _committed(place: Path, case: Case) -> tuple[str, str]:
    """Commit a case on a branch of its own. Returns the commit and the patch that repairs it."""
    git("checkout", "-q", "--orphan", case.name, cwd=place)
    for old in place.glob("*.py"):
        old.unlink()
    for path, text in case.files(case.wrong.operator).items():
        (place / path).write_text(text, encoding="utf-8")
    git("add", "-A", cwd=place)
    git("-c", "user.name=ramify", "-c", "user.email=ramify@localhost", "commit", "-q", "-m", case.name, cwd=place)
    commit = git("rev-parse", "HEAD", cwd=place).decode().strip()
    path = f"{case.module}.py"
    (place / path).write_text(case.files(MEANINGS[case.word])[path], encoding="utf-8")
    patch = git("diff", "--binary", cwd=place).decode()
    git("checkout", "-q", "--", path, cwd=place)
    return commit, patch


def _row(case: Case, made: tuple[str, str]) -> dict[str, Any]:
    passing = [f"test_all.py::test_{f.name}" for fs in case.modules.values() for f in fs if f != case.wrong]
    return {
        "instance_id": case.name,
        "repo": case.name,
        "base_commit": made[0],
        "problem_statement": case.issue,
        "patch": made[1],
        "test_patch": "",
        "FAIL_TO_PASS": [f"test_all.py::test_{case.wrong.name}"],
        "PASS_TO_PASS": passing,
        "bundle": "world.bundle",
        "test_cmd": "python3 -m pytest -q -p no:cacheprovider",
        "requirements": [],
        "license": "MIT",
    }
