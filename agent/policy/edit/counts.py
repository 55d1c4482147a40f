"""Counts: how often edits of each kind were tried in recorded searches, and how often they were right.

An edit's weight is a product over its features: how much more often edits with that feature were right than edits in
general. Each share is smoothed towards the general one (by `SMOOTHING` additional edits). Features are treated as
independent (naive Bayes), as only the order matters here.
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
from agent.run.credit import node_credit, outcome
from agent.run.run import Run
from agent.run.tree.node import NodeId

SMOOTHING = 8.0
"""How many edits, with the general share of right ones, are added to each feature's counts."""


@dataclass(frozen=True, slots=True)
class Counts:
    """How many edits were tried and how many were right, in all and by feature."""

    tried: int
    right: int
    by: Mapping[str, tuple[int, int]]
    """For each feature, how many edits were tried and how many were right."""
    runs: int = 0
    policies: tuple[str, ...] = ()
    """The policies that proposed the edits."""

    def weight(self, edits: Sequence[Edit], likelihood: float) -> float:
        """The logarithm of how much likelier this edit is right than another one; `likelihood` is as for `features`."""
        usual = (self.right + 1) / (self.tried + 2)
        return sum(log(self._share(feature, usual) / usual) for feature in features(edits, likelihood))

    def _share(self, feature: str, usual: float) -> float:
        tried, right = self.by.get(feature, (0, 0))
        return (right + SMOOTHING * usual) / (tried + SMOOTHING)

    @property
    def digest(self) -> str:
        """A short digest of the content."""
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()[:12]

    def to_json(self) -> dict[str, Any]:
        """The counts as plain data."""
        return {
            "kind": "edit-counts",
            "tried": self.tried,
            "right": self.right,
            "runs": self.runs,
            "policies": list(self.policies),
            "by": {feature: list(counts) for feature, counts in sorted(self.by.items())},
        }

    def write(self, path: Path) -> None:
        """Write the counts to a file that `read` takes."""
        write_atomically(path, json.dumps(self.to_json(), indent=1).encode() + b"\n")

    @classmethod
    def read(cls, path: Path) -> Counts:
        """The counts in a file. Raises ConfigError if it holds none."""
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
    """A state that was reached by edits alone."""

    parent: NodeId
    node: NodeId
    edits: tuple[Edit, ...]
    likelihood: float
    """The likelihood that `mutate` gave them, in (0, 1]."""
    policy: str
    right: bool
    """Whether the state, or one below it, solved the task."""


def count_edits(runs: Iterable[Run]) -> Counts:
    """The counts over all edits of these runs, by any policy."""
    tried, right, policies, number = Counter[str](), Counter[str](), set[str](), 0
    edits = right_edits = 0
    for run in runs:
        number += 1
        for trial in trials(run):
            kinds = set(features(trial.edits, trial.likelihood))
            tried.update(kinds)
            right.update(kinds if trial.right else ())
            edits, right_edits = edits + 1, right_edits + trial.right
            policies.add(trial.policy)
    by = {feature: (count, right[feature]) for feature, count in tried.items()}
    return Counts(edits, right_edits, by, number, tuple(sorted(policies - {""})))


def trials(run: Run) -> Iterator[Trial]:
    """Every state of a run that was reached by edits alone, in the order of the attempts."""
    credit = node_credit(run.tree, outcome(run))
    for parent in run.tree:
        ranked = Ranked.of(run, parent.id)
        for number, attempt in enumerate(run.tree.attempts(parent.id)):
            if attempt.child is None or attempt.known:
                continue
            child = run.tree[attempt.child]
            edits = tuple(a for a in child.actions if isinstance(a, Edit) and not (a.replace_all or a.more))
            if edits and len(edits) == len(child.actions):
                likelihood = ranked.likelihood(number) if ranked else child.prior
                yield Trial(parent.id, child.id, edits, likelihood, child.policy_id, credit[child.id].solved > 0)
