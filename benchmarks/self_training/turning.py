"""One round of self-training. Each step leaves its result in the round's folder, so that an interrupted round can be
resumed."""

from __future__ import annotations

import subprocess
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

__all__ = ["Learning", "Round", "turn"]

_LOOKS = "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)"


@dataclass(frozen=True, slots=True)
class Learning:
    """What to learn, and in which environments."""

    kind: Literal["counts", "model"] = "counts"
    wanted: training.Wanted = field(default_factory=training.Wanted)
    train_python: Path | None = None
    serve_python: str = "python3"
    port: int = 8000
    cpu: bool = False


@dataclass(frozen=True, slots=True)
class Round:
    """The description of one round."""

    tasks: Path
    """A source of bugs to search and learn from."""
    held_out: Path
    """A source of bugs for the comparison, from which nothing is learned."""
    learning: Learning
    conditions: Conditions
    easiest: float = 0.9
    """Tasks are left out if at least this share of the edits tried on them is right."""


def turn(request: Round, folder: Path, tell: Callable[[str], None] = lambda line: None) -> Policy:
    """Collect searches, learn from them, compare the new version with the present one at equal limits, and keep it if
    that is convincing (`benchmarks.self_training.scores`). Returns the new version, kept or not.

    Raises:
        UsageError: the settings select a policy; an environment lacks a package that a model needs; a bug is in both
            sources or was learned from before, or a function is in both; or another process holds the registry.
        agent.errors.RamifyError: a step failed; the same call resumes the round.
    """
    _require_open(request.conditions.settings)
    _require_environments(request.learning)
    registry = Registry(folder)
    try:
        tasks, held_out = (_bugs(source, folder) for source in (request.tasks, request.held_out))
        require_apart(tasks, held_out, _learned_from(folder))
        now, name = registry.present, registry.next_name
        place = folder / name
        with _playing(request, folder, now) as flags:
            names = _chosen(request, folder, name, tasks)
            batch = _played(request.tasks, place / "tasks", flags, request.conditions, names)
            scores.read(batch, names)
            before = _played(request.held_out, place / "before", flags, request.conditions)
        tell(f"{name}: searched {len(runs_in([batch]))} tasks with {now.name}")
        new = _learned(request.learning, place, batch, Policy(name, request.learning.kind, parent=now.name))
        with _playing(request, folder, new) as flags:
            after = _played(request.held_out, place / "after", flags, request.conditions)
        chosen = [bug.id for bug in select(held_out, part=request.conditions.part)]
        first, second = scores.common(scores.read(before, chosen), scores.read(after, chosen))
        better = scores.compare(first, second)
        new = _judged(request, new, better, common_repositories(tasks, held_out))
        registry.add(new)
        tell(f"{name}: {_outcome(better, now.name)}")
        if shared := new.scores["seen_repositories"]:
            tell(f"{name}: --held-out and --tasks have bugs of the same repositories: {', '.join(shared)}")
        tell(scores.table({now.name: first, name: second}, now.name))
        return new
    finally:
        registry.close()


def _played(source: Path, out: Path, flags: Sequence[str], conditions: Conditions, ids: Sequence[str] = ()) -> Path:
    """As `play`, but searches may fail: `scores.read` decides whether too many did."""
    with suppress(SomeFailed):
        play(source, out, flags, conditions, ids)
    return out


def _require_open(settings: Sequence[str]) -> None:
    """Check that the settings do not select a policy, which would be the same on both sides of the comparison."""
    if fixed := sorted({"by", "counts", "model"} & given(settings, {}).policy.options.keys()):
        raise UsageError(f"policy.{fixed[0]} is chosen by the round itself: leave it out of the settings")


def _require_environments(learning: Learning) -> None:
    """Check, before anything is searched, for the packages that a model needs later."""
    if learning.kind == "model":
        _require_package(str(learning.train_python or sys.executable), "trl", "--train-python")
        _require_package(learning.serve_python, "vllm", "--serve-python")


def _require_package(python: str, package: str, flag: str) -> None:
    """Raise UsageError if the interpreter, which `flag` selects, cannot import the package."""
    try:
        done = subprocess.run([python, "-c", _LOOKS, package], capture_output=True, check=False)
    except OSError as error:
        raise UsageError(f"{python} cannot be run ({error.strerror}): name another with {flag}") from error
    if done.returncode != 0:
        raise UsageError(f"{python} has no {package}: name an interpreter that has it with {flag}")


def _bugs(source: Path, folder: Path) -> list[Instance]:
    return list(open_source(str(source), folder / ".look", reveal=True).instances())


def _learned_from(folder: Path) -> list[str]:
    """The ids of all bugs that were learned from."""
    return [path.parent.name for path in folder.glob("v*/tasks/*/journal.jsonl")]


def _judged(request: Round, new: Policy, better: scores.Better, shared: list[str]) -> Policy:
    """The new version with the result of the comparison."""
    tasks, held_out = (in_full(str(source)) for source in (request.tasks, request.held_out))
    results = better.to_json() | {"held_out": held_out, "seen_repositories": shared}
    return replace(new, data={"tasks": tasks, **new.data}, scores=results, kept=better.convincing)


def _outcome(better: scores.Better, present: str) -> str:
    if better.convincing:
        return "kept"
    few = f": {better.bugs} bugs are too few to tell, give {scores.FEWEST}" if better.bugs < scores.FEWEST else ""
    return f"rolled back to {present}{few}"


def _chosen(request: Round, folder: Path, name: str, tasks: Sequence[Instance]) -> list[str]:
    """The tasks of the right difficulty by the results of earlier rounds; all tasks in the first round."""
    names = [task.id for task in select(tasks, part=request.conditions.part)]
    earlier = [path for path in sorted(folder.glob("v*/tasks")) if path.parent.name != name]
    if not earlier:
        return names
    chosen = fitting(names, rates(runs_in(earlier)), request.easiest)
    if not chosen:
        raise UsageError(
            f"no task of {request.tasks} is solved sometimes but not always: make others, or raise --easiest"
        )
    return chosen


@contextmanager
def _playing(request: Round, folder: Path, policy: Policy) -> Iterator[list[str]]:
    """Yield the settings that select a version, and serve its model for the block."""
    learning, path = request.learning, folder / policy.path
    if policy.path and not path.exists():
        raise UsageError(f"{path}, which is the policy {policy.name}, is missing: restore it")
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
            counts = counted(held.enter_context(Run.read(path)) for path in runs)
        counts.write(place / "counts.json")
        data: dict[str, Any] = {"runs": counts.runs, "edits": counts.tried, "right": counts.right}
        return replace(policy, path=f"{place.name}/counts.json", data=data)
    manifest = export(runs, "edit", place / "rows")
    plan = training.plan("sft", [place / "rows"], learning.wanted)
    metrics = training.train(plan, place / "training", python=learning.train_python)
    data = {"rows": manifest["rows"], "files": manifest["files"], "policies": list(plan.order()["policies"])}
    return replace(policy, path=f"{place.name}/training/model", data=data | {"steps": metrics["steps"]})
