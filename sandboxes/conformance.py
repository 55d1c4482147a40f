# ruff: noqa: D102, S108 - the names of the tests are the sentences; the /tmp is the sandbox's
"""What every provider has to do, as tests: subclass `SandboxContract` and supply its fixtures.

class TestMine(SandboxContract):
    @pytest.fixture
    def reopen(self, tmp_path): return lambda: MyProvider(tmp_path / "store", LIMITS)
    @pytest.fixture
    def workspace(self, tmp_path): return Workspace(path=sample(tmp_path / "checkout"))
"""

from __future__ import annotations

import json
import os
import subprocess
import textwrap
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sandboxes import (
    ExecResult,
    Limits,
    Provider,
    Sandbox,
    SandboxLost,
    SetupFailed,
    Snapshot,
    SnapshotMissing,
    Workspace,
)

__all__ = ["LIMITS", "SandboxContract", "sample", "sh"]

LIMITS = Limits(memory_bytes=256 << 20, pids=64, output_bytes=100_000, disk_bytes=64 << 20)
"""What the provider under test has to be made with."""

SECRET = "a-secret-of-this-machine"  # noqa: S105 - it is the bait


def sample(root: Path) -> Path:
    """A checkout with one of everything that is hard to copy, compare or patch."""
    root.mkdir(parents=True)
    files = {
        "src/app.py": b"def add(a, b):\n    return a - b\n",
        "tests/test_app.py": b"from src.app import add\n\n\ndef test_add():\n    assert add(2, 2) == 4\n",
        "crlf.txt": b"one\r\ntwo\r\n",
        "latin.txt": "caf\u00e9\n".encode("latin-1"),
        "no_newline.txt": b"no newline at the end",
        "data.bin": bytes(range(256)) * 4,
        "tool.sh": b"#!/bin/sh\necho tool\n",
        "build/kept.txt": b"tracked although it is ignored\n",
        "pkg/deep/one.txt": b"1\n",
        "pkg/deep/two.txt": b"2\n",
        ".gitignore": b"*.log\n/build/\n!important.log\n",
    }
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    Path(os.fsdecode(os.fsencode(root) + b"/odd-\xff.txt")).write_bytes(b"odd\n")
    (root / "tool.sh").chmod(0o755)
    (root / "link").symlink_to("src/app.py")
    _git(root, "init", "-q")
    _git(root, "add", "-f", ".")
    _git(root, "-c", "user.name=n", "-c", "user.email=e@example.invalid", "commit", "-q", "-m", "first")
    (root / "build" / "out.o").write_bytes(b"ignored\n")
    (root / "empty").mkdir()
    return root


def _git(root: Path, *command: str, stdin: bytes = b"") -> bytes:
    env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(["git", "-C", root, *command], input=stdin, capture_output=True, check=False, env=env)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout


def sh(box: Sandbox, script: str, timeout_s: float = 30) -> ExecResult:
    """Run a shell script."""
    return box.exec(["sh", "-c", script], timeout_s=timeout_s)


def said(box: Sandbox, script: str) -> str:
    """What a shell script that succeeds prints."""
    done = sh(box, script)
    assert done.exit_code == 0, done
    return done.stdout.decode().strip()


_WALK = """
import hashlib, json, os, stat, sys
found = {}
for root in sys.argv[1:]:
    for here, folders, files in os.walk(root):
        folders[:] = [name for name in folders if os.lstat(here + '/' + name).st_dev == os.lstat(here).st_dev]
        for name in folders + files + ['.']:
            path = os.path.join(here, name)
            facts = os.lstat(path)
            content = ''
            if stat.S_ISREG(facts.st_mode):
                content = hashlib.sha256(open(path, 'rb').read()).hexdigest() + str(facts.st_mtime_ns)
            elif stat.S_ISLNK(facts.st_mode):
                content = os.fsencode(os.readlink(path)).hex()
            found[os.fsencode(path).hex()] = [facts.st_mode, content]
print(hashlib.sha256(json.dumps(sorted(found.items())).encode()).hexdigest(), len(found))
"""


def fingerprint(box: Sandbox) -> str:
    """Of names, types, modes, contents and times, in every place that an action likes to write to."""
    places = [box.workdir, "/tmp", "/root", "/etc", "/dev/shm", "/opt", "/usr/local/bin"]
    done = box.exec(["python3", "-c", _WALK, *places], timeout_s=60)
    assert done.exit_code == 0, done
    return done.stdout.decode()


class SandboxContract:
    """The contract. `reopen` makes a provider on one store, each time it is called a new one."""

    @pytest.fixture
    def reopen(self) -> Callable[[], Provider]:
        raise NotImplementedError

    @pytest.fixture
    def workspace(self) -> Workspace:
        raise NotImplementedError

    @pytest.fixture
    def provider(self, reopen: Callable[[], Provider]) -> Iterator[Provider]:
        provider = reopen()
        yield provider
        provider.close()

    @pytest.fixture
    def base(self, provider: Provider, workspace: Workspace) -> Snapshot:
        return provider.create(workspace)

    @pytest.fixture
    def box(self, provider: Provider, base: Snapshot) -> Iterator[Sandbox]:
        with provider.at(base) as box:
            yield box

    # -- commands

    def test_a_command_gives_its_output_and_its_exit_code(self, box: Sandbox) -> None:
        done = sh(box, "echo out; echo err >&2; exit 3")
        assert (done.exit_code, done.stdout, done.stderr) == (3, b"out\n", b"err\n")
        assert (done.stdout_bytes, done.timed_out, done.limit) == (4, False, "")

    def test_a_command_ended_by_a_signal_gives_128_and_its_number(self, box: Sandbox) -> None:
        assert sh(box, "kill -9 $$").exit_code == 137
        assert sh(box, "kill -15 $$").exit_code == 143

    def test_a_missing_program_is_127_and_one_that_cannot_be_executed_126(self, box: Sandbox) -> None:
        assert box.exec(["no-such-program"], timeout_s=5).exit_code == 127
        assert box.exec(["./no/such/program"], timeout_s=5).exit_code == 127
        assert box.exec(["./src/app.py"], timeout_s=5).exit_code == 126
        assert box.exec(["/tmp"], timeout_s=5).exit_code == 126

    def test_a_command_runs_in_the_workspace_or_where_it_is_told_to(self, box: Sandbox) -> None:
        assert said(box, "pwd") == box.workdir
        assert box.exec(["pwd"], timeout_s=5, cwd="/tmp").stdout == b"/tmp\n"
        assert box.exec(["pwd"], timeout_s=5, cwd="src").stdout.decode().strip() == f"{box.workdir}/src"

    def test_a_command_reads_its_stdin_and_its_environment(self, box: Sandbox) -> None:
        data = bytes(range(256)) * 1000
        assert box.exec(["wc", "-c"], stdin=data, timeout_s=5).stdout.split() == [b"256000"]
        assert box.exec(["cat"], timeout_s=5).stdout == b""
        assert box.exec(["sh", "-c", "echo $GREETING"], env={"GREETING": "hello"}, timeout_s=5).stdout == b"hello\n"

    def test_output_beyond_the_limit_is_counted_and_dropped(self, box: Sandbox) -> None:
        done = sh(box, "head -c 5000000 /dev/zero; head -c 7 /dev/zero >&2")
        assert (len(done.stdout), done.stdout_bytes) == (LIMITS.output_bytes, 5_000_000)
        assert (len(done.stderr), done.stderr_bytes) == (7, 7)

    def test_the_python_that_runs_tests_is_there(self, box: Sandbox) -> None:
        done = box.exec(["python3", "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"], timeout_s=60)
        assert (done.exit_code, b"1 failed" in done.stdout) == (1, True), done

    # -- processes

    def test_what_a_command_leaves_running_is_dead_when_it_returns(self, box: Sandbox) -> None:
        started = time.monotonic()
        done = sh(box, "(while :; do echo x >> beat; sleep 0.02; done) & setsid sleep 60 & sleep 0.2; echo done")
        assert (done.stdout, time.monotonic() - started < 5) == (b"done\n", True)
        beats = box.read("beat")
        time.sleep(0.2)
        assert box.read("beat") == beats
        assert said(box, "ls /proc | grep -c '^[0-9]'") in ("3", "4")

    def test_a_server_does_not_keep_its_port(self, box: Sandbox) -> None:
        serve = "import socket as s; a = s.socket(); a.bind(('127.0.0.1', 8765)); a.listen(); print('up', flush=True)"
        for _ in range(2):
            done = sh(box, f'python3 -c "{serve}; import time; time.sleep(60)" & sleep 0.5')
            assert done.stdout == b"up\n", done

    def test_a_time_out_leaves_no_process_and_ends_the_fork(self, provider: Provider, base: Snapshot) -> None:
        mark = f"98765.{os.getpid()}"
        sleeps = f"setsid sleep {mark} & (setsid sh -c 'sleep {mark} & sleep {mark}' &) ; sleep {mark}"
        stubborn = f"trap '' TERM INT HUP; {sleeps}"
        with provider.at(base) as box:
            done = sh(box, stubborn, timeout_s=0.5)
            assert (done.exit_code, done.timed_out) == (124, True)
            assert 0.5 <= done.duration_s < 1
            with pytest.raises(SandboxLost):
                box.exec(["true"], timeout_s=5)
            with pytest.raises(SandboxLost):
                box.read("src/app.py")
        assert not _running(mark)
        with provider.at(base) as box:
            assert sh(box, "true").exit_code == 0

    def test_output_from_before_a_time_out_is_kept(self, box: Sandbox) -> None:
        assert sh(box, "echo early; sleep 60", timeout_s=0.5).stdout == b"early\n"

    # -- limits

    def test_a_fork_bomb_stops_at_the_limit_and_the_next_command_works(self, box: Sandbox) -> None:
        bomb = """
        import os, time
        made = 0
        try:
            while made < 1000:
                if os.fork() == 0: time.sleep(30); os._exit(0)
                made += 1
        except OSError: print(made)
        """
        made = int(box.exec(["python3", "-c", textwrap.dedent(bomb)], timeout_s=20).stdout or b"1000")
        assert made < LIMITS.pids + 10
        assert sh(box, "true").exit_code == 0

    def test_a_memory_bomb_is_killed_and_the_next_command_works(self, box: Sandbox) -> None:
        bomb = f"a = [bytearray(1 << 20) for _ in range({2 * (LIMITS.memory_bytes >> 20)})]; print('alive')"
        done = box.exec(["python3", "-c", bomb], timeout_s=60)
        assert done.exit_code != 0
        assert b"alive" not in done.stdout
        assert sh(box, "true").exit_code == 0

    def test_a_command_that_fills_the_disk_is_stopped(self, box: Sandbox) -> None:
        big = LIMITS.disk_bytes + (1 << 20)
        done = sh(box, f"head -c {big} /dev/zero > one")
        assert (done.exit_code != 0, done.limit) == (True, "disk"), done
        many = sh(box, "for i in $(seq 1000); do head -c 4000000 /dev/zero > part$i; sleep 0.02; done", timeout_s=60)
        assert (many.exit_code != 0, many.limit) == (True, "disk"), many

    # -- files

    def test_files_are_read_written_and_removed(self, box: Sandbox) -> None:
        box.write("new/deep/file.bin", b"\0\r\n\xff")
        assert box.read("new/deep/file.bin") == b"\0\r\n\xff"
        assert box.read(f"{box.workdir}/crlf.txt") == b"one\r\ntwo\r\n"
        box.write("/opt/outside.txt", b"x")
        assert said(box, "cat /opt/outside.txt; test -x new/deep/file.bin || echo plain") == "xplain"
        box.remove("new")
        box.remove("link")
        box.remove("never/was")
        assert said(box, "ls -d new link src/app.py 2>/dev/null || true") == "src/app.py"

    def test_a_written_file_keeps_its_mode_unless_told_otherwise(self, box: Sandbox) -> None:
        box.write("tool.sh", b"#!/bin/sh\necho changed\n")
        assert said(box, "./tool.sh") == "changed"
        box.write("tool.sh", b"#!/bin/sh\n", executable=False)
        box.write("fresh.sh", b"#!/bin/sh\necho fresh\n", executable=True)
        assert said(box, "test -x tool.sh || ./fresh.sh") == "fresh"

    def test_a_write_moves_the_time_by_whole_seconds(self, box: Sandbox) -> None:
        times = []
        for text in (b"x = 1\n", b"x = 2\n", b"x = 3\n"):
            box.write("module.py", text)
            times.append(int(said(box, "stat -c %Y module.py")))
        assert times == sorted(set(times))

    def test_an_edit_is_never_hidden_by_stale_byte_code(self, box: Sandbox) -> None:
        for number in range(1, 6):
            box.write("module.py", b"x = %d\n" % number)
            assert said(box, "python3 -c 'import module; print(module.x)'") == str(number)

    def test_files_that_cannot_be_read_or_written_say_why(self, box: Sandbox) -> None:
        with pytest.raises(FileNotFoundError):
            box.read("nowhere")
        with pytest.raises(IsADirectoryError):
            box.read("src")
        with pytest.raises(IsADirectoryError):
            box.write("src", b"")
        with pytest.raises(NotADirectoryError):
            box.write("crlf.txt/below", b"")
        with pytest.raises(OSError, match="larger"):
            box.read("data.bin", max_bytes=10)

    def test_what_is_no_regular_file_is_refused_at_once(self, box: Sandbox) -> None:
        assert sh(box, "mkfifo pipe").exit_code == 0
        for path in ("pipe", "/dev/zero"):
            with pytest.raises(OSError, match="regular"):
                box.read(path)
            with pytest.raises(OSError, match="regular"):
                box.write(path, b"")

    # -- states

    def test_a_fork_sees_the_state_and_nothing_of_its_siblings(self, provider: Provider, base: Snapshot) -> None:
        with provider.at(base) as one, provider.at(base) as other:
            one.write("src/app.py", b"one")
            assert sh(other, "rm -r pkg; echo other > /tmp/note").exit_code == 0
            first, second = one.snapshot(), other.snapshot()
            assert said(one, "cat src/app.py pkg/deep/one.txt; ls /tmp/note 2>/dev/null || true") == "one1"
        with provider.at(first) as box:
            assert said(box, "cat src/app.py; ls -d pkg") == "onepkg"
        with provider.at(second) as box:
            assert said(box, "cat /tmp/note; ls -d pkg 2>/dev/null || grep -c return src/app.py") == "other\n1"

    def test_what_is_not_frozen_is_lost(self, provider: Provider, base: Snapshot) -> None:
        with provider.at(base) as box:
            before = fingerprint(box)
            assert sh(box, "rm -rf * .git /tmp/*; touch /root/x /opt/y").exit_code == 0
        with provider.at(base) as box:
            assert fingerprint(box) == before

    def test_a_state_is_restored_exactly_after_anything(self, provider: Provider, base: Snapshot) -> None:
        anything = """
            rm -r pkg; mkdir -p pkg/deep/new empty2/empty3; echo x > pkg/deep/three.txt
            chmod 600 crlf.txt; chmod 700 src; ln -sf /etc/passwd link; ln -s loop loop; mkfifo pipe
            rm latin.txt; mkdir latin.txt; echo in > latin.txt/in; rm -r tests; echo file > tests
            echo y > /tmp/t; echo z > /root/.rc; echo s > /dev/shm/s; echo w > /usr/local/bin/tool
            mv data.bin moved.bin; ln moved.bin hard.bin; rm -r empty; touch -d 2001-01-01 no_newline.txt
            git -c user.name=n -c user.email=e@x.invalid commit -q -a -m second; echo 127.0.0.1 h > /etc/hosts
        """
        with provider.at(base) as box:
            original = fingerprint(box)
            assert sh(box, anything).exit_code == 0
            changed = box.snapshot()
            after = fingerprint(box)
            assert sh(box, "rm -r pkg tests latin.txt; mkdir tests; echo 2 > /tmp/t; cp /bin/sh pkg").exit_code == 0
            box.snapshot()
        assert after != original
        for snapshot, wanted in ((changed, after), (base, original), (changed, after)):
            with provider.at(snapshot) as box:
                assert fingerprint(box) == wanted

    def test_installed_packages_belong_to_the_state(self, provider: Provider, base: Snapshot) -> None:
        place = "$(python3 -c 'import pytest, os; print(os.path.dirname(os.path.dirname(pytest.__file__)))')"
        with provider.at(base) as box:
            assert sh(box, f"echo x = 5 > {place}/planted_module.py").exit_code == 0
            planted = box.snapshot()
        with provider.at(planted) as box:
            assert said(box, "python3 -c 'import planted_module; print(planted_module.x)'") == "5"
        with provider.at(base) as box:
            assert sh(box, "python3 -c 'import planted_module'").exit_code == 1

    def test_equal_states_have_equal_digests_however_they_were_reached(
        self, provider: Provider, base: Snapshot
    ) -> None:
        ways = (
            "echo a > new.txt; rm -r pkg; chmod 755 crlf.txt",
            "rm pkg/deep/one.txt pkg/deep/two.txt; rmdir pkg/deep pkg; touch x; rm x; echo b > new.txt",
        )
        with provider.at(base) as box:
            assert sh(box, ways[0]).exit_code == 0
            one = box.snapshot()
        with provider.at(base) as box:
            assert sh(box, ways[1]).exit_code == 0
            halfway = box.snapshot()
            assert (
                sh(box, "echo a > new.txt; chmod 755 crlf.txt; mkdir __pycache__; echo c > __pycache__/c").exit_code
                == 0
            )
            other = box.snapshot()
            assert sh(box, "git checkout -q -- pkg crlf.txt; rm -r new.txt __pycache__ .git/index").exit_code == 0
        assert one.digest == other.digest
        assert len({one.digest, halfway.digest, base.digest}) == 3
        assert one.id != other.id

    def test_a_file_is_renamed_between_the_workspace_and_the_rest(self, provider: Provider, base: Snapshot) -> None:
        """They are one file system, as in an image; many tests move files between them."""
        with provider.at(base) as box:
            moved = sh(
                box,
                "python3 -c \"import os; os.rename('crlf.txt', '/tmp/moved'); os.rename('/tmp/moved', 'back.txt')\"",
            )
            assert (moved.exit_code, moved.stderr) == (0, b"")

    def test_going_back_by_hand_gives_the_base_digest(self, provider: Provider, base: Snapshot) -> None:
        with provider.at(base) as box:
            assert sh(box, "cp -r pkg keep; rm -r pkg; cp crlf.txt c").exit_code == 0
            box.snapshot()
            assert sh(box, "mv keep pkg; cat c > crlf.txt; rm c").exit_code == 0
            assert box.snapshot().digest == base.digest
            assert sh(box, "cat src/app.py; touch src/app.py").exit_code == 0
            assert box.snapshot().digest == base.digest
            assert sh(box, "mkdir nothing").exit_code == 0
            assert box.snapshot().digest != base.digest

    def test_a_directory_made_anew_has_lost_what_was_in_it(self, provider: Provider, base: Snapshot) -> None:
        found = []
        for way in ("rm -r pkg; mkdir pkg", "rm -r pkg/deep"):
            with provider.at(base) as box:
                assert sh(box, way).exit_code == 0
                found.append(box.snapshot())
        assert found[0].digest == found[1].digest != base.digest
        removed = ["pkg/deep/one.txt", "pkg/deep/two.txt"]
        assert [[change.path for change in provider.changes(base, new)] for new in found] == [removed, removed]

    def test_many_forks_run_at_once(self, provider: Provider, base: Snapshot) -> None:
        def work(number: int) -> tuple[str, Snapshot]:
            with provider.at(base) as box:
                box.write("number", str(number).encode())
                return said(box, "sleep 0.1; cat number"), box.snapshot()

        with ThreadPoolExecutor(4) as pool:
            results = list(pool.map(work, range(8)))
        assert [text for text, _ in results] == [str(number) for number in range(8)]
        assert len({snapshot.digest for _, snapshot in results}) == 8

    def test_a_discarded_state_is_missing_and_its_children_stay(self, provider: Provider, base: Snapshot) -> None:
        with provider.at(base) as box:
            box.write("parent", b"p")
            parent = box.snapshot()
            box.write("child", b"c")
            child = box.snapshot()
            provider.discard(parent)
            assert said(box, "cat parent child") == "pc"
        with pytest.raises(SnapshotMissing), provider.at(parent):
            pass
        with provider.at(child) as box:
            assert said(box, "cat parent child") == "pc"

    def test_a_later_provider_finds_the_states(
        self, provider: Provider, base: Snapshot, reopen: Callable[[], Provider]
    ) -> None:
        with provider.at(base) as box:
            box.write("kept", b"k")
            kept = box.snapshot()
        provider.close()
        later = reopen()
        try:
            with later.at(kept) as box:
                assert box.read("kept") == b"k"
            assert [change.path for change in later.changes(base, kept)] == ["kept"]
            with pytest.raises(SnapshotMissing), later.at(Snapshot(kept.id[:-8] + "00000000", "")):
                pass
        finally:
            later.close()

    # -- isolation

    def test_the_network_is_only_the_loopback(self, box: Sandbox) -> None:
        probe = (
            "import socket\ntry: socket.create_connection(('192.0.2.1', 80), 2)\nexcept OSError as e: print(e.errno)\n"
        )
        assert box.exec(["python3", "-c", probe], timeout_s=20).stdout == b"101\n"
        assert said(box, "tail -n +3 /proc/net/dev | cut -d: -f1").split() == ["lo"]

    def test_the_host_is_out_of_sight(self, box: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("RAMIFY_CANARY", SECRET)
        (tmp_path / "canary").write_text(SECRET)
        assert said(box, f"env | grep -c {SECRET} || true") == "0"
        assert said(box, f"cat {tmp_path}/canary 2>/dev/null || echo unseen") == "unseen"
        for path in (str(tmp_path / "canary"), f"/proc/1/root{tmp_path}/canary", f"/proc/{os.getpid()}/environ"):
            with pytest.raises(OSError):  # noqa: PT011 - missing, or no permission
                box.read(path)
        hidden = ("/var/run/docker.sock", "/run/docker.sock", "/root/.ssh", "/sys/kernel")
        for path in hidden:
            assert sh(box, f"test -e {path}").exit_code == 1, path

    def test_links_lead_nowhere_outside(self, provider: Provider, base: Snapshot, tmp_path: Path) -> None:
        (tmp_path / "canary").write_text(SECRET)
        with provider.at(base) as box:
            assert sh(box, f"rm -r pkg; ln -s {tmp_path} pkg; ln -sf /etc/shadow src/app.py").exit_code == 0
            with pytest.raises(OSError):  # noqa: PT011
                box.read("pkg/canary")
            linked = box.snapshot()
        assert SECRET.encode() not in provider.diff(base, linked)
        with provider.scratch(linked, base, ["pkg/deep/one.txt"]) as box:
            assert box.read("pkg/deep/one.txt") == b"1\n"
        assert sorted(path.name for path in tmp_path.iterdir() if path.name == "deep") == []

    def test_an_action_has_no_privileges(self, box: Sandbox) -> None:
        # Nothing here does harm where it succeeds: the kernel's files are opened and not written.
        assert said(box, "grep -h CapEff /proc/self/status | cut -f2") == "0" * 16
        attempts = (
            "mount -t tmpfs x /tmp", "umount /proc", "unshare -U true", "unshare -m true", "mknod d c 1 1",
            "chroot / true", ": >> /proc/sys/kernel/core_pattern", ": >> /proc/sysrq-trigger",
            "hostname x", "nsenter -t 1 -m true", "mount -o remount,rw /proc/sys", "chown 1:1 crlf.txt",
        )  # fmt: skip
        for attempt in attempts:
            assert sh(box, attempt + " 2>/dev/null | head -c 1 | grep -q . && exit 0; " + attempt).exit_code != 0, (
                attempt
            )

    def test_file_operations_cannot_reach_the_kernel(self, box: Sandbox) -> None:
        for path in ("/proc/sys/kernel/core_pattern", "/proc/self/environ", "/proc/sysrq-trigger", "/sys/power/state"):
            with pytest.raises(OSError):  # noqa: PT011
                box.read(path)
        assert sh(box, "ln -s /proc/sys/kernel/core_pattern aim").exit_code == 0
        harmless = Path("/proc/sys/kernel/core_pattern").read_bytes()
        for path in ("/proc/sys/kernel/core_pattern", "aim"):
            with pytest.raises(OSError):  # noqa: PT011
                box.write(path, harmless)

    def test_a_command_cannot_see_what_serves_it(self, box: Sandbox) -> None:
        assert said(box, "cat /proc/1/cmdline | tr '\\0' ' ' | grep -c docker || true") == "0"
        assert said(box, "ls /proc/1/fd 2>/dev/null | wc -w") in ("0", "4")
        assert sh(box, "kill -9 -1; kill -9 1").exit_code == 137 or sh(box, "true").exit_code == 0

    # -- comparing

    def test_changes_lists_every_path_that_differs(self, provider: Provider, base: Snapshot) -> None:
        with provider.at(base) as box:
            assert (
                sh(
                    box, "echo 1 > a.log; echo 2 >> crlf.txt; rm -r pkg; chmod 600 tool.sh; mkdir dir; touch dir/f"
                ).exit_code
                == 0
            )
            assert sh(box, "touch latin.txt; echo tmp > /tmp/elsewhere; ln -sfn src link").exit_code == 0
            new = box.snapshot()
        found = [(change.path, change.kind) for change in provider.changes(base, new)]
        assert found == [
            ("a.log", "added"), ("crlf.txt", "modified"), ("dir/f", "added"), ("link", "modified"),
            ("pkg/deep/one.txt", "removed"), ("pkg/deep/two.txt", "removed"), ("tool.sh", "modified"),
        ]  # fmt: skip
        back = {(change.path, change.kind) for change in provider.changes(new, base)}
        assert {("a.log", "removed"), ("pkg/deep/one.txt", "added"), ("crlf.txt", "modified")} <= back
        assert provider.changes(new, new) == ()

    def test_a_patch_applied_to_the_checkout_gives_the_state(
        self, provider: Provider, base: Snapshot, workspace: Workspace
    ) -> None:
        edits = {
            "crlf.txt": b"one\r\n2\r\n", "latin.txt": "d\u00e9j\u00e0\n".encode("latin-1"), "no_newline.txt": b"no",
            "data.bin": bytes(reversed(range(256))), "src/app.py": b"def add(a, b):\n    return a + b\n",
            "new/deep.txt": b"new\r\nmixed\n", "important.log": b"kept\n", "nul.bin": b"a\0b", "empty.txt": b"",
            "build/kept.txt": b"changed\n", "noise.log": b"left out\n", "build/made.o": b"left out\n",
            "with space\tand\nnewline": b"odd\n", "odd-\udcff.txt": b"changed\n", "new-\udcfe": b"n",
        }  # fmt: skip
        with provider.at(base) as box:
            for path, content in edits.items():
                box.write(path, content)
            done = sh(box, "chmod 644 tool.sh; chmod 755 pkg/deep/one.txt; rm pkg/deep/two.txt; ln -sf crlf.txt link; "
                           "ln -s nowhere dangling; rm -r tests; echo file > tests; rm build/out.o; "
                           "git init -q nested; echo n > nested/file; chmod 600 .gitignore")  # fmt: skip
            assert done.exit_code == 0
            new = box.snapshot()
        patch = provider.diff(base, new)
        assert provider.diff(base, base) == provider.diff(new, new) == b""
        assert workspace.path
        before = _git(workspace.path, "status", "--porcelain")
        assert before == b""
        _git(workspace.path, "apply", "--check", "-p1", stdin=patch)
        _git(workspace.path, "apply", "--index", "-p1", stdin=patch)
        for path in ("noise.log", "build/made.o", "nested", "nested/file"):
            assert not (workspace.path / path).exists()
            edits.pop(path, None)
        for path, content in edits.items():
            assert (workspace.path / path).read_bytes() == content, path
        assert (workspace.path / "link").readlink() == Path("crlf.txt")
        assert (workspace.path / "dangling").is_symlink()
        assert (workspace.path / "tests").read_bytes() == b"file\n"
        assert [os.access(workspace.path / path, os.X_OK) for path in ("tool.sh", "pkg/deep/one.txt")] == [False, True]
        assert not (workspace.path / "pkg/deep/two.txt").exists()

    def test_the_checkout_is_never_written(self, provider: Provider, workspace: Workspace) -> None:
        assert workspace.path
        tree = json.dumps(sorted((str(p), p.lstat().st_mtime_ns, p.lstat().st_mode) for p in workspace.path.rglob("*")))
        base = provider.create(workspace)
        with provider.at(base) as box:
            assert sh(box, "rm -rf * .git").exit_code == 0
            provider.diff(base, box.snapshot())
        after = json.dumps(
            sorted((str(p), p.lstat().st_mtime_ns, p.lstat().st_mode) for p in workspace.path.rglob("*"))
        )
        assert after == tree

    # -- measuring

    def test_scratch_has_the_workspace_of_one_state_and_the_rest_of_another(
        self, provider: Provider, base: Snapshot
    ) -> None:
        tamper = """
            echo 'def add(a, b): return 4' > src/app.py; echo 'def test_add(): pass' > tests/test_app.py
            echo evil > tests/conftest.py; echo evil > /tmp/evil; echo x > /usr/local/bin/evil; echo x > conftest.py
        """
        with provider.at(base) as box:
            original = fingerprint(box)
            assert sh(box, tamper).exit_code == 0
            evil = box.snapshot()
        with provider.scratch(evil, base, ["tests", "conftest.py"]) as box:
            assert said(box, "cat src/app.py") == "def add(a, b): return 4"
            assert b"assert add" in box.read("tests/test_app.py")
            left = said(box, "ls tests; ls conftest.py /tmp/evil /usr/local/bin/evil 2>/dev/null || true")
            assert left == "test_app.py"
        with provider.scratch(evil, base) as box:
            assert box.read("tests/conftest.py") == b"evil\n"
        with provider.at(base) as box:
            assert fingerprint(box) == original

    def test_scratch_puts_back_whatever_stands_in_the_way(self, provider: Provider, base: Snapshot) -> None:
        with provider.at(base) as box:
            assert (
                sh(box, "rm -r tests pkg; ln -s src tests; echo file > pkg; mkdir crlf.txt.d; rm crlf.txt").exit_code
                == 0
            )
            assert sh(box, "mkdir crlf.txt; touch crlf.txt/x; rm link tool.sh").exit_code == 0
            moved = box.snapshot()
        with provider.scratch(
            moved, base, ["tests/test_app.py", "pkg", "crlf.txt", "link", "tool.sh", "nothing"]
        ) as box:
            assert b"assert add" in box.read("tests/test_app.py")
            assert said(box, "cat pkg/deep/two.txt; ./tool.sh; readlink link; ls src") == "2\ntool\nsrc/app.py\napp.py"
            assert box.read("crlf.txt") == b"one\r\ntwo\r\n"

    # -- set-up

    def test_set_up_commands_are_part_of_the_base(self, provider: Provider, workspace: Workspace) -> None:
        prepared = Workspace(
            path=workspace.path,
            image=workspace.image,
            env={"MARK": "m"},
            setup=("echo $MARK > /opt/made", "touch here"),
        )
        with provider.at(provider.create(prepared)) as box:
            assert said(box, "cat /opt/made; ls here; echo $MARK; env | grep -ci _proxy || true") == "m\nhere\nm\n0"

    def test_a_set_up_command_that_fails_says_what_it_printed(self, provider: Provider, workspace: Workspace) -> None:
        broken = Workspace(path=workspace.path, image=workspace.image, setup=("echo the reason >&2; exit 3",))
        with pytest.raises(SetupFailed, match="the reason"):
            provider.create(broken)

    def test_an_environment_is_built_once_without_the_workspace(
        self, provider: Provider, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        commands = (f"echo {tmp_path.name} $(date +%N) > /opt/built", "ls -A > /opt/listing")
        shared = Workspace(path=workspace.path, image=workspace.image, environment=commands)
        built = []
        for _ in range(2):
            with provider.at(provider.create(shared)) as box:
                built.append(box.read("/opt/built"))
                assert b"crlf.txt" not in box.read("/opt/listing")
                assert box.read("crlf.txt") == b"one\r\ntwo\r\n"
        assert built[0] == built[1]
        with provider.at(provider.create(workspace)) as box, pytest.raises(FileNotFoundError):
            box.read("/opt/built")


def _running(mark: str) -> list[str]:
    """Processes of this machine that have `mark` among their arguments."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark.encode() in path.read_bytes().split(b"\0"):
                found.append(str(path))
        except OSError:
            continue
    return found
