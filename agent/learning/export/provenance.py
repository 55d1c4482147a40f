"""Where a row comes from and how its answers were drawn. Every row has this in its column `provenance`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import file_digest
from typing import Any

from agent.learning.export import Row
from agent.learning.export.licences import licence_of
from agent.learning.export.turns import Turn
from agent.run.action_log import task_of
from agent.run.credit import submitted
from agent.run.events import Asked
from agent.run.message_store import digest_of
from agent.run.run import Run
from agent.run.tree.node import NodeId
from agent.task import Task


def provenance(run: Run, node: NodeId, turns: Sequence[Turn], others: Iterable[NodeId] | None = None) -> dict[str, Any]:
    """The provenance of a row about a node, with the answers of these turns; `others` are further nodes in the row, by
    default those above the node.

    `policies` holds names with versions. For each answer, `prompts` holds the digest of its prompt, `sampling` the
    sampling parameters and seed, and `logprobs` the log-probability of each token from the server, or null. `exact`:
    each answer is the recorded one, to the recorded prompt.
    """
    above = (state.id for state in run.tree.path(node)) if others is None else others
    nodes = {*above, *(turn.node for turn in turns)}
    policies = {turn.step.policy_id or run.tree[turn.node].policy_id for turn in turns}
    row = of_answers(run, node, nodes, [turn.asked for turn in turns])
    return {**row, "policies": sorted(policies), "prompts": [turn.digest for turn in turns]}


def of_answers(run: Run, node: NodeId, nodes: Iterable[NodeId], asked: Sequence[Asked | None]) -> dict[str, Any]:
    """As `provenance`, for answers that need not be turns; None stands for an answer without a recorded model call.
    `outcome` is the best at `node` or below it: `solved`, `submitted` (no goal is known, nothing broke), or empty."""
    return {
        **origin(run),
        "node": node,
        "nodes": sorted({node, *nodes}),
        "state": run.tree[node].state_hash,
        "outcome": _outcomes(run)[node],
        "policies": sorted({run.tree[id_].policy_id for id_ in nodes} - {""}),
        "models": sorted({call.model for call in asked if call}),
        "exact": all(asked),
        "prompts": [call.conversation.digest if call else "" for call in asked],
        "sampling": [dict(call.sampling) if call else {} for call in asked],
        "logprobs": [list(call.answer.logprobs) or None if call else None for call in asked],
    }


@lru_cache(maxsize=1)
def _outcomes(run: Run) -> dict[NodeId, str]:
    """The best outcome of each node and the nodes below it."""
    found: dict[NodeId, str] = {}
    for node in reversed(list(run.tree)):
        own = "solved" if run.solved(node.id) else "submitted" if submitted(run, node.id) else ""
        below = {own, *(found[child.id] for child in run.tree.children(node.id))}
        found[node.id] = next(name for name in ("solved", "submitted", "") if name in below or not name)
    return found


def not_verbatim(recorded: Row) -> Row:
    """The provenance of a row whose answers were reworded or follow another prompt than the recorded one: the recorded
    log-probabilities do not apply to it."""
    return recorded | {"exact": False, "logprobs": [None] * len(recorded["logprobs"])}


def origin(run: Run) -> dict[str, Any]:
    """The provenance that all rows of a run share. `run` is the name of its directory, `journal` distinguishes runs of
    the same name, and `seed` is the search's. All of it is from the journal, except a licence whose `license_source`
    is `workspace` (`agent.learning.export.licences`)."""
    task = task_of(run)
    assert run.started is not None
    settings = run.started.settings
    licence, source = _licence(run)
    return {
        "run": run.journal.directory.name,
        "journal": journal_digest(run),
        "task": task.id,
        "repository": repository(task),
        "base": task.base,
        "source": task.tags.get("source_url", ""),
        "license": licence,
        "license_source": source,
        "search": settings.get("search", {}).get("name", ""),
        "seed": settings.get("seed"),
    }


def repository(task: Task) -> str:
    """The repository's name for splits: from the task, else its image or the name of its folder."""
    workspace = task.workspace
    name = task.tags.get("repo") or task.tags.get("source_url") or workspace.image
    return name or (workspace.path.name if workspace.path else task.id)


def task_key(task: Task) -> str:
    """A key that identifies a task. Its id alone may be the first words of an issue, which several issues share."""
    return digest_of([repository(task), task.base, task.id, task.statement])


@lru_cache(maxsize=1)
def journal_digest(run: Run) -> str:
    """The SHA-256 of the run's journal, in hex."""
    with run.journal.path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


@lru_cache(maxsize=1)
def _licence(run: Run) -> tuple[str, str]:
    return licence_of(task_of(run))
