"""Commands: how they are started, what they give back, and that they are dead when they have."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from sandboxes import Provider, Sandbox, SandboxError, SandboxLost, Snapshot, Workspace
from sandboxes.conformance.given import LIMITS, Given, running, said, sh
from sandboxes.forking.shell import run_script

_CONDITION = """
grep -E '^(Cap|NoNewPrivs|Seccomp|Sig(Blk|Ign|Cgt)|Uid|Gid)' /proc/self/status
cat /proc/self/oom_score_adj /proc/self/mounts
ulimit -a; umask; nice; nproc; id; env; pwd; ls /dev /proc/self/fd; ls /proc | grep -v '^[0-9]'; cat /proc/sysvipc/shm
set -- /proc/[0-9]*; echo $# processes
"""
"""What a command can tell of the place that it runs in."""


_UNFIT: dict[str, tuple[list[str], dict[str, str], str, str]] = {
    "no argument at all": ([], {}, "", "without arguments"),
    "a NUL in the program": (["a\0"], {}, "", r"a\x00"),
    "a NUL in an argument": (["echo", "b\0"], {}, "", r"b\x00"),
    "half a surrogate pair": (["echo", "c\ud800"], {}, "", r"c\ud800"),
    "a NUL in a value": (["true"], {"A": "d\0"}, "", r"d\x00"),
    "half a surrogate pair in a value": (["true"], {"A": "e\udc00"}, "", r"e\udc00"),
    "a NUL in a variable's name": (["true"], {"F\0": ""}, "", r"F\x00"),
    "an = in a variable's name": (["true"], {"G=H": "1"}, "", "'G=H'"),
    "a variable without a name": (["true"], {"": "1"}, "", "''"),
    "a NUL in the directory": (["true"], {}, "/tmp\0", r"/tmp\x00"),
}
"""What no program can be started with: arguments, variables, a directory; and what the refusal names."""


class Commands(Given):
    """Running commands."""

    @pytest.mark.parametrize("unfit", _UNFIT)
    def test_what_cannot_be_started_is_refused_and_the_fork_goes_on(self, box: Sandbox, unfit: str) -> None:
        argv, env, cwd, named = _UNFIT[unfit]
        with pytest.raises(SandboxError, match=re.escape(named)):
            box.exec(argv, env=env, cwd=cwd, timeout_s=100)
        assert sh(box, "echo fine").stdout == b"fine\n"

    def test_closing_the_provider_ends_what_runs_and_nothing_runs_after_it(
        self, reopen: Callable[[], Provider], workspace: Workspace
    ) -> None:
        provider, begun = reopen(), threading.Event()
        base = provider.create(workspace)

        def endless() -> None:
            with provider.at(base) as box:
                begun.set()
                sh(box, "sleep 1000", timeout_s=2000)

        with ThreadPoolExecutor() as threads:
            running = threads.submit(endless)
            begun.wait()
            time.sleep(0.5)
            provider.close()
            with pytest.raises(SandboxLost):
                running.result(timeout=60)
        with pytest.raises(SandboxLost), provider.at(base) as box:
            sh(box, "true")

    def test_a_command_gives_its_output_and_its_exit_code(self, box: Sandbox) -> None:
        done = sh(box, "echo out; echo err >&2; exit 3")
        assert (done.exit_code, done.stdout, done.stderr) == (3, b"out\n", b"err\n")
        assert (done.stdout_bytes, done.timed_out, done.limit) == (4, False, "")

    def test_a_command_ended_by_a_signal_gives_128_and_its_number(self, box: Sandbox) -> None:
        assert sh(box, "kill -9 $$").exit_code == 137
        assert sh(box, "kill -15 $$").exit_code == 143

    def test_a_missing_program_is_127_and_one_that_cannot_be_executed_126(self, box: Sandbox) -> None:
        assert box.exec(["no-such-program"], timeout_s=100).exit_code == 127
        assert box.exec(["./no/such/program"], timeout_s=100).exit_code == 127
        assert box.exec(["./src/app.py"], timeout_s=100).exit_code == 126
        assert box.exec(["/tmp"], timeout_s=100).exit_code == 126

    def test_a_command_runs_in_the_workspace_or_where_it_is_told_to(self, box: Sandbox) -> None:
        assert said(box, "pwd") == box.workdir
        assert box.exec(["pwd"], timeout_s=100, cwd="/tmp").stdout == b"/tmp\n"
        assert box.exec(["pwd"], timeout_s=100, cwd="src").stdout.decode().strip() == f"{box.workdir}/src"

    def test_a_command_reads_its_stdin_and_its_environment(self, box: Sandbox) -> None:
        data = bytes(range(256)) * 1000
        assert box.exec(["wc", "-c"], stdin=data, timeout_s=100).stdout.split() == [b"256000"]
        assert box.exec(["cat"], timeout_s=100).stdout == b""
        assert box.exec(["sh", "-c", "echo $GREETING"], env={"GREETING": "hello"}, timeout_s=100).stdout == b"hello\n"

    def test_output_beyond_the_limit_is_counted_and_dropped(self, box: Sandbox) -> None:
        done = sh(box, "head -c 5000000 /dev/zero; head -c 7 /dev/zero >&2")
        assert (len(done.stdout), done.stdout_bytes) == (LIMITS.output_bytes, 5_000_000)
        assert (len(done.stderr), done.stderr_bytes) == (7, 7)

    def test_the_python_that_runs_tests_is_there(self, box: Sandbox) -> None:
        done = box.exec(["python3", "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"], timeout_s=200)
        assert (done.exit_code, b"1 failed" in done.stdout) == (1, True), done

    def test_what_a_command_leaves_running_is_dead_when_it_returns(self, box: Sandbox) -> None:
        asleep = "cat /proc/[0-9]*/cmdline | tr '\\0' '\\n' | sed -n '/^1000$/p' | wc -l"
        wait = f'until test -s beat && test "$({asleep})" -gt 0; do sleep 0.02; done'
        done = sh(box, f"(while :; do echo x >> beat; sleep 0.02; done) & setsid sleep 1000 & {wait}; echo done")
        assert (done.stdout, done.timed_out) == (b"done\n", False)
        beats = box.read("beat")
        time.sleep(0.2)
        assert box.read("beat") == beats
        assert said(box, asleep) == "0"

    def test_a_script_may_be_longer_than_an_argument(self, box: Sandbox) -> None:
        long = f"printf %s {'x' * 200_000} | wc -c; ls /tmp/.ramify.script || exit 7"
        for script, stdout in ((long, b"200000\n"), ("echo short; exit 7", b"short\n")):
            done = run_script(box, script, timeout_s=100)
            assert (done.exit_code, done.stdout.strip()) == (7, stdout.strip())

    @pytest.mark.parametrize("left", ["mkdir -p /tmp/.ramify.script/x", "ln -s $PWD/victim /tmp/.ramify.script"])
    def test_nothing_is_in_the_way_of_a_long_script(self, box: Sandbox, left: str) -> None:
        assert sh(box, left).exit_code == 0
        assert run_script(box, f"echo ran {'#' * 200_000}", timeout_s=100).stdout == b"ran\n"
        with pytest.raises(FileNotFoundError):
            box.read("victim")

    def test_every_command_of_a_fork_starts_as_the_first_did(self, box: Sandbox) -> None:
        first = said(box, _CONDITION)
        for _ in range(3):
            assert (
                sh(
                    box, "setsid sleep 60 & ulimit -n 64; umask 0; taskset -p 1 $$; exec nice -n 5 sh -c 'cd /'"
                ).exit_code
                == 0
            )
            assert said(box, _CONDITION) == first

    def test_a_server_does_not_keep_its_port(self, box: Sandbox) -> None:
        serve = "import socket as s; a = s.socket(); a.bind(('127.0.0.1', 8765)); a.listen(); print('up', flush=True)"
        for _ in range(2):
            wait = "while kill -0 $! && ! test -e up; do sleep 0.02; done; rm up"
            done = sh(box, f"python3 -c \"{serve}; open('up', 'w'); import time; time.sleep(1000)\" & {wait}")
            assert done.stdout == b"up\n", done

    def test_a_time_out_leaves_no_process_and_ends_the_fork(self, provider: Provider, base: Snapshot) -> None:
        mark = f"98765.{os.getpid()}"
        sleeps = f"setsid sleep {mark} & (setsid sh -c 'sleep {mark} & sleep {mark}' &) ; sleep {mark}"
        stubborn = f"trap '' TERM INT HUP; {sleeps}"
        with provider.at(base) as box:
            done = sh(box, stubborn, timeout_s=0.5)
            assert (done.exit_code, done.timed_out) == (124, True)
            assert done.duration_s >= 0.5
            with pytest.raises(SandboxLost):
                box.exec(["true"], timeout_s=100)
            with pytest.raises(SandboxLost):
                box.read("src/app.py")
        assert not running(mark)
        with provider.at(base) as box:
            assert sh(box, "true").exit_code == 0

    def test_output_from_before_a_time_out_is_kept(self, box: Sandbox) -> None:
        assert sh(box, "echo early; sleep 1000", timeout_s=1).stdout == b"early\n"
