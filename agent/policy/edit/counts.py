"""Counts: how often edits of each kind were tried in recorded searches, and how often they were right.

An edit's weight is the product over its features of how much more often edits with that feature were right than edits
at all, each share smoothed towards the whole (`EVEN` edits of the usual share are added). Features are taken as if they
did not depend on each other (naive Bayes): only the order matters here.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import Any

from agent.actions import Edit
from agent.errors import ConfigError
from agent.files import write_atomically
from agent.parsing import loads
from agent.policy.edit.features import features
from agent.policy.edit.record import Ranked
from agent.run.credit import outcome, worths
from agent.run.run import Run
from agent.run.tree.node import NodeId

__all__ = ["Counts", "Trial", "counted", "trials"]

EVEN = 8.0
"""So many edits with the usual share of right ones are added to each feature's."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Edits that were tried and edits that were right, in all and by feature."""

    tried: int
    right: int
    by: Mapping[str, tuple[int, int]]
    """Tried and right."""
    runs: int = 0
    policies: tuple[str, ...] = ()
    """Who proposed them."""

    def weight(self, edits: Sequence[Edit], likely: float) -> float:
        """The logarithm of how much likelier than another edit this one is right; `likely` is as for `features`."""
        usual = (self.right + 1) / (self.tried + 2)
        return sum(log(self._share(each, usual) / usual) for each in features(edits, likely))

    def _share(self, feature: str, usual: float) -> float:
        tried, right = self.by.get(feature, (0, 0))
        return (right + EVEN * usual) / (tried + EVEN)

    @property
    def digest(self) -> str:
        """Names its content."""
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()[:12]

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        by = {feature: list(counts) for feature, counts in sorted(self.by.items())}
        return {
            "kind": "edit-counts",
            "tried": self.tried,
            "right": self.right,
            "runs": self.runs,
            "policies": list(self.policies),
            "by": by,
        }

    def write(self, path: Path) -> None:
        """To a file, as `read` takes it."""
        write_atomically(path, json.dumps(self.to_json(), indent=1).encode() + b"\n")

    @classmethod
    def read(cls, path: Path) -> Counts:
        """Raises ConfigError where the file is none."""
        try:
            data = loads(path.read_bytes())
            by = {feature: (tried, right) for feature, (tried, right) in data["by"].items()}
            return cls(data["tried"], data["right"], by, data["runs"], tuple(data["policies"]))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigError(
                f"{path} holds no counts of edits ({error}): make them with ramify train counts"
            ) from error


@dataclass(frozen=True, slots=True)
class Trial:
    """A state that edits alone led to."""

    parent: NodeId
    node: NodeId
    edits: tuple[Edit, ...]
    likely: float
    """How likely `mutate` found them, in (0, 1]."""
    policy: str
    right: bool
    """Whether the state, or one below it, solved the task."""


def counted(runs: Iterable[Run]) -> Counts:
    """Over all edits of these runs, of whatever policy."""
    tried, right, known, number = Counter[str](), Counter[str](), list[tuple[str, bool]](), 0
    for run in runs:
        number += 1
        for trial in trials(run):
            found = set(features(trial.edits, trial.likely))
            tried.update(found)
            right.update(found if trial.right else ())
            known.append((trial.policy, trial.right))
    by = {feature: (count, right[feature]) for feature, count in tried.items()}
    policies = tuple(sorted({policy for policy, _ in known} - {""}))
    return Counts(len(known), sum(good for _, good in known), by, number, policies)


def trials(run: Run) -> Iterator[Trial]:
    """Every state of a run that edits alone led to, in the order of trying."""
    below = worths(run.tree, outcome(run))
    for parent in run.tree:
        ranked = Ranked.of(run, parent.id)
        for number, attempt in enumerate(run.tree.attempts(parent.id)):
            if attempt.child is None or attempt.known:
                continue
            child = run.tree[attempt.child]
            actions = [action for step in child.steps for action in step.actions]
            edits = tuple(each for each in actions if isinstance(each, Edit) and not (each.replace_all or each.more))
            if edits and len(edits) == len(actions):
                likely = ranked.likely(number) if ranked else child.prior
                yield Trial(parent.id, child.id, edits, likely, child.policy_id, below[child.id].solved > 0)
