"""Instances: what a solver is given, and what is kept from it."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from agent.errors import UsageError
from agent.task import dump_task
from benchmarks.data import clones
from benchmarks.data.instances import Hidden, Instance, InstanceBroken, select
from benchmarks.data.sources import Source, open_source
from benchmarks.data.suites import suite_id
from tests.instances import FILES, FIXED, TESTED, bare_instance, git, make_benchmark, patch_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_benchmark(tmp_path / "set")


def opened(folder: Path, *, reveal: bool = False) -> tuple[Source, Instance, Path]:
    source = open_source(str(folder), folder.parent / "clones", reveal=reveal)
    instance = next(iter(source.instances()))
    source.prepare(instance)
    path = instance.task.workspace.path
    assert path is not None
    return source, instance, path


def test_a_checkout_holds_the_base_state_and_nothing_hidden(folder: Path) -> None:
    _, instance, clone = opened(folder)
    assert {p.name: p.read_bytes() for p in clone.iterdir() if p.is_file()} == FILES
    assert (instance.task.goal_tests, instance.task.protected_paths) == ((), ())
    assert "test_add" not in json.dumps(dump_task(instance.task))
    assert "test_add" not in repr(instance)


def test_what_solving_keeps_of_an_instance_has_nothing_that_only_grading_needs(folder: Path) -> None:
    _, instance, _ = opened(folder)
    kept = instance.to_solve()
    assert instance.hidden.patch
    assert kept == replace(instance, hidden=Hidden((), (), b"", instance.hidden.test_patch))


def test_a_checkout_has_one_commit_and_no_remote(folder: Path) -> None:
    _, instance, clone = opened(folder)
    assert git(clone, "rev-list", "--all", "HEAD", "--count").strip() == b"1"
    assert git(clone, "rev-parse", "HEAD").decode().strip() == instance.task.base
    assert git(clone, "remote") == b""
    assert git(clone, "status", "--porcelain") == b""


def test_later_and_earlier_commits_cannot_be_looked_up(tmp_path: Path) -> None:
    folder = make_benchmark(tmp_path / "set")
    upstream = folder / "upstream"
    base = git(upstream, "rev-parse", "HEAD").decode().strip()
    (upstream / "calc.py").write_bytes(FIXED["calc.py"])
    git(upstream, "commit", "-q", "-am", "the fix")
    fix = git(upstream, "rev-parse", "HEAD").decode().strip()
    clones.clone(upstream, base, tmp_path / "clone")
    assert (tmp_path / "clone" / "calc.py").read_bytes() == FILES["calc.py"]
    assert git(tmp_path / "clone", "rev-list", "--all", "--reflog", "HEAD", "--count").strip() == b"1"
    looked_up = subprocess.run(["git", "cat-file", "-e", fix], cwd=tmp_path / "clone", capture_output=True, check=False)
    assert looked_up.returncode != 0


def test_revealed_tests_are_part_of_the_base_and_protected(folder: Path) -> None:
    _, instance, clone = opened(folder, reveal=True)
    assert (clone / "test_calc.py").read_bytes() == TESTED["test_calc.py"]
    assert (clone / "calc.py").read_bytes() == FILES["calc.py"]
    assert git(clone, "status", "--porcelain") == b""
    assert git(clone, "rev-list", "--all", "HEAD", "--count").strip() == b"1"
    assert instance.task.goal_tests == ("test_calc.py::test_add",)
    assert instance.task.protected_paths == ("test_calc.py",)
    assert instance.mode == "revealed"


def test_git_configuration_and_hooks_of_the_user_have_no_effect(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    template = folder / "template"
    (template / "hooks").mkdir(parents=True)
    hook = template / "hooks" / "post-checkout"
    hook.write_text("#!/bin/sh\ntouch hooked\n")
    hook.chmod(0o755)
    (folder / "config").write_text(f"[init]\ntemplateDir = {template}\n[core]\nautocrlf = true\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(folder / "config"))
    monkeypatch.setenv("GIT_DIR", str(folder / "nowhere"))
    _, _, clone = opened(folder)
    monkeypatch.delenv("GIT_DIR")
    assert sorted(p.name for p in clone.iterdir()) == [".git", *sorted(FILES)]
    assert (clone / "calc.py").read_bytes() == FILES["calc.py"]


def test_preparing_again_gives_a_fresh_checkout(folder: Path) -> None:
    source, instance, clone = opened(folder)
    (clone / "calc.py").write_text("changed")
    (clone / "new.py").write_text("new")
    source.prepare(instance)
    assert {p.name for p in clone.iterdir()} == {".git", *FILES}
    assert (clone / "calc.py").read_bytes() == FILES["calc.py"]


def test_the_paths_of_a_patch_include_both_ends_of_a_rename_and_what_is_removed(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    for name in ("old é.py", "gone.py", "kept.py"):
        (tmp_path / name).write_bytes(b"some = 'content'\n" * 5)
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "base")
    os.rename(tmp_path / "old é.py", tmp_path / "new name.py")
    (tmp_path / "gone.py").unlink()
    git(tmp_path, "add", "-A")
    patch = git(tmp_path, "diff", "--cached", "-M", "--binary")
    assert b"rename from" in patch
    assert clones.paths_of(patch) == ("gone.py", "new name.py", "old é.py")


def test_a_patch_applies_whole_or_not_at_all(folder: Path) -> None:
    _, _, clone = opened(folder)
    good = patch_of(clone, {"new.py": b"x = 1\n"})
    bad = patch_of(clone, FIXED).replace(b"-    return a - b", b"-    return a * b")
    with pytest.raises(clones.GitRefused, match="patch does not apply"):
        clones.apply(clone, good + bad)
    assert not (clone / "new.py").exists()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"instance_id": "../escape"}, "cannot name a folder"),
        ({"FAIL_TO_PASS": "not a list"}, r"instances\.jsonl:1 \(calc-1\): 'not a list' is not a list"),
        ({"FAIL_TO_PASS": [1]}, "not a list of test ids"),
        ({"instance_id": 1}, r"instances\.jsonl:1 \(1\): the instance_id 1 cannot name a folder"),
        ({"test_patch": "no patch"}, r"\(calc-1\): test_patch is no git patch"),
        ({"bundle": "../calc.bundle"}, "'../calc.bundle' leads out of"),
        ({"bundle": "/calc.bundle"}, "'/calc.bundle' leads out of"),
        ({"FAIL_TO_PASS": []}, "FAIL_TO_PASS is empty: name the tests that fail without the solution"),
    ],
)
def test_a_row_that_cannot_be_used_is_named(tmp_path: Path, fields: dict[str, object], message: str) -> None:
    folder = make_benchmark(tmp_path / "set", **fields)
    with pytest.raises(UsageError, match=message):
        list(open_source(str(folder), tmp_path / "clones", reveal=True).instances())


def test_a_missing_field_is_named(folder: Path) -> None:
    (folder / "instances.jsonl").write_text('{"instance_id": "x", "bundle": "x.bundle"}\n')
    with pytest.raises(UsageError, match=r"instances\.jsonl:1 \(x\): no field 'test_patch'"):
        list(open_source(str(folder), folder / "clones").instances())


def test_where_no_row_can_be_used_the_first_ones_are_named_each_with_its_reason(folder: Path) -> None:
    rows = [{"instance_id": f"x{number}", "bundle": "x.bundle"} for number in range(7)]
    (folder / "instances.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with pytest.raises(UsageError) as caught:
        list(open_source(str(folder), folder / "clones").instances())
    lines = str(caught.value).splitlines()
    assert [line.partition(" ")[0][-2:] for line in lines[:5]] == [f":{number}" for number in range(1, 6)]
    assert lines[5:] == ["and 2 more rows that cannot be used"]


def test_a_missing_bundle_is_named(folder: Path) -> None:
    (folder / "calc.bundle").unlink()
    with pytest.raises(InstanceBroken, match=r"calc\.bundle does not exist"):
        opened(folder)


def test_a_checkout_that_git_does_not_make_breaks_the_instance_and_blames_no_patch(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, _, clone = opened(folder)
    (clone / ".git" / "index.lock").touch()
    with pytest.raises(InstanceBroken, match=r"a repository with one commit: .*index\.lock"):
        clones.seal(clone)
    monkeypatch.setattr(clones, "TIMEOUT_S", 0)
    with pytest.raises(InstanceBroken, match="git clone took longer than 0 s"):
        opened(folder)


def test_instances_are_chosen_by_id_then_pattern_then_slice(tmp_path: Path) -> None:
    folder = make_benchmark(tmp_path / "set", ids=("a-1", "a-2", "b-1", "b-2"))
    everything = list(open_source(str(folder), tmp_path / "clones").instances())

    def chosen(**choice: object) -> list[str]:
        return [i.id for i in select(everything, **choice)]  # type: ignore[arg-type]  # keywords of select

    assert chosen() == ["a-1", "a-2", "b-1", "b-2"]
    assert chosen(ids=("b-1", "a-2")) == ["a-2", "b-1"]
    assert chosen(pattern="-2$", part=":1") == ["a-2"]
    assert chosen(part="-1:") == ["b-2"]
    for wrong in ({"ids": ("c",)}, {"pattern": "("}, {"part": "x"}, {"part": "9:"}, {"part": "0:9:0"}):
        with pytest.raises(UsageError):
            chosen(**wrong)


def test_a_seed_gives_an_order_that_a_longer_set_keeps() -> None:
    def order(names: str, **choice: object) -> str:
        return "".join(i.id for i in select(map(bare_instance, names), **choice))  # type: ignore[arg-type]

    shuffled = order("abcdefgh", shuffle=7)
    assert sorted(shuffled) == list("abcdefgh")
    assert shuffled not in ("abcdefgh", order("abcdefgh", shuffle=8))
    assert order("hgfedcba", shuffle=7) == shuffled
    assert order("abcdefghij", shuffle=7).translate({ord("i"): None, ord("j"): None}) == shuffled
    assert order("abcdefgh", shuffle=7, part=":3") == shuffled[:3]


def test_a_suite_is_named_by_its_content_alone(folder: Path, tmp_path: Path) -> None:
    row = json.loads((folder / "instances.jsonl").read_text())

    def named(*ids: str, reveal: bool = False, **changed: object) -> str:
        rows = [json.dumps({**row, "instance_id": name, **changed}) for name in ids]
        (folder / "instances.jsonl").write_text("\n".join(rows))
        return suite_id(open_source(str(folder), tmp_path / "clones", reveal=reveal).instances())

    first = named("x", "y")
    assert first == named("y", "x", reveal=True)
    others = [named("x", "y", **{field: "[]"}) for field in ("problem_statement", "PASS_TO_PASS", "test_cmd", "patch")]
    assert len({first, named("x"), *others}) == 6
