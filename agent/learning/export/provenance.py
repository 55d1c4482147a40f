"""Provenance: where a row comes from and how its answers were drawn. Every row has it, in a column of that name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import file_digest
from typing import Any

from agent.learning.export import Row
from agent.learning.export.licences import licence_of
from agent.learning.export.turns import Turn
from agent.run.action_log import task_of
from agent.run.events import Asked
from agent.run.message_store import digest_of
from agent.run.run import Run
from agent.run.tree.node import NodeId
from agent.task import Task

__all__ = ["journal_digest", "never_said", "of_answers", "origin", "provenance", "repository", "task_key"]


def provenance(run: Run, node: NodeId, turns: Sequence[Turn], others: Iterable[NodeId] = ()) -> dict[str, Any]:
    """Of a row about a node that holds these turns' answers; `others` are further nodes that it tells of.

    `policies` holds names with versions; `prompts` the digest of what each answer was given to, `sampling` what was
    asked of the model then (with its seed), and `logprobs` the log-probability of each token of the answer as the
    server gave it, null where it gave none. `exact`: each answer is the recorded one, to the recorded prompt.
    """
    nodes = {*others, *(turn.node for turn in turns)}
    policies = {turn.step.policy_id or run.tree[turn.node].policy_id for turn in turns}
    told = of_answers(run, node, nodes, [turn.asked for turn in turns])
    return {**told, "policies": sorted(policies), "prompts": [turn.digest for turn in turns]}


def of_answers(run: Run, node: NodeId, nodes: Iterable[NodeId], asked: Sequence[Asked | None]) -> dict[str, Any]:
    """As `provenance`, of answers that need not be turns; None stands for one that no model is known to have given."""
    return {
        **origin(run),
        "node": node,
        "nodes": sorted({node, *nodes}),
        "state": run.tree[node].state_hash,
        "policies": sorted({run.tree[each].policy_id for each in nodes} - {""}),
        "models": sorted({each.model for each in asked if each}),
        "exact": all(asked),
        "prompts": [each.conversation.digest if each else "" for each in asked],
        "sampling": [dict(each.sampling) if each else {} for each in asked],
        "logprobs": [list(each.answer.logprobs) or None if each else None for each in asked],
    }


def never_said(told: Row) -> Row:
    """The same of a row whose answers were put into other words, or after another prompt than they were given to: what
    a server said of their tokens is not about this row."""
    return told | {"exact": False, "logprobs": [None] * len(told["logprobs"])}


def origin(run: Run) -> dict[str, Any]:
    """What all rows of a run have in common. `run` is the name of its directory, and `journal` tells it from others of
    that name; `seed` is the search's. All of it is from the journal, but for a licence whose `license_source` is
    `workspace`: see `agent.learning.export.licences`."""
    task = task_of(run)
    assert run.started is not None
    settings = run.started.settings
    licence, said_by = _licence(run)
    return {
        "run": run.journal.directory.name,
        "journal": journal_digest(run),
        "task": task.id,
        "repository": repository(task),
        "base": task.base,
        "source": task.tags.get("source_url", ""),
        "license": licence,
        "license_source": said_by,
        "search": settings.get("search", {}).get("name", ""),
        "seed": settings.get("seed"),
    }


def repository(task: Task) -> str:
    """What names the repository, for splits: as the task says, else its image or the name of its folder."""
    place = task.workspace
    known = task.tags.get("repo") or task.tags.get("source_url") or place.image
    return known or (place.path.name if place.path else task.id)


def task_key(task: Task) -> str:
    """What tells a task from others: ids may be a few words of an issue, which several issues begin with."""
    return digest_of([repository(task), task.base, task.id, task.statement])


@lru_cache(maxsize=1)
def journal_digest(run: Run) -> str:
    """The SHA-256 of its journal, in hex."""
    with run.journal.path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


@lru_cache(maxsize=1)
def _licence(run: Run) -> tuple[str, str]:
    return licence_of(task_of(run))
