"""Grades patches from scratch: in a fresh clone and a sandbox of its own, with the hidden tests and nothing of the
search."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from glob import escape

from agent.errors import RamifyError, UsageError
from agent.evaluate.verification import NO_GIT, apply_patch
from agent.measure.ids import file_of
from agent.measure.reading import COMMAND
from agent.measure.suite import rules_for, run_suite
from agent.measure.warm.planting import Limits
from agent.task import settled
from benchmarks.data import clones
from benchmarks.data.instances import Instance, InstanceBroken
from benchmarks.data.predictions import Prediction
from benchmarks.data.sources import Source
from benchmarks.grading.evidence import Archive
from benchmarks.grading.harness.script import run_script
from benchmarks.grading.verdicts import Finding, Verdict, VerdictCache, decide
from sandboxes import Provider, SandboxError, SandboxUnavailable, Snapshot
from sandboxes.docker.pulls import until

__all__ = ["examine", "grade", "grade_all"]


LIMITS = Limits(cpu_s=120, wall_s=300, run_s=1800, timeouts=1_000_000)
"""Generous limits: a slow test must not decide a verdict."""


def grade(
    instance: Instance, patch: bytes, source: Source, provider: Provider, archive: Archive | None = None
) -> Verdict:
    """The verdict on a patch; its evidence is kept in the archive. Outside failures give the verdict `error`."""
    began = time.monotonic()
    finding = examine(instance, patch, source, provider) if patch.strip() else Finding()
    verdict = decide(instance.id, patch, instance.hidden, finding)
    verdict = replace(verdict, seconds=round(time.monotonic() - began, 3))
    if archive is not None:
        archive.keep(instance, patch, finding, verdict)
    return verdict


def examine(instance: Instance, patch: bytes, source: Source, provider: Provider) -> Finding:
    """The result of the hidden tests on a patch, which may be empty."""
    try:
        return run_hidden_tests(instance, patch, source, provider)
    except clones.GitRefused as error:
        return Finding(refused=str(error))
    except (RamifyError, SandboxError) as error:
        return Finding(fault=f"{type(error).__name__}: {error}")


def run_hidden_tests(instance: Instance, patch: bytes, source: Source, provider: Provider) -> Finding:
    """The whole test command on the base state with `patch`, the hidden tests' files as their authors left them.

    Raises:
        GitRefused: the patch does not apply to the base state.
        agent.errors.RamifyError, sandboxes.SandboxError: the tests cannot be run.
    """
    try:
        source.prepare(instance)
    except clones.GitRefused as error:
        raise InstanceBroken(f"{instance.id} cannot be checked out: {error}") from error
    if instance.hidden.eval_script:
        return run_script(instance, patch, provider)
    base = provider.create(replace(instance.hidden.workspace or instance.task.workspace, byte_code=True))
    states = [base]
    try:
        states.append(reference := _with_hidden_tests(instance, provider, base))
        states.append(candidate := _patched(provider, base, patch))
        command = instance.hidden.test_command or instance.task.test_command
        task = replace(instance.task, test_command=command, protected_paths=_test_files(instance))
        task = settled(task, provider, base)
        rules = replace(rules_for(provider, task, reference), limits=LIMITS)
        if instance.hidden.fail_to_pass == (COMMAND,):
            rules = replace(rules, adapter="exit-code")
        return Finding(run_suite(provider, task, candidate, reference, rules=rules), state=base.digest)
    finally:
        for state in dict.fromkeys(states):
            provider.discard(state)


def _test_files(instance: Instance) -> tuple[str, ...]:
    """Files that a patch may not decide about, as patterns: the task's own, those of the test patch, and those that
    hold a test."""
    hidden = instance.hidden
    holding = {file_of(test) for test in (*hidden.fail_to_pass, *hidden.pass_to_pass)}
    named = sorted({*clones.paths_of(hidden.test_patch), *holding})
    return (*instance.task.protected_paths, *map(escape, named))


def _with_hidden_tests(instance: Instance, provider: Provider, base: Snapshot) -> Snapshot:
    try:
        return _patched(provider, base, instance.hidden.test_patch)
    except clones.GitRefused as error:
        raise InstanceBroken(f"the test patch of {instance.id} does not apply: {error}") from error


def _patched(provider: Provider, base: Snapshot, patch: bytes) -> Snapshot:
    if not patch:
        return base
    state, why = apply_patch(provider, base, patch)
    if state is None:
        raise SandboxUnavailable(why) if why == NO_GIT else clones.GitRefused(why)
    return state


def grade_all(
    predictions: Iterable[Prediction],
    instances: Mapping[str, Instance],
    cache: VerdictCache,
    grade_one: Callable[[Instance, bytes], Verdict],
    *,
    workers: int,
) -> Iterator[Verdict]:
    """A verdict for each prediction, in their order; those known are read from the cache, the others kept there. Those
    of one instance, which share its checkout, are graded one after the other. Whoever stops early, or is stopped by an
    error, waits for the instances that are being graded and begins no other.

    Raises:
        UsageError: a prediction for an instance that the source does not have.
    """
    known = list(predictions)
    if strange := [p.instance_id for p in known if p.instance_id not in instances]:
        raise UsageError(f"the predictions have {strange[0]!r}, which this source does not")

    of_instance = defaultdict[str, list[Prediction]](list)
    for prediction in known:
        of_instance[prediction.instance_id].append(prediction)
    stopping = threading.Event()

    def graded_in_turn(name: str) -> Iterator[Verdict]:
        judged = partial(_judged, instances[name], cache, until(stopping)(grade_one))
        return iter([judged(prediction) for prediction in of_instance[name]])

    with ThreadPoolExecutor(workers, thread_name_prefix="grade") as pool:
        graded = {name: pool.submit(graded_in_turn, name) for name in of_instance}
        try:
            for prediction in known:
                yield next(graded[prediction.instance_id].result())
        finally:
            stopping.set()
            pool.shutdown(wait=False, cancel_futures=True)


def _judged(
    instance: Instance, cache: VerdictCache, grade_one: Callable[[Instance, bytes], Verdict], prediction: Prediction
) -> Verdict:
    """The known verdict, or a new one that is kept."""
    cached = cache.get(instance, prediction.patch, prediction.mode)
    if cached is not None:
        return cached
    verdict = replace(grade_one(instance, prediction.patch), mode=prediction.mode)
    cache.put(instance, prediction.patch, verdict)
    return verdict
