"""The edits of a bug as `mutate` enumerates them, their order by a ranking, and what a search then has to try.

Invariant: all rankings order the same edits, so all solve the same bugs and differ only in the cost.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import takewhile
from math import inf
from pathlib import Path
from random import Random
from typing import Any

from agent.actions import Edit, Observation
from agent.learning.export.licences import licence_of
from agent.measure import Outcome, SuiteReport
from agent.models import Ask, directly
from agent.policy import Position
from agent.policy.edit import EditPolicy
from agent.policy.edit.ranking import Choice, MutateOrder, Ranking, ranked
from agent.policy.edit.record import Ranked, key
from agent.policy.mutate import MutatePolicy
from agent.run.events import Added, Noted, Started
from agent.run.run import Run
from agent.run.tree.evaluation import Evaluation
from agent.run.tree.node import ROOT, Node, Step
from agent.task import Task, dump_task
from benchmarks.data.jsonl_ledger import Ledger, read_lines
from benchmarks.data.synthetic.making import Material, Recipe
from benchmarks.flywheel.swept import Broken
from benchmarks.self_training.scores import Played
from sandboxes import Snapshot


@dataclass(frozen=True, slots=True)
class Tried:
    """A bug with its enumerated edits, in the order of `mutate`."""

    row: Mapping[str, Any]
    edits: Sequence[tuple[Edit, ...]]
    noted: Ranked
    """The ranking by `mutate`, as a search notes it."""
    mends: Sequence[bool | None] = ()
    """Whether each edit fixes the bug, from `benchmarks.flywheel.swept.mending`."""

    @property
    def blind(self) -> Tried:
        """The bug without what its failing tests printed."""
        functions = [replace(context, printed="") for context in self.noted.contexts]
        return replace(self, noted=Ranked(self.noted.order, functions))

    @property
    def printed(self) -> bool:
        """Whether a model is shown what the failing tests printed."""
        return any(context.printed for context in self.noted.contexts)

    def played(self, ranking: Ranking) -> Played:
        """The result of a search of depth 1 with this ranking, given that all edits were tried.

        Raises:
            agent.errors.RamifyError: a call of a model failed.
        """
        likelihoods = {entry.index: entry.likelihood for entry in self.noted.order}
        places = self.noted.contexts
        choices = [Choice.of(edits, likelihoods[n], places) for n, edits in enumerate(self.edits)]
        order = ranked(ranking, choices, places, directly, Random(str(self.row["instance_id"]))).order
        wrong = len(list(takewhile(lambda entry: not self.mends[entry.index], order)))
        return Played(wrong < len(order), min(wrong + 1, len(order)))


class Remembered:
    """A ranking whose answers are kept in a file, so that none is computed twice."""

    def __init__(self, ranking: Ranking, kept: Ledger) -> None:
        self._ranking = ranking
        self._kept = kept
        self._known = {
            str(row["choices"]): [-inf if weight is None else float(weight) for weight in row["weights"]]
            for row in read_lines(kept.path)
        }

    @property
    def version(self) -> str:
        """The version of the ranking."""
        return self._ranking.version

    def weights(self, choices: Sequence[Choice], ask: Ask, rng: Random) -> Sequence[float]:
        """The weights of the ranking."""
        name = sha256(repr(list(choices)).encode()).hexdigest()
        if name not in self._known:
            weights = list(self._ranking.weights(choices, ask, rng))
            self._kept.append({"choices": name, "weights": [None if w == -inf else w for w in weights]})
            self._known[name] = weights
        return self._known[name]


def enumerated(material: Material, recipe: Recipe, bug: Broken, width: int, printed: bool = False) -> Tried:
    """Enumerate the first `width` edits that a search at the broken state would try; `printed` as in `EditPolicy`."""
    noted: dict[str, Any] = {}
    files = {**material.files, str(bug.row["path"]): bug.wrong.encode()}
    position = Position(
        task=_task(material, recipe, bug.row, bug.failing),
        path=(_root(bug),),
        index=0,
        siblings=(),
        steps=(),
        box=_Files(files),  # type: ignore[arg-type]  # it is only read from
        memo=lambda name, find: noted.setdefault(name, find()),
    )
    mutate = MutatePolicy(lambda: bug.spectrum)
    EditPolicy(mutate, MutateOrder(), width, printed).propose(position, Random(0))
    kept = Ranked.from_json(noted[key(ROOT)])
    proposals = [mutate.propose(replace(position, index=n), Random(0)) for n in range(len(kept.order))]
    edits = [tuple(action for action in proposal.actions if isinstance(action, Edit)) for proposal in proposals]
    return Tried(bug.row, edits, kept)


def grown(tried: Tried, material: Material, recipe: Recipe, bug: Broken, folder: Path) -> None:
    """Write the search for a bug as a run from which datasets are made, up to the first edit that fixes the bug."""
    with Run.open(folder) as run:
        root = _root(bug)
        task = _task(material, recipe, tried.row, bug.failing)
        options = {"by": "mutate", "printed": tried.printed}
        run.record(Started(dump_task(task), {"policy": {"name": "edit", "options": options}}, root.snapshot))
        run.record(Added(root))
        run.record(Noted(ROOT, key(ROOT), tried.noted.to_json()))
        for number, mends in enumerate(tried.mends, 1):
            run.record(Added(_child(tried, number, bool(mends))))


def write(path: Path, bugs: Iterable[Tried]) -> None:
    """Write a file of JSON lines for `read`."""
    lines = [
        {
            "row": dict(bug.row),
            "edits": [[[edit.path, edit.old, edit.new, edit.line] for edit in edits] for edits in bug.edits],
            "noted": bug.noted.to_json(),
            "mends": list(bug.mends),
        }
        for bug in bugs
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def read(path: Path) -> Iterator[Tried]:
    """Read a file of `write`."""
    for line in path.read_text(encoding="utf-8").splitlines():
        data = json.loads(line)
        edits = [tuple(Edit(*edit) for edit in edits) for edits in data["edits"]]
        yield Tried(data["row"], edits, Ranked.from_json(data["noted"]), data["mends"])


class _Files:
    """A sandbox that can only be read from."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = files

    def read(self, path: str) -> bytes:
        """The content of a file. Raises FileNotFoundError if it does not exist."""
        if path not in self._files:
            raise FileNotFoundError(path)
        return self._files[path]


def _task(material: Material, recipe: Recipe, row: Mapping[str, Any], failing: Sequence[str]) -> Task:
    workspace = recipe.workspace(material.folder)
    bare = Task(str(row["instance_id"]), str(row["problem_statement"]), workspace, recipe.test_command)
    licence, _ = licence_of(bare)
    return replace(bare, goal_tests=tuple(failing), tags={"repo": material.name, "license": licence})


def _root(bug: Broken) -> Node:
    report = SuiteReport(bug.spectrum.outcomes, collected=len(bug.spectrum.outcomes), messages=bug.messages)
    digest = sha256(bug.wrong.encode()).hexdigest()
    return Node(ROOT, (), (), Snapshot("0", digest), report, Evaluation(0.0))


def _child(tried: Tried, number: int, mends: bool) -> Node:
    edits, policy_id = tried.edits[number - 1], "edit/1/mutate" + ("/printed" if tried.printed else "")
    steps = (Step(edits, tuple(Observation("") for _ in edits), policy_id=policy_id),)
    report = SuiteReport({"all": Outcome.PASSED if mends else Outcome.FAILED}, collected=1, complete=False)
    return Node(
        number,
        (ROOT,),
        steps,
        Snapshot(str(number), sha256(repr(edits).encode()).hexdigest()),
        report,
        Evaluation(float(mends), mends),
        prior=tried.noted.likelihood(number - 1),
        policy_id=policy_id,
        terminal=mends,
    )
