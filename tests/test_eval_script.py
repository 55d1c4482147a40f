"""Grading by an eval script: what the official harness does in its container, in a sandbox of ours."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shlex import quote
from typing import cast

import pytest

from benchmarks.data import harness_assets
from benchmarks.data.harness_logs import START
from benchmarks.data.instances import Instance, InstanceBroken
from benchmarks.data.sources import Source, open_source
from benchmarks.data.sources.formats import format_of
from benchmarks.grading.evidence import Archive
from benchmarks.grading.grading import grade
from benchmarks.grading.regrading import regrade_all
from benchmarks.grading.validation import check
from benchmarks.grading.verdicts import Verdict
from sandboxes import Provider, Sandbox
from tests.instances import FIXED, TESTED, make_benchmark, patch_of
from tests.rows import LIVE_PROGRAM

pytestmark = pytest.mark.namespace

SCRIPT = """#!/bin/bash
set -uxo pipefail
git checkout -- test_calc.py
git apply -v - <<'EOF_1'
{test_patch}
EOF_1
: '>>>>> Start Test Output'
{python} -m pytest -rA -p no:cacheprovider test_calc.py
: '>>>>> End Test Output'
git checkout -- test_calc.py
"""
LIAR = b"""import os


def pytest_sessionstart(session):
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    reporter.write_line("PASSED test_calc.py::test_add")
    reporter.write_line("PASSED test_calc.py::test_twice")
    reporter._tw.flush()
    os._exit(1)
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    folder = tmp_path_factory.mktemp("set")
    return open_source(str(make_benchmark(folder / "set", requirements=[])), folder / "clones")


@pytest.fixture(scope="module")
def instance(source: Source) -> Instance:
    (plain,) = source.instances()
    script = SCRIPT.format(python=sys.executable, test_patch=plain.hidden.test_patch.decode())
    return replace(plain, hidden=replace(plain.hidden, eval_script=script, log_parser="parse_log_pytest"))


def graded(source: Source, instance: Instance, provider: Provider, files: dict[str, bytes]) -> Verdict:
    """The verdict on a patch that writes these files."""
    source.prepare(instance)
    folder = instance.task.workspace.path
    assert isinstance(folder, Path)
    return grade(instance, patch_of(folder, files), source, provider)


def test_the_scripts_log_resolves_what_is_solved(source: Source, instance: Instance, provider: Provider) -> None:
    verdict = graded(source, instance, provider, {**FIXED, "test_calc.py": TESTED["test_calc.py"] + b"\n"})
    assert (verdict.status, verdict.reason) == ("resolved", "")


def test_a_patch_that_prints_results_and_leaves_is_not_believed(
    source: Source, instance: Instance, provider: Provider
) -> None:
    verdict = graded(source, instance, provider, {"conftest.py": LIAR})
    assert (verdict.status, len(verdict.failing), len(verdict.broken)) == ("unresolved", 1, 1)
    assert "exit code 1, but the log reports no failed test" in verdict.reason


@pytest.fixture
def pictures(tmp_path: Path) -> Iterator[str]:
    """The address of a server with one picture."""
    (tmp_path / "a.png").write_bytes(b"\x89PNG")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(tmp_path))) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


def test_what_no_patch_can_carry_is_there_when_the_tests_run(
    source: Source, instance: Instance, provider: Provider, pictures: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = instance.hidden.eval_script.replace(f"{START}'", f"{START}'\ntest $(wc -c < 'base/a b.png') = 4 || exit 1")
    wanted = replace(instance.hidden, eval_script=seen, assets=(("base/a b.png", f"{pictures}/a.png"),))
    assert graded(source, replace(instance, hidden=wanted), provider, FIXED).status == "resolved"
    monkeypatch.setattr(harness_assets, "ALL_BYTES", 6)
    twice = replace(wanted, assets=(*wanted.assets, ("base/a.png", f"{pictures}/a.png")))
    assert "is too large" in graded(source, replace(instance, hidden=twice), provider, FIXED).reason
    for address, reason in (
        (f"{pictures}/b.png", "404"),
        ("file:///etc/passwd", "no usable address"),
        (f"{pictures}/a b.png", "control characters"),
    ):
        lacking = replace(wanted, assets=(("base/a.png", address),))
        verdict = graded(source, replace(instance, hidden=lacking), provider, FIXED)
        assert verdict.status == "error"
        assert reason in verdict.reason


class _Failing(BaseHTTPRequestHandler):
    """Sends half of a file, and ends there; or, of `/slow`, sends no more for long."""

    over = threading.Event()

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "8")
        self.end_headers()
        self.wfile.write(b"\x89PNG")
        self.wfile.flush()
        if self.path == "/slow":
            self.over.wait(100)

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


def test_a_file_that_breaks_off_or_drips_is_not_had(monkeypatch: pytest.MonkeyPatch) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Failing) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        try:
            with pytest.raises(InstanceBroken, match="cannot fetch"):
                harness_assets.put_in(cast("Sandbox", None), [("a.png", f"{address}/half")], "")
            monkeypatch.setattr(harness_assets, "ALL_S", -1)
            with pytest.raises(InstanceBroken, match="take longer than"):
                harness_assets.put_in(cast("Sandbox", None), [("a.png", f"{address}/slow")], "")
        finally:
            _Failing.over.set()
            server.shutdown()


def test_a_patch_that_no_way_of_applying_takes_is_called_so(
    source: Source, instance: Instance, provider: Provider
) -> None:
    broken = instance.hidden.patch.replace(b"return a - b", b"return a * b")
    verdict = grade(instance, broken, source, provider)
    assert (verdict.status, "patch does not apply" in verdict.reason) == ("apply_failed", True)


MULTI = """set -e
mkdir -p /home
printf %s {test_patch} > /home/test.patch
echo 'the solution' > /home/fix.patch
for name in test fix; do
    test $name = fix && patches='/home/test.patch /home/fix.patch' || patches=/home/test.patch
    echo "git apply $patches && {python} -m pytest -q test_calc.py && echo PASS: all || echo FAIL: all; exit 7" \
        > /home/$name-run.sh
done"""


def of_multi(instance: Instance, test: str) -> Instance:
    named = {test: {"fix": "PASS"}}
    row = {"org": "jqlang", "repo": "jq", "number": 1, "title": "", "body": "", "base": {}, "f2p_tests": named}
    row |= {"p2p_tests": {}, "fix_patch": instance.hidden.patch.decode(), "test_patch": ""}
    setup = MULTI.format(python=sys.executable, test_patch=quote(instance.hidden.test_patch.decode()))
    there = replace(instance.task.workspace, setup=(*instance.task.workspace.setup, setup))
    return replace(instance, hidden=replace(format_of(row).read(row).hidden, workspace=there))


def test_a_row_of_multi_swe_bench_is_graded_by_the_scripts_of_its_image(
    source: Source, instance: Instance, provider: Provider
) -> None:
    found = check(of_multi(instance, "all"), source, provider)
    assert (found.gold, found.empty) == ("", "")


RUN = "{python} -m pytest -v -p no:cacheprovider ${{1%%,*}}\n"
READ = """import json, re, sys
found = re.findall(r"^(\\S+::\\S+) (PASSED|FAILED)", open(sys.argv[1]).read(), re.MULTILINE)
json.dump({"tests": [{"name": name, "status": status} for name, status in found]}, open(sys.argv[3], "w"), indent=2)
"""


def of_pro(instance: Instance) -> Instance:
    tests = instance.hidden
    row = {
        "instance_id": "x", "repo": "x/x", "repo_language": "go", "problem_statement": "", "base_commit": "HEAD",
        "dockerhub_tag": "x", "before_repo_set_cmd": "git reset\ngit apply /hidden.patch", "test_patch": "",
        "selected_test_files_to_run": '["test_calc.py", "x.py"]', "patch": tests.patch.decode(),
        "fail_to_pass": [*tests.fail_to_pass], "pass_to_pass": [*tests.pass_to_pass],
        "run_script.sh": RUN.format(python=sys.executable), "parser.py": READ,
    }  # fmt: skip
    setup = f'ln -s "$PWD" /app; printf %s {quote(tests.test_patch.decode())} > /hidden.patch'
    there = replace(instance.task.workspace, setup=(*instance.task.workspace.setup, setup))
    return replace(instance, hidden=replace(format_of(row).read(row).hidden, workspace=there))


@pytest.mark.slow
def test_a_row_of_swe_bench_pro_is_graded_by_the_programs_beside_it(
    source: Source, instance: Instance, provider: Provider, tmp_path: Path
) -> None:
    with closing(Archive(tmp_path)) as archive:
        found = check(of_pro(instance), source, provider, archive)
    assert (found.gold, found.empty) == ("", "")
    kept = regrade_all(tmp_path, {})
    assert [each.verdict and each.verdict.status for each in kept] == ["resolved", "unresolved"]
    assert {each.fault for each in kept} == {""}
    facts = json.loads((tmp_path / instance.id / "1" / "bundle.json").read_text())
    assert list(facts["left"].values()) == ["", "/workspace/stdout.log", "/workspace/stderr.log"]
    log = tmp_path / instance.id / "1" / "left-1.txt"
    assert b"test_calc.py::test_add PASSED" in log.read_bytes()
    assert "parser.py" in (log.parent / "reader.sh").read_text()
    log.write_bytes(log.read_bytes().replace(b"PASSED", b"FAILED"))
    assert "left-1.txt is not what was graded" in regrade_all(tmp_path, {})[0].fault


BINARY = b"""diff --git a/picture.png b/picture.png
index 1111111111111111111111111111111111111111..2222222222222222222222222222222222222222 100644
GIT binary patch
literal 1
IcmZPo000310RR91

literal 1
IcmZPo000310RR91

"""


def test_binary_parts_of_a_patch_are_left_out_as_the_harness_of_pro_does_it(
    source: Source, instance: Instance, provider: Provider
) -> None:
    patch = BINARY + instance.hidden.patch + BINARY
    assert grade(of_pro(instance), patch, source, provider).status == "resolved"


MEDDLER = b"""import json, os, signal, subprocess, sys

told = json.dumps({"tests": [{"name": f"test_calc.py::{n}", "status": "PASSED"} for n in ("test_add", "test_twice")]})
lie = f"import sys; open(sys.argv[3], 'w').write({told!r})"
loop = "import sys\\nwhile True:\\n    open('/workspace/parser.py', 'w').write(sys.argv[1])"
subprocess.Popen([sys.executable, "-c", loop, lie], start_new_session=True)
"""
KILLER = b"""
for number in range(2, 100):
    try:
        argv = open(f"/proc/{number}/cmdline", "rb").read().split(b"\\0")
        if b"/eval.sh" in argv:
            with open(f"/proc/{number}/fd/1", "w") as out:
                out.write(f"\\n>>>>> Start Test Output\\n{told}\\n>>>>> End Test Output\\n")
            os.kill(number, signal.SIGKILL)
    except OSError:
        pass
"""


@pytest.mark.parametrize(
    ("tests_do", "reason"),
    [
        (MEDDLER, "1 test of FAIL_TO_PASS did not pass"),
        (MEDDLER + KILLER, "ended with exit code 137 before the logs could be read"),
    ],
)
def test_what_tests_leave_behind_does_not_reach_the_program_that_reads_their_log(
    tests_do: bytes, reason: str, source: Source, instance: Instance, provider: Provider
) -> None:
    verdict = graded(source, of_pro(instance), provider, {"conftest.py": tests_do})
    assert verdict.status == "unresolved"
    assert reason in verdict.reason


ADDED = """diff --git a/notes b/notes
new file mode 100644
--- /dev/null
+++ b/notes
@@ -0,0 +1,2 @@
+{} \n+{} \n"""


def test_what_git_repeats_of_a_patch_is_no_result_of_a_test(
    source: Source, instance: Instance, provider: Provider
) -> None:
    tests = (*instance.hidden.fail_to_pass, *instance.hidden.pass_to_pass)
    told = ADDED.format(START, json.dumps(dict.fromkeys(tests, "PASSED")))  # with spaces at the ends, which git shows
    assert grade(of_pro(instance), told.encode(), source, provider).status == "unresolved"
    told = ADDED.format("PASS: other", "PASS: other")
    assert grade(of_multi(instance, "other"), told.encode(), source, provider).status == "unresolved"


def test_a_row_whose_parser_is_a_program_is_graded_by_it(
    source: Source, instance: Instance, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.data.sources.images.TESTBED", ".")
    tests, command = instance.hidden, f"{sys.executable} -m pytest -rA -p no:cacheprovider test_calc.py"
    commands = {"rebuild_cmds": None, "test_cmds": [f"{command} > log"], "print_cmds": ["cat log"]}
    row = {**LIVE_PROGRAM, **commands, "patch": tests.patch.decode(), "test_patch": tests.test_patch.decode()}
    row |= {"FAIL_TO_PASS": [*tests.fail_to_pass], "PASS_TO_PASS": [*tests.pass_to_pass]}
    found = check(replace(instance, hidden=format_of(row).read(row).hidden), source, provider)
    assert (found.gold, found.empty) == ("", "")


def test_a_solution_that_no_patch_can_carry_is_called_so(
    source: Source, instance: Instance, provider: Provider
) -> None:
    outside = replace(instance, hidden=replace(instance.hidden, solution="echo 3 > /elsewhere", patch=b""))
    found = check(outside, source, provider)
    assert (found.valid, "changes nothing in" in (found.gold or "")) == (False, True)


def test_a_log_that_nothing_reads_is_an_error_and_no_verdict(
    source: Source, instance: Instance, provider: Provider
) -> None:
    strange = replace(instance, hidden=replace(instance.hidden, log_parser="parse_log_unheard_of"))
    verdict = grade(strange, strange.hidden.patch, source, provider)
    assert (verdict.status, verdict.resolved) == ("error", None)
    assert "'parse_log_unheard_of'" in verdict.reason
