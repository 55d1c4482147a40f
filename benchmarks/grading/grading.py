"""Grades patches from scratch: in a fresh clone and a new sandbox, with the hidden tests, and with no data from the
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
from agent.measure.warm.plugins import Limits
from agent.task import resolve_task
from benchmarks.data import clones
from benchmarks.data.instances import Instance, InstanceBroken
from benchmarks.data.predictions import Prediction
from benchmarks.data.sources import Source
from benchmarks.grading.evidence import Archive
from benchmarks.grading.harness.script import run_script
from benchmarks.grading.verdicts import Finding, Verdict, VerdictCache, decide
from sandboxes import Provider, SandboxError, SandboxUnavailable, Snapshot
from sandboxes.docker.pulls import until

LIMITS = Limits(cpu_s=120, wall_s=300, run_s=1800, timeouts=1_000_000)
"""Generous limits: it is not known how long the tests take, and a slow test must not decide a verdict."""


def grade(
    instance: Instance, patch: bytes, source: Source, provider: Provider, archive: Archive | None = None
) -> Verdict:
    """Grade a patch and keep the evidence in the archive. If something outside the patch fails, the verdict is
    `error`."""
    began = time.monotonic()
    finding = examine(instance, patch, source, provider) if patch.strip() else Finding()
    verdict = decide(instance.id, patch, instance.hidden, finding)
    verdict = replace(verdict, seconds=round(time.monotonic() - began, 3))
    if archive is not None:
        archive.keep(instance, patch, finding, verdict)
    return verdict


def examine(instance: Instance, patch: bytes, source: Source, provider: Provider) -> Finding:
    """Run the hidden tests on a patch, which may be empty. Failures become part of the finding."""
    try:
        return run_hidden_tests(instance, patch, source, provider)
    except clones.GitRefused as error:
        return Finding(refused=str(error))
    except (RamifyError, SandboxError) as error:
        return Finding(fault=str(error))


def run_hidden_tests(instance: Instance, patch: bytes, source: Source, provider: Provider) -> Finding:
    """Run the whole test command on the base state with `patch`. The files of the hidden tests are as their authors
    left them, whatever the patch does to them.

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
        task = resolve_task(task, provider, base)
        rules = replace(rules_for(provider, task, reference), limits=LIMITS)
        if instance.hidden.fail_to_pass == (COMMAND,):
            rules = replace(rules, adapter="exit-code")
        return Finding(run_suite(provider, task, candidate, reference, rules=rules), state=base.digest)
    finally:
        for state in dict.fromkeys(states):
            provider.discard(state)


def _test_files(instance: Instance) -> tuple[str, ...]:
    """Patterns of the files that a patch must not change: the task's own protected files, the files of the test patch,
    and the files with a hidden test."""
    hidden = instance.hidden
    test_files = {file_of(test) for test in (*hidden.fail_to_pass, *hidden.pass_to_pass)}
    paths = sorted({*clones.paths_of(hidden.test_patch), *test_files})
    return (*instance.task.protected_paths, *map(escape, paths))


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
    """A verdict for each prediction, in order, from the cache or graded now and added to it. The predictions of one
    instance share its checkout and are graded one after the other. If the caller stops early, or an error occurs,
    gradings in progress finish and no other is started.

    Raises:
        UsageError: a prediction is for an instance that the source does not have.
    """
    predictions = list(predictions)
    if unknown := [p.instance_id for p in predictions if p.instance_id not in instances]:
        raise UsageError(f"the predictions have {unknown[0]!r}, which this source does not")

    of_instance = defaultdict[str, list[Prediction]](list)
    for prediction in predictions:
        of_instance[prediction.instance_id].append(prediction)
    stopping = threading.Event()

    def graded_in_turn(name: str) -> Iterator[Verdict]:
        judged = partial(_judged, instances[name], cache, until(stopping)(grade_one))
        return iter([judged(prediction) for prediction in of_instance[name]])

    with ThreadPoolExecutor(workers, thread_name_prefix="grade") as pool:
        graded = {name: pool.submit(graded_in_turn, name) for name in of_instance}
        try:
            for prediction in predictions:
                yield next(graded[prediction.instance_id].result())
        finally:
            stopping.set()
            pool.shutdown(wait=False, cancel_futures=True)


def _judged(
    instance: Instance, cache: VerdictCache, grade_one: Callable[[Instance, bytes], Verdict], prediction: Prediction
) -> Verdict:
    """The cached verdict, or a new one that is added to the cache."""
    cached = cache.get(instance, prediction.patch, prediction.mode)
    if cached is not None:
        return cached
    verdict = replace(grade_one(instance, prediction.patch), mode=prediction.mode)
    cache.put(instance, prediction.patch, verdict)
    return verdict
