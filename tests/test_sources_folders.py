"""Sources that are folders: QuixBugs, RefactorBench and Harbor, laid out as they are published, shortened."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import docker
import pytest

from agent.errors import UsageError
from agent.task import dump_task
from benchmarks.data.instances import Instance, InstanceBroken
from benchmarks.data.sources import Source, open_source
from benchmarks.grading.grading import grade
from benchmarks.grading.validation import check
from sandboxes import Provider
from sandboxes.docker.images import BASE_IMAGE
from tests.instances import git, write

PYTHON = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}

# github.com/jkoppel/QuixBugs: the folders, the conftest and a test as they are there (README, conftest.py,
# python_testcases/test_gcd.py), with two programs of forty.
QUIXBUGS = {
    "LICENSE": b"MIT\n",
    "conftest.py": b"import pytest\n\n\ndef pytest_addoption(parser):\n"
    b'    parser.addoption("--correct", action="store_true")\n\n\n'
    b'def pytest_configure(config):\n    pytest.use_correct = config.getoption("--correct")\n',
    "java_programs/GCD.java": b"class GCD {}\n",
    "python_programs/gcd.py": b"def gcd(a, b):\n    return a if b == 0 else gcd(a % b, b)\n",
    "python_programs/node.py": b"class Node: ...\n",
    "python_programs/sieve.py": b"def sieve(n):\n    return []\n",
    "correct_python_programs/gcd.py": b"def gcd(a, b):\n    return a if b == 0 else gcd(b, a % b)\n",
    "correct_python_programs/sieve.py": b"def sieve(n):\n    return [2]\n",
    "python_testcases/load_testdata.py": b"import json\nfrom pathlib import Path\n\n\ndef load_json_testcases(name):\n"
    b"    file = Path(__file__).parent.parent / 'json_testcases' / f'{name}.json'\n"
    b"    return [json.loads(line) for line in file.open()]\n",
    "python_testcases/test_gcd.py": b"import pytest\nfrom load_testdata import load_json_testcases\n\n"
    b"if pytest.use_correct:\n    from correct_python_programs.gcd import gcd\n"
    b"else:\n    from python_programs.gcd import gcd\n\n\n"
    b'@pytest.mark.parametrize("given,expected", load_json_testcases("gcd"))\n'
    b"def test_gcd(given, expected):\n    assert gcd(*given) == expected\n",
    "python_testcases/test_sieve.py": b"",
    "json_testcases/gcd.json": b"[[17, 0], 17]\n[[13, 13], 13]\n",
    "json_testcases/sieve.json": b"[[1], []]\n",
}
FEWER_CASES = b"""diff --git a/json_testcases/gcd.json b/json_testcases/gcd.json
--- a/json_testcases/gcd.json
+++ b/json_testcases/gcd.json
@@ -1,2 +1 @@
 [[17, 0], 17]
-[[13, 13], 13]
"""
# github.com/microsoft/RefactorBench: the folders, a mapping and a checker as they are there (scripts/mapping.py,
# tests/flask_refactor/add-log-parameter-get-debug-flag-test.py).
REFACTORBENCH = {
    **{
        f"problems/{level}_problems/flask_refactor/add-log-task.txt": f"{level}: add a log parameter\n".encode()
        for level in ("base", "descriptive", "lazy")
    },
    **{
        f"scripts/{level}_mapping.py": b"file_mapping = {\n    '../tests/flask_refactor/add-log-test.py': "
        + f"'../problems/{level}_problems/flask_refactor/add-log-task.txt',\n}}\n".encode()
        for level in ("base", "descriptive", "lazy")
    },
    "tests/flask_refactor/add-log-test.py": b"import ast\nimport unittest\n\n\n"
    b"class TestHelpers(unittest.TestCase):\n    def test_log(self):\n"
    b"        with open('../src/helpers.py') as file:\n            tree = ast.parse(file.read())\n"
    b"        self.assertIn('log', ast.dump(tree))\n\n\nif __name__ == '__main__':\n    unittest.main()\n",
    "repositories/flask_refactor/src/helpers.py": b"def flag():\n    return True\n",
    "repositories/flask_refactor/pyproject.toml": b"[tool.pytest.ini_options]\naddopts = '--no-such-option'\n",
}
LOGGED = b"""diff --git a/src/helpers.py b/src/helpers.py
--- a/src/helpers.py
+++ b/src/helpers.py
@@ -1,2 +1,2 @@
-def flag():
+def flag(log=False):
     return True
"""
# The files of a task and their places, as Harbor's documentation has them.
HARBOR = {
    "task.toml": b'version = "1.0"\n[verifier]\ntimeout_sec = 120.0\n[environment]\ndocker_image = "owner/calc:1"\n',
    "instruction.md": b"Make add() add.\n",
    "tests/test.sh": b"#!/bin/bash\npython3 -c 'from calc import add; assert add(2, 3) == 5'\n"
    b"if [ $? -eq 0 ]; then echo 1 > /logs/verifier/reward.txt; else echo 0 > /logs/verifier/reward.txt; fi\n",
    "solution/solve.sh": b"#!/bin/bash\nsed -i 's/a - b/a + b/' calc.py\n",
}


@pytest.fixture
def quixbugs(tmp_path: Path) -> Path:
    write(tmp_path / "quixbugs", QUIXBUGS)
    return tmp_path / "quixbugs"


@pytest.fixture
def refactorbench(tmp_path: Path) -> Path:
    write(tmp_path / "refactorbench", REFACTORBENCH)
    return tmp_path / "refactorbench"


def test_a_program_of_quixbugs_is_a_checkout_with_its_tests_and_no_correction(quixbugs: Path, tmp_path: Path) -> None:
    source = open_source(str(quixbugs), tmp_path / "clones")
    gcd, sieve = source.instances()
    assert (gcd.id, sieve.id, gcd.mode) == ("QuixBugs-gcd", "QuixBugs-sieve", "revealed")
    source.prepare(gcd)
    assert gcd.task.workspace.path is not None
    assert git(gcd.task.workspace.path, "ls-files").decode().split() == [
        "LICENSE", "conftest.py", "json_testcases/gcd.json", "python_programs/gcd.py", "python_programs/node.py",
        "python_testcases/load_testdata.py", "python_testcases/test_gcd.py",
    ]  # fmt: skip
    assert git(gcd.task.workspace.path, "status", "--porcelain") == b""
    assert b"+    return a if b == 0 else gcd(b, a % b)" in gcd.hidden.patch


@pytest.mark.slow
@pytest.mark.namespace
def test_a_program_of_quixbugs_is_graded_by_all_tests_of_its_file(
    quixbugs: Path, tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", PYTHON["PATH"])
    source = open_source(str(quixbugs), tmp_path / "clones")
    gcd, _ = source.instances()
    found = check(gcd, source, provider)
    assert (found.valid, found.gold, found.empty) == (True, "", "")
    assert grade(gcd, FEWER_CASES, source, provider).status == "unresolved"


def test_a_folder_of_programs_without_corrections_says_so(quixbugs: Path, tmp_path: Path) -> None:
    for file in (quixbugs / "correct_python_programs").iterdir():
        file.unlink()
    with pytest.raises(UsageError, match="no program with a file in correct_python_programs"):
        list(open_source(str(quixbugs), tmp_path / "clones").instances())


def test_a_refactoring_is_stated_at_the_level_that_the_name_asks_for(refactorbench: Path, tmp_path: Path) -> None:
    def statements(name: str) -> list[str]:
        return [i.task.statement for i in open_source(name, tmp_path / "clones").instances()]

    assert statements(str(refactorbench)) == ["descriptive: add a log parameter"]
    assert statements(f"{refactorbench}:lazy") == ["lazy: add a log parameter"]
    with pytest.raises(UsageError, match="no level 'vague': choose one of descriptive, base, lazy"):
        statements(f"{refactorbench}:vague")
    (refactorbench / "scripts" / "lazy_mapping.py").write_text("import os\n")
    with pytest.raises(UsageError, match="assigns no dict"):
        statements(f"{refactorbench}:lazy")
    (refactorbench / "scripts" / "lazy_mapping.py").write_text("them = {'../tests/x.py': '../../secret'}\n")
    with pytest.raises(UsageError, match="secret' leads out of"):
        statements(f"{refactorbench}:lazy")
    pair = "'../problems/lazy_problems/flask_refactor/add-log-task.txt'"
    one, other = "'../tests/flask_refactor/add-log-test.py'", "'../tests/./flask_refactor/add-log-test.py'"
    (refactorbench / "scripts" / "lazy_mapping.py").write_text(f"them = {{{one}: {pair}, {other}: {pair}}}\n")
    with pytest.raises(UsageError, match="add-log-task occurs twice"):
        statements(f"{refactorbench}:lazy")


@pytest.mark.slow
@pytest.mark.namespace
def test_a_refactoring_is_graded_by_its_checker_whatever_the_repository_says_of_tests(
    refactorbench: Path, tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", PYTHON["PATH"])
    source = open_source(f"{refactorbench}:base", tmp_path / "clones")
    (instance,) = source.instances()
    assert (instance.id, instance.repo) == ("add-log-task", "flask_refactor")
    assert grade(instance, LOGGED, source, provider).status == "resolved"
    wrong = grade(instance, LOGGED.replace(b"log=False", b"logger=0").replace(b"log", b"lag"), source, provider)
    assert (wrong.status, wrong.failing) == ("unresolved", ("_checker/test_checker.py",))
    found = check(instance, source, provider)
    assert (found.valid, found.gold, found.empty) == (True, None, "")


def test_a_repository_that_is_not_there_is_named(refactorbench: Path, tmp_path: Path) -> None:
    source = open_source(str(refactorbench), tmp_path / "clones")
    (instance,) = source.instances()
    (refactorbench / "repositories" / "flask_refactor").rename(tmp_path / "elsewhere")
    with pytest.raises(InstanceBroken, match=r"repositories/flask_refactor does not exist; put the repository"):
        source.prepare(instance)


def test_a_refactoring_whose_checker_is_revealed_has_it_in_its_only_commit(refactorbench: Path, tmp_path: Path) -> None:
    for reveal in (False, True):
        source = open_source(str(refactorbench), tmp_path / "clones", reveal=reveal)
        (instance,) = source.instances()
        source.prepare(instance)
        assert (clone := instance.task.workspace.path) is not None
        assert (b"_checker/test_checker.py" in git(clone, "ls-files")) is reveal
        assert git(clone, "rev-list", "--all", "HEAD", "--count").strip() == b"1"
        assert "add-log-test" not in json.dumps(dump_task(instance.task))


@pytest.mark.parametrize(
    ("file", "said", "resolved"),
    [
        ("reward.txt", "1", True),
        ("reward.txt", " 1.0\n", True),
        ("reward.txt", "", False),
        ("reward.txt", "0.5", False),
        ("reward.txt", "nan", False),
        ("reward.txt", "true", False),
        ("reward.json", '{"reward": 1.0}', True),
        ("reward.json", '{"reward": 1, "more": 0}', True),
        ("reward.json", '{"reward": 1e-3}', False),
        ("reward.json", '{"reward": 0.1}', False),
        ("reward.json", "", False),
    ],
)
def test_a_reward_of_one_and_nothing_else_resolves_a_harbor_task(
    tmp_path: Path, file: str, said: str, resolved: bool
) -> None:
    script = f"printf %s {shlex.quote(said)} > {tmp_path}/logs/verifier/{file}\n"
    write(tmp_path / "task", {**HARBOR, "tests/test.sh": script.encode()})
    (instance,) = open_source(str(tmp_path / "task"), tmp_path / "clones").instances()
    command = instance.hidden.test_command.replace("/tests", f"{tmp_path}/tests").replace("/logs", f"{tmp_path}/logs")
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=False)
    assert (done.returncode == 0) is resolved


def test_harbor_tasks_are_read_one_or_several(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(tmp_path / "tasks" / name, HARBOR)
    several = list(open_source(str(tmp_path / "tasks"), tmp_path / "clones").instances())
    (single,) = open_source(str(tmp_path / "tasks" / "two"), tmp_path / "clones").instances()
    assert [i.id for i in several] == ["one", "two"]
    assert (single.id, single.task.statement) == ("two", "Make add() add.\n")
    assert single.task.workspace.image == "docker.io/owner/calc:1"
    assert "test.sh" not in json.dumps([single.task.test_command, single.task.workspace.setup])


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"task.toml": b"version = 1\n"}, "neither environment.docker_image nor environment/Dockerfile"),
        ({"task.toml": b"version = \n"}, "is not a Harbor task: Invalid value"),
        ({"instruction.md": None}, "is not a Harbor task: .*instruction.md"),
        ({"tests/test.sh": None}, "no tests/test.sh"),
    ],
)
def test_a_harbor_task_that_lacks_something_is_named(tmp_path: Path, files: dict[str, bytes], message: str) -> None:
    write(tmp_path / "task", {name: data for name, data in {**HARBOR, **files}.items() if data is not None})
    with pytest.raises(UsageError, match=message):
        list(open_source(str(tmp_path / "task"), tmp_path / "clones").instances())


def test_the_tests_of_harbor_tasks_cannot_be_revealed(tmp_path: Path) -> None:
    write(tmp_path / "task", HARBOR)
    with pytest.raises(UsageError, match="cannot be revealed"):
        list(open_source(str(tmp_path / "task"), tmp_path / "clones", reveal=True).instances())


@pytest.mark.docker
def test_the_image_of_a_harbor_task_is_built_once_from_its_dockerfile(
    engine: docker.DockerClient, tmp_path: Path
) -> None:
    def made(dockerfile: str) -> tuple[Source, Instance]:
        built = {"environment/Dockerfile": f"FROM {BASE_IMAGE}\n{dockerfile}".encode(), "environment/id": os.urandom(8)}
        write(tmp_path / "task", {**HARBOR, "task.toml": b"", **built})
        source = open_source(str(tmp_path / "task"), tmp_path / "clones")
        return source, next(iter(source.instances()))

    source, instance = made("COPY id /app/\nWORKDIR /app\n")
    image = str(instance.task.workspace.image)
    try:
        source.prepare(instance)
        first = engine.images.get(image)
        source.prepare(instance)
        assert engine.images.get(image).id == first.id
        assert first.attrs["Config"]["WorkingDir"] == "/app"
    finally:
        engine.images.remove(image, force=True)
    source, broken = made("COPY nothing /app/\n")
    with pytest.raises(InstanceBroken, match="the image of task cannot be built from"):
        source.prepare(broken)


def test_an_image_that_a_harbor_task_builds_is_named_by_what_it_is_built_from(tmp_path: Path) -> None:
    def image(*more: bytes) -> str | None:
        built = {"task.toml": b"", "environment/Dockerfile": b"FROM ramify-base\n" + b"".join(more)}
        write(tmp_path / "task", {**HARBOR, **built})
        (instance,) = open_source(str(tmp_path / "task"), tmp_path / "clones").instances()
        return instance.task.workspace.image

    assert image() == image() != image(b"RUN true\n")
