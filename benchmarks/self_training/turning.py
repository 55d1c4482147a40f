"""Turning: one round. Each step leaves its result in the round's folder, so that a round that broke off goes on."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from agent.config import given
from agent.errors import UsageError
from agent.learning import serving, training
from agent.learning.export.dataset import runs_in
from agent.policy.edit.counts import counted
from agent.run.run import Run
from benchmarks.data.instances import Instance, select
from benchmarks.data.sources import in_full, open_source
from benchmarks.self_training import scores
from benchmarks.self_training.apart import common_repositories, require_apart
from benchmarks.self_training.difficulty import fitting, rates
from benchmarks.self_training.exporting import export
from benchmarks.self_training.playing import Conditions, SomeFailed, flags_of, play
from benchmarks.self_training.policies import Policy, Registry
from benchmarks.self_training.ready import require_package

__all__ = ["Learning", "Round", "turn"]


@dataclass(frozen=True, slots=True)
class Learning:
    """What is learned, and in which environments."""

    kind: Literal["counts", "model"] = "counts"
    wanted: training.Wanted = field(default_factory=training.Wanted)
    train_python: Path | None = None
    serve_python: str = "python3"
    port: int = 8000
    cpu: bool = False


@dataclass(frozen=True, slots=True)
class Round:
    """One turn of the wheel."""

    tasks: Path
    """A source of bugs to search and learn on."""
    held_out: Path
    """A source of bugs that nothing is learned from."""
    learning: Learning
    conditions: Conditions
    easiest: float = 0.9
    """Tasks of which this share of the tried edits, or more, is right are left out."""


def turn(wanted: Round, folder: Path, tell: Callable[[str], None] = lambda line: None) -> Policy:
    """Collect, learn, evaluate against the present version at equal limits, and keep the new one where that is
    convincing (`benchmarks.self_training.scores`). The new version, kept or not.

    Raises:
        UsageError: the settings say which policy searches; an environment lacks what a model needs; a bug is in both
            sources or was learned from before, or a function is in both; or another process holds the registry.
        agent.errors.RamifyError: a step failed; the same call resumes it.
    """
    _require_open(wanted.conditions.settings)
    _require_environments(wanted.learning)
    registry = Registry(folder)
    try:
        tasks, held_out = (_bugs(source, folder) for source in (wanted.tasks, wanted.held_out))
        require_apart(tasks, held_out, _learned_from(folder))
        now, name = registry.present, registry.next_name
        place = folder / name
        with _playing(wanted, folder, now) as flags:
            names = _chosen(wanted, folder, name, tasks)
            batch = _played(wanted.tasks, place / "tasks", flags, wanted.conditions, names)
            scores.read(batch, names)
            before = _played(wanted.held_out, place / "before", flags, wanted.conditions)
        tell(f"{name}: searched {len(runs_in([batch]))} tasks with {now.name}")
        new = _learned(wanted.learning, place, batch, Policy(name, wanted.learning.kind, parent=now.name))
        with _playing(wanted, folder, new) as flags:
            after = _played(wanted.held_out, place / "after", flags, wanted.conditions)
        chosen = [each.id for each in select(held_out, part=wanted.conditions.part)]
        first, second = scores.common(scores.read(before, chosen), scores.read(after, chosen))
        better = scores.compare(first, second)
        new = _judged(wanted, new, better, common_repositories(tasks, held_out))
        registry.add(new)
        tell(f"{name}: {_outcome(better, now.name)}")
        if seen := new.scores["seen_repositories"]:
            tell(f"{name}: --held-out has bugs of repositories that --tasks has bugs of: {', '.join(seen)}")
        tell(scores.table({now.name: first, name: second}, now.name))
        return new
    finally:
        registry.close()


def _played(source: Path, out: Path, flags: Sequence[str], given: Conditions, ids: Sequence[str] = ()) -> Path:
    """As `play`, whose searches may have failed: whether too many did is for `scores.read` to say."""
    with suppress(SomeFailed):
        play(source, out, flags, given, ids)
    return out


def _require_open(settings: Sequence[str]) -> None:
    """Which policy searches is left open: a setting would make it the same one on both sides."""
    if said := sorted({"by", "counts", "model"} & given(settings, {}).policy.options.keys()):
        raise UsageError(f"policy.{said[0]} is for a round to say: leave it out of the settings")


def _require_environments(learning: Learning) -> None:
    if learning.kind == "model":
        require_package(str(learning.train_python or sys.executable), "trl", "--train-python")
        require_package(learning.serve_python, "vllm", "--serve-python")


def _bugs(source: Path, folder: Path) -> list[Instance]:
    return list(open_source(str(source), folder / ".look", reveal=True).instances())


def _learned_from(folder: Path) -> list[str]:
    """The ids of all bugs that were searched to learn from them."""
    return [path.parent.name for path in folder.glob("v*/tasks/*/journal.jsonl")]


def _judged(wanted: Round, new: Policy, better: scores.Better, seen: list[str]) -> Policy:
    """With all that its line in the registry says."""
    tasks, held_out = (in_full(str(source)) for source in (wanted.tasks, wanted.held_out))
    told = better.to_json() | {"held_out": held_out, "seen_repositories": seen}
    return replace(new, data={"tasks": tasks, **new.data}, scores=told, kept=better.convincing)


def _outcome(better: scores.Better, present: str) -> str:
    if better.convincing:
        return "kept"
    few = f": {better.bugs} bugs are too few to tell, give {scores.FEWEST}" if better.bugs < scores.FEWEST else ""
    return f"rolled back to {present}{few}"


def _chosen(wanted: Round, folder: Path, name: str, tasks: Sequence[Instance]) -> list[str]:
    """Tasks of the right difficulty, as earlier rounds have found it; all where there was none."""
    names = [each.id for each in select(tasks, part=wanted.conditions.part)]
    earlier = [path for path in sorted(folder.glob("v*/tasks")) if path.parent.name != name]
    if not earlier:
        return names
    chosen = fitting(names, rates(runs_in(earlier)), wanted.easiest)
    if not chosen:
        raise UsageError(f"none of the tasks of {wanted.tasks} is solved sometimes: make others, or raise --easiest")
    return chosen


@contextmanager
def _playing(wanted: Round, folder: Path, policy: Policy) -> Iterator[list[str]]:
    """The settings of a version, whose model is served meanwhile."""
    learning, path = wanted.learning, folder / policy.path
    if policy.path and not path.exists():
        raise UsageError(f"{path}, which is the policy {policy.name}, is missing: put it back")
    if policy.kind != "model":
        yield flags_of(policy.kind, path)
        return
    server = serving.Server(str(path), f"edit-{policy.name}", port=learning.port, cpu=learning.cpu)
    with serving.running(server, learning.serve_python, log=path.parent / "server.log"):
        yield flags_of("model", path, server.served, f"{server.root}/v1")


def _learned(learning: Learning, place: Path, batch: Path, policy: Policy) -> Policy:
    runs = runs_in([batch])
    if learning.kind == "counts":
        with ExitStack() as held:
            found = counted(held.enter_context(Run.read(path)) for path in runs)
        found.write(place / "counts.json")
        data: dict[str, Any] = {"runs": found.runs, "edits": found.tried, "right": found.right}
        return replace(policy, path=f"{place.name}/counts.json", data=data)
    manifest = export(runs, "edit", place / "rows")
    chosen = training.plan("sft", [place / "rows"], learning.wanted)
    metrics = training.train(chosen, place / "training", python=learning.train_python)
    data = {"rows": manifest["rows"], "files": manifest["files"], "policies": list(chosen.order()["policies"])}
    return replace(policy, path=f"{place.name}/training/model", data=data | {"steps": metrics["steps"]})
