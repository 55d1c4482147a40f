"""One round of self-training. Each step leaves its result in the round's folder, so that an interrupted round can be
resumed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, assert_never

from agent import counting
from agent.config import given
from agent.errors import UsageError
from agent.learning import serving, training
from agent.learning.training import Method
from agent.policy.edit.counts import count_edits
from agent.run.paths import runs_in
from agent.run.run import Run
from benchmarks.data.instances import Instance, select
from benchmarks.data.sources import in_full, open_source
from benchmarks.self_training import scores
from benchmarks.self_training.apart import common_repositories, require_apart
from benchmarks.self_training.cost import planned
from benchmarks.self_training.difficulty import fitting, rates, rollout_rates
from benchmarks.self_training.exporting import export
from benchmarks.self_training.playing import Conditions, SomeFailed, flags_of, play
from benchmarks.self_training.policies import FIRST, Policy, Registry

ROWS: Mapping[Method, str] = {"sft": "sft-masked", "dpo": "preference", "kto": "kto", "grpo": "grpo-tree"}
"""The format of the rows that a chat policy is trained on, by the method."""


@dataclass(frozen=True, slots=True)
class Learning:
    """What to learn, and in which environments."""

    kind: Literal["counts", "model", "chat"] = "counts"
    """`chat`: a chat policy is trained further, by the method `method`."""
    settings: training.TrainingSettings = field(default_factory=training.TrainingSettings)
    train_python: Path | None = None
    serve_python: str = "python3"
    port: int = 8000
    cpu: bool = False
    method: Method = "sft"


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
    """Tasks are left out if at least this share of the edits tried on them, or of the rollouts, is right."""
    policy: Path | None = None
    """The checkpoint that a chat policy started from; None: the policy is `edit`."""


def turn(request: Round, folder: Path, tell: Callable[[str], None] = lambda line: None) -> Policy:
    """Collect searches, learn from them, compare the new version with the present one at equal limits, and keep it if
    it is convincingly better (`benchmarks.self_training.scores`). Returns the new version, kept or not.

    Raises:
        UsageError: the settings select a policy; an environment lacks a package that a model needs; a bug is in both
            sources or was learned from before, or a function is in both; or another process holds the registry.
        agent.errors.RamifyError: a step failed; the same call resumes the round.
    """
    _require_open(request.conditions.settings)
    _require_environments(request.learning)
    registry = Registry(folder, Policy("v0", "chat", str(request.policy.absolute())) if request.policy else FIRST)
    try:
        tasks, held_out = (_bugs(source, folder) for source in (request.tasks, request.held_out))
        require_apart(tasks, held_out, [path.parent.name for path in folder.glob("v*/tasks/*/journal.jsonl")])
        now, name = registry.present, registry.next_name
        place = folder / name
        names, chosen = (
            _chosen(request, folder, name, tasks),
            [bug.id for bug in select(held_out, part=request.conditions.part)],
        )
        tell(planned(folder, name, len(names), len(chosen), request.conditions, _steps(request.learning)))
        with _playing(request, folder, now) as flags:
            batch = _played(request.tasks, place / "tasks", flags, request.conditions, names)
            scores.read(batch, names)
            before = _played(request.held_out, place / "before", flags, request.conditions.once)
        tell(f"{name}: searched {counting.counted(len(runs_in([batch])), 'task')} with {now.name}")
        new = _learned(request, folder, batch, now, name)
        with _playing(request, folder, new) as flags:
            after = _played(request.held_out, place / "after", flags, request.conditions.once)
        first, second = scores.common(scores.read(before, chosen), scores.read(after, chosen))
        better = (scores.compare_solved if request.policy else scores.compare)(first, second)
        new = _judged(request, new, better, common_repositories(tasks, held_out))
        registry.add(new)
        tell(f"{name}: {_outcome(better, now.name)}")
        if shared := new.scores["seen_repositories"]:
            tell(f"{name}: --held-out and --tasks have bugs of the same repositories: {', '.join(shared)}")
        tell(scores.table({now.name: first, name: second}, now.name))
        return new
    finally:
        registry.close()


def _steps(learning: Learning) -> int | None:
    """The maximum number of training steps, as for `planned`."""
    return None if learning.kind == "counts" else learning.settings.max_steps


def _played(source: Path, out: Path, flags: Sequence[str], conditions: Conditions, ids: Sequence[str] = ()) -> Path:
    """Do the same as `play`, but let searches fail: `scores.read` decides whether too many did."""
    with suppress(SomeFailed):
        play(source, out, flags, conditions, ids)
    return out


def _require_open(settings: Sequence[str]) -> None:
    """Check that the settings do not select a policy, which would be the same on both sides of the comparison."""
    named = [key for key in ("policy", "policy.name") for setting in settings if setting.partition("=")[0] == key]
    fixed = sorted({"by", "counts", "model"} & given(settings, {}).policy.options.keys())
    for key in (*named, *(f"policy.{key}" for key in fixed)):
        raise UsageError(f"{key} is chosen by the round itself: leave it out of the settings")


def _require_environments(learning: Learning) -> None:
    """Check, before anything is searched, for the packages that a model needs later."""
    if learning.kind != "counts":
        _require_package(str(learning.train_python or sys.executable), "trl", "--train-python")
        _require_package(learning.serve_python, "vllm", "--serve-python")


def _require_package(python: str, package: str, flag: str) -> None:
    """Raise UsageError if the interpreter, which `flag` selects, cannot import the package."""
    try:
        found = training.has_package(python, package)
    except OSError as error:
        raise UsageError(f"{python} cannot be run ({error.strerror}): name another with {flag}") from error
    if not found:
        raise UsageError(f"{python} has no {package}: name an interpreter that has it with {flag}")


def _bugs(source: Path, folder: Path) -> list[Instance]:
    return list(open_source(str(source), folder / ".look", reveal=True).instances())


def _judged(request: Round, new: Policy, better: scores.Better | scores.MoreSolved, shared: list[str]) -> Policy:
    """The new version with the result of the comparison."""
    tasks, held_out = (in_full(str(source)) for source in (request.tasks, request.held_out))
    results = better.to_json() | {"held_out": held_out, "seen_repositories": shared}
    return replace(new, data={"tasks": tasks, **new.data}, scores=results, kept=better.convincing)


def _outcome(better: scores.Better | scores.MoreSolved, present: str) -> str:
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
    known = (rollout_rates if request.policy else rates)(runs_in(earlier))
    chosen = fitting(names, known, request.easiest)
    if not chosen:
        raise UsageError(
            f"no task of {request.tasks} is solved in some searches but not in all, so none is worth searching again: "
            "make other tasks, or raise --easiest"
        )
    return chosen


@contextmanager
def _playing(request: Round, folder: Path, policy: Policy) -> Iterator[list[str]]:
    """Yield the settings that select a version, and serve its model for the block."""
    learning, path = request.learning, folder / policy.path
    if policy.path and not path.exists():
        raise UsageError(f"{path}, which is the policy {policy.name}, is missing: restore it")
    if policy.kind not in ("model", "chat"):
        yield flags_of(policy.kind, path)
        return
    name, log = "chat" if policy.kind == "chat" else "edit", folder / policy.name / "server.log"
    server = serving.Server(str(path), f"{name}-{policy.name}", port=learning.port, cpu=learning.cpu)
    log.parent.mkdir(exist_ok=True)
    with serving.running(server, learning.serve_python, log=log):
        yield flags_of(policy.kind, path, server.served, f"{server.root}/v1")


def _learned(request: Round, folder: Path, batch: Path, now: Policy, name: str) -> Policy:
    """Learn the next version from the searches of the present one; it is not compared yet."""
    learning, runs, policy = request.learning, runs_in([batch]), Policy(name, request.learning.kind, parent=now.name)
    match learning.kind:
        case "counts":
            with ExitStack() as held:
                counts = count_edits(held.enter_context(Run.read(path)) for path in runs)
            counts.write(folder / name / "counts.json")
            data = {"runs": counts.runs, "edits": counts.tried, "right": counts.right}
            return replace(policy, path=f"{name}/counts.json", data=data)
        case "model":
            return _trained(policy, learning, folder, runs, "edit")
        case "chat":
            settings = replace(learning.settings, model=str(folder / now.path))
            return _trained(
                policy, replace(learning, settings=settings), folder, _of_use(request, runs), ROWS[learning.method]
            )
        case unknown:
            assert_never(unknown)


def _of_use(request: Round, runs: Sequence[Path]) -> list[Path]:
    """The runs of tasks of the right difficulty.

    Raises:
        UsageError: there are none.
    """
    known = rollout_rates(runs)
    wanted = {name for name, rate in known.items() if 0 < rate < request.easiest}
    if not wanted:
        never = sum(rate == 0 for rate in known.values())
        raise UsageError(
            f"nothing can be learned from the {len(known)} tasks of {request.tasks}: {never} were never solved, and "
            f"{len(known) - never} nearly always; give other tasks, more --rollouts or a higher --easiest"
        )
    return [path for path in runs if path.name in wanted]


def _trained(policy: Policy, learning: Learning, folder: Path, runs: Sequence[Path], form: str) -> Policy:
    """Return the policy with its model trained on the runs' rows in this format.

    Raises:
        UsageError: the runs have no such rows.
    """
    place = folder / policy.name
    manifest = export(runs, form, place / "rows", easy_first=learning.settings.in_order)
    if not manifest["rows"]:
        raise UsageError(
            f"{counting.counted(len(runs), 'run has', 'runs have')} no rows of the format {form}; "
            "`ramify export RUNS --report` says why"
        )
    plan = training.plan(learning.method, [place / "rows"], learning.settings)
    metrics = training.train(plan, place / "training", python=learning.train_python)
    data = {"rows": manifest["rows"], "files": manifest["files"], "policies": list(plan.spec()["policies"])}
    return replace(policy, path=f"{policy.name}/training/model", data=data | {"steps": metrics["steps"]})
