"""Grading: from scratch, by the hidden tests, whatever the patch does to the tests that it can see."""

from __future__ import annotations

import json
import sys
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from threading import Event, Lock

import pytest

from benchmarks.data.clones import GitRefused
from benchmarks.data.instances import Instance
from benchmarks.data.predictions import Prediction
from benchmarks.data.sources import Source, open_source
from benchmarks.grading.grading import grade, grade_all
from benchmarks.grading.validation import check
from benchmarks.grading.verdicts import Verdict, VerdictCache, patch_digest
from sandboxes import Provider
from sandboxes.namespace.provider import namespace_provider
from tests.instances import FILES, FIXED, HIDDEN_TEST, bare_instance, make_benchmark, patch_of

pytestmark = pytest.mark.namespace

PYTEST = f"{sys.executable} -m pytest -q -p no:cacheprovider"
SKIP_ALL = b"import pytest\n\n\n@pytest.fixture(autouse=True)\ndef skip():\n    pytest.skip()\n"
PASS_ALL = b"""import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    done = yield
    done.get_result().outcome = "passed"
"""


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[Provider]:
    made = namespace_provider(tmp_path / "store")
    yield made
    made.close()


@pytest.fixture
def source(tmp_path: Path) -> Source:
    folder = make_benchmark(tmp_path / "set", test_cmd=PYTEST, requirements=[])
    return open_source(str(folder), tmp_path / "clones")


@pytest.fixture
def instance(source: Source) -> Instance:
    return next(iter(source.instances()))


def patch(source: Source, instance: Instance, files: dict[str, bytes]) -> bytes:
    """A patch against the base state."""
    source.prepare(instance)
    assert instance.task.workspace.path is not None
    return patch_of(instance.task.workspace.path, files)


def test_the_reference_solution_is_resolved(source: Source, instance: Instance, provider: Provider) -> None:
    verdict = grade(instance, instance.hidden.patch, source, provider)
    assert (verdict.status, verdict.failing, verdict.broken, verdict.reason) == ("resolved", (), (), "")


def test_no_patch_is_not_run(source: Source, instance: Instance, provider: Provider) -> None:
    assert grade(instance, b"\n", source, provider).status == "empty_patch"


def test_a_patch_that_does_not_apply_is_called_so(source: Source, instance: Instance, provider: Provider) -> None:
    broken = instance.hidden.patch.replace(b"-    return a - b", b"-    return a * b")
    verdict = grade(instance, broken, source, provider)
    assert (verdict.status, "does not apply" in verdict.reason) == ("apply_failed", True)


class Refusing:
    """A source whose clones fail."""

    def instances(self) -> Iterator[Instance]:
        yield bare_instance("a")

    def prepare(self, instance: Instance) -> None:
        raise GitRefused("no space left on device")


def test_a_checkout_that_git_refuses_is_no_fault_of_the_patch(provider: Provider) -> None:
    verdict = grade(bare_instance("a"), b"x", Refusing(), provider)
    assert (verdict.status, "no space left" in verdict.reason) == ("error", True)


def test_a_patch_that_breaks_another_test_is_not_resolved(
    source: Source, instance: Instance, provider: Provider
) -> None:
    breaking = patch(source, instance, {"calc.py": FIXED["calc.py"].replace(b"2 * a", b"3 * a")})
    verdict = grade(instance, breaking, source, provider)
    assert (verdict.status, verdict.failing) == ("unresolved", ())
    assert verdict.broken == ("test_calc.py::test_twice",)


@pytest.mark.parametrize(
    "files",
    [
        {"test_calc.py": FILES["test_calc.py"] + HIDDEN_TEST.replace(b"== 5", b"== -1")},
        {"conftest.py": SKIP_ALL},
        {"conftest.py": PASS_ALL},
        {"pytest.ini": b"[pytest]\naddopts = --collect-only\n"},
        {"calc.py": b"raise SystemExit(0)\n"},
    ],
    ids=["the test itself", "a conftest that skips", "a conftest that forges", "settings", "an early exit"],
)
@pytest.mark.slow
def test_a_patch_cannot_talk_round_the_tests(
    source: Source, instance: Instance, provider: Provider, files: dict[str, bytes]
) -> None:
    assert grade(instance, patch(source, instance, files), source, provider).status == "unresolved"


def test_a_patch_with_its_own_version_of_the_hidden_test_file_is_graded_by_the_hidden_one(
    source: Source, instance: Instance, provider: Provider
) -> None:
    both = patch(source, instance, {**FIXED, "test_calc.py": b"def test_mine():\n    assert False\n"})
    assert grade(instance, both, source, provider).status == "resolved"


def test_bytes_that_are_not_text_reach_the_tests_unchanged(
    tmp_path: Path, provider: Provider, source: Source, instance: Instance
) -> None:
    data = {**FIXED, "latin.txt": b"caf\xe9\r\n"}
    row = json.loads(json.dumps(Prediction("calc-1", "m", patch(source, instance, data)).to_row()))
    assert grade(instance, Prediction.from_row(row).patch, source, provider).status == "resolved"


@pytest.mark.slow
def test_an_instance_that_holds_is_told_from_one_that_does_not(tmp_path: Path, provider: Provider) -> None:
    good = open_source(str(make_benchmark(tmp_path / "a", test_cmd=PYTEST, requirements=[])), tmp_path / "ca")
    found = check(next(iter(good.instances())), good, provider)
    assert (found.valid, found.gold, found.empty) == (True, "", "")
    easy = json.dumps(["test_calc.py::test_twice"])
    folder = make_benchmark(
        tmp_path / "b", test_cmd=PYTEST, requirements=[], FAIL_TO_PASS=easy, PASS_TO_PASS=["x.py::y"]
    )
    bad = open_source(str(folder), tmp_path / "cb")
    found = check(next(iter(bad.instances())), bad, provider)
    assert "1 test of FAIL_TO_PASS passes without a patch" in found.empty
    assert "1 test of PASS_TO_PASS did not pass" in found.gold


def test_the_same_patch_is_graded_once(tmp_path: Path, source: Source, instance: Instance, provider: Provider) -> None:
    runs = []

    def graded(each: Instance, patch: bytes) -> Verdict:
        runs.append(each.id)
        return grade(each, patch, source, provider)

    cache = VerdictCache(tmp_path / "verdicts.jsonl")
    for model in ("one", "another"):
        prediction = Prediction("calc-1", model, instance.hidden.patch, "hidden")
        (verdict,) = grade_all([prediction], {"calc-1": instance}, cache, graded, workers=1)
        assert (verdict.status, verdict.mode) == ("resolved", "hidden")
    cache.close()
    assert runs == ["calc-1"]


def test_patches_of_one_instance_are_graded_one_after_the_other_beside_those_of_others(tmp_path: Path) -> None:
    """They share its checkout. The first one waits until the other instance is graded as well."""
    instances = {name: bare_instance(name) for name in ("one", "two")}
    other, busy, grading = Event(), list[str](), Lock()

    def grade_one(instance: Instance, patch: bytes) -> Verdict:
        with grading:
            assert instance.id not in busy
            busy.append(instance.id)
        if instance.id == "two":
            other.set()
        assert other.wait(100)
        with grading:
            busy.remove(instance.id)
        return Verdict(instance.id, "unresolved", patch_digest(patch))

    wanted = [("one", b"a"), ("one", b"b"), ("two", b"c"), ("one", b"d")]
    predictions = [Prediction(name, "m", patch) for name, patch in wanted]
    with closing(VerdictCache(tmp_path / "verdicts.jsonl")) as cache:
        verdicts = list(grade_all(predictions, instances, cache, grade_one, workers=2))
    assert [(v.instance_id, v.patch_sha256) for v in verdicts] == [(name, patch_digest(p)) for name, p in wanted]


def test_whoever_stops_grading_waits_for_what_is_being_graded_alone(tmp_path: Path) -> None:
    names, stopped, begun = [str(number) for number in range(50)], Event(), list[str]()

    def grade_one(instance: Instance, patch: bytes) -> Verdict:
        begun.append(instance.id)
        if len(begun) > 1:
            stopped.wait(0.2)
        return Verdict(instance.id, "unresolved", patch_digest(patch))

    predictions = [Prediction(name, "m", b"a") for name in names]
    with closing(VerdictCache(tmp_path / "verdicts.jsonl")) as cache:
        verdicts = grade_all(predictions, {name: bare_instance(name) for name in names}, cache, grade_one, workers=1)
        assert isinstance(verdicts, Generator)
        assert next(verdicts).instance_id == "0"
        verdicts.close()
    assert len(begun) < len(names)
