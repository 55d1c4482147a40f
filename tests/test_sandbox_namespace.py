"""The provider without Docker keeps the contract, and what is particular to it."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sandboxes import Provider, Sandbox, SandboxError, SandboxUnavailable, Snapshot, Workspace
from sandboxes.conformance import LIMITS, ExactContract, sample, sh
from sandboxes.conformance.templates import TEMPLATE
from sandboxes.forking.lease import LeasedSandbox
from sandboxes.namespace.provider import namespace_provider
from tests.projects import commit

pytestmark = [pytest.mark.namespace, pytest.mark.usefixtures("namespaces")]


class TestContract(ExactContract):
    @pytest.fixture(scope="class")
    @classmethod
    def reopen(cls, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Provider]:
        store = tmp_path_factory.mktemp("contract") / "store"
        return lambda: namespace_provider(store, LIMITS)

    @pytest.fixture(scope="class")
    @classmethod
    def workspace(cls, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
        return Workspace(path=sample(tmp_path_factory.mktemp("contract") / "checkout"))


@contextmanager
def forked(store: Path, checkout: Path, mount: str | None = None) -> Iterator[Sandbox]:
    """A fork of a new base state."""
    with namespace_provider(store, LIMITS) as provider:
        base = provider.create(Workspace(path=checkout, mount=mount))
        with provider.at(base) as box:
            yield box


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return sample(tmp_path / "checkout")


def test_a_killed_host_process_leaves_nothing_running(namespaces: Path, checkout: Path) -> None:
    mark = f"87654.{os.getpid()}"
    program = f"""
        from pathlib import Path
        from sandboxes import Workspace
        from sandboxes.namespace.provider import namespace_provider
        provider = namespace_provider(Path({str(namespaces / "store")!r}))
        with provider.at(provider.create(Workspace(path=Path({str(checkout)!r})))) as box:
            print("ready", flush=True)
            box.exec(["sh", "-c", "setsid sleep {mark} & sleep {mark}"], timeout_s=600)
    """
    host = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE)
    assert host.stdout
    assert host.stdout.readline() == b"ready\n"
    wait_for(lambda: len(running(mark)) >= 2)
    host.send_signal(signal.SIGKILL)
    host.wait()
    host.stdout.close()
    wait_for(lambda: not running(mark))


def test_an_interrupted_request_costs_only_its_own_guest(namespaces: Path, checkout: Path) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    def wait(box: Sandbox) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        sh(box, "sleep 100")

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with namespace_provider(namespaces / "store", LIMITS) as provider:
            base = provider.create(Workspace(path=checkout))
            with pytest.raises(KeyboardInterrupt), provider.at(base) as box:
                wait(box)
            with provider.at(base) as box:
                assert sh(box, "echo fine").stdout == b"fine\n"
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_fork_outlives_what_was_made_ready_for_its_next_command(namespaces: Path, checkout: Path) -> None:
    with forked(namespaces / "store", checkout) as box:
        before = set(descendants(os.getpid()))
        for number in range(4):
            assert sh(box, f"echo {number}").stdout == b"%d\n" % number
        box.read("src/app.py")  # what is made ready then is there
        (ready,) = set(descendants(os.getpid())) - before
        os.kill(ready, signal.SIGKILL)
        wait_for(lambda: Path(f"/proc/{ready}/stat").read_text().rpartition(")")[2].split()[0] == "Z")
        assert sh(box, "echo fine").stdout == b"fine\n"
        assert box.snapshot().digest


def test_a_copy_outlives_what_was_made_ready_for_it(namespaces: Path, checkout: Path) -> None:
    with namespace_provider(namespaces / "store", LIMITS) as provider:
        base = provider.create(Workspace(path=checkout))
        with provider.scratch(base, base, (), TEMPLATE) as box:
            assert box.perform(b"print(known[0])", timeout_s=100).stdout == b"imported once\n"
        provider.changes(base, base)  # the guest is done with the first fork
        before = set(descendants(os.getpid()))
        with provider.scratch(base, base, (), TEMPLATE) as box:
            box.read("src/app.py")  # what is made ready then is there
            _, ready = sorted(set(descendants(os.getpid())) - before)  # after the process that holds the fork
            os.kill(ready, signal.SIGKILL)
            wait_for(lambda: Path(f"/proc/{ready}/stat").read_text().rpartition(")")[2].split()[0] == "Z")
            assert box.perform(b"print(known[0])", timeout_s=100).stdout == b"imported once\n"


def test_a_store_inside_the_checkout_is_not_copied_into_itself(checkout: Path) -> None:
    with forked(checkout / "runs" / "store", checkout) as box:
        assert sh(box, "ls runs").stdout == b""


def test_a_python_in_a_home_shows_itself_and_nothing_else_of_the_home(
    namespaces: Path, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = tmp_path / "home" / ".local"
    installation = made(local / "share/uv/python/3.12", "lib/python3.12/os.py", "bin/python3.12")
    made(local, "bin/private", "lib/private", "share/keyrings/secret", "state/history")
    (local / "bin/python3.12").symlink_to("../share/uv/python/3.12/bin/python3.12")
    made(tmp_path / "env", "pyvenv.cfg", "bin/pytest")
    (tmp_path / "env/bin/python").symlink_to(local / "bin/python3.12")
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "env"))
    with forked(namespaces / "store", checkout) as box:
        assert sh(box, "command -v pytest").stdout.decode().strip() == f"{tmp_path}/env/bin/pytest"
        assert sh(box, f"cat {tmp_path}/env/bin/python").stdout == b"bin/python3.12"
        found = sh(box, f"cd {local} && find . ! -type d").stdout.decode().split()
    kept = {f"./{path.relative_to(local)}" for path in installation}
    assert set(found) == {"./bin/python3.12", *kept}


@pytest.mark.parametrize("called", ["home", "link"])
def test_a_python_that_is_installed_in_a_home_shows_its_own_folders(
    namespaces: Path, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, called: str
) -> None:
    home = tmp_path / "home"
    (tmp_path / "link").symlink_to("home")
    made(home, "lib/python3.12/os.py", "bin/python", "pyvenv.cfg", ".ssh/secret", "share/secret", "notes")
    monkeypatch.setenv("HOME", str(tmp_path / called))
    monkeypatch.setenv("VIRTUAL_ENV", str(home))
    with forked(namespaces / "store", checkout) as box:
        found = sh(box, f"cd {home} && find . ! -type d").stdout.decode().split()
    assert set(found) == {"./lib/python3.12/os.py", "./bin/python", "./pyvenv.cfg"}


def test_an_environment_of_copies_brings_the_python_that_it_was_made_of(
    namespaces: Path, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path / "base", "lib/python3.12/os.py", "bin/python")
    made(tmp_path / "env", "bin/python", "pyvenv.cfg")
    (tmp_path / "env/pyvenv.cfg").write_text(f"include-system = false\nhome = {tmp_path}/base/bin\n")
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "env"))
    with forked(namespaces / "store", checkout) as box:
        assert sh(box, f"ls {tmp_path}/base").stdout == b"bin\nlib\n"


def test_the_python_of_these_tests_loads_no_plugins(namespaces: Path, checkout: Path) -> None:
    with forked(namespaces / "store", checkout) as box:
        ran = sh(box, "python3 -c 'import os; print(os.environ[\"PYTEST_DISABLE_PLUGIN_AUTOLOAD\"])'")
    assert ran.stdout == b"1\n"


def test_the_environment_of_a_checkout_goes_before_our_own(
    namespaces: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(checkout / ".venv", "bin/python", "pyvenv.cfg")
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    with forked(namespaces / "store", checkout) as box:
        assert sh(box, "command -v python").stdout.decode().strip() == f"{box.workdir}/.venv/bin/python"


def test_the_environment_of_a_checkout_brings_the_folders_of_its_python_and_nothing_beside_them(
    namespaces: Path, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conda = tmp_path / "home/conda"
    made(tmp_path / "home/conda-24.1", "bin/python3.12")
    conda.symlink_to("conda-24.1")
    made(conda, "lib/python3.12/os.py", "share/zoneinfo/UTC", ".condarc", "envs/other/lib/secret")
    (conda / "include").symlink_to(tmp_path)
    made(checkout / ".venv", "pyvenv.cfg")
    (checkout / ".venv/pyvenv.cfg").write_text(f"home = {conda}/bin\n")
    (checkout / ".venv/bin").mkdir()
    (checkout / ".venv/bin/python").symlink_to(conda / "bin/python3.12")
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    with forked(namespaces / "store", checkout) as box:
        assert sh(box, "cat $(command -v python)").stdout == b"bin/python3.12"
        found = sh(box, f"cd {conda} && find . -type f").stdout.decode().split()
    assert sorted(found) == ["./bin/python3.12", "./lib/python3.12/os.py", "./share/zoneinfo/UTC"]


def test_states_whose_python_has_changed_since_say_so_once(
    namespaces: Path, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    env, store = tmp_path / "env", namespaces / "store-of-changed"
    made(env, "pyvenv.cfg", "bin/python", "lib/python3.12/site-packages/a-1.0.dist-info/METADATA")
    monkeypatch.setenv("VIRTUAL_ENV", str(env))
    with namespace_provider(store, LIMITS) as provider:
        base = provider.create(Workspace(path=checkout))
    with namespace_provider(store, LIMITS) as provider, provider.at(base):
        made(env, "lib/python3.12/site-packages/__pycache__/a.pyc")
    assert caplog.text == ""
    with namespace_provider(store, LIMITS) as provider, provider.at(base):
        (env / "lib/python3.12/site-packages/a-1.0.dist-info").rename(
            env / "lib/python3.12/site-packages/a-1.1.dist-info"
        )
    assert f"{env} changed" in caplog.text
    caplog.clear()
    with namespace_provider(store, LIMITS) as provider, provider.at(base):
        provider.create(Workspace(path=checkout))
    assert caplog.text.count("start a new run") == 1


@pytest.mark.parametrize("activated", [False, True])
def test_a_checkout_cannot_choose_a_folder_of_this_machine_to_be_shown(
    namespaces: Path, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, activated: bool
) -> None:
    project, python = tmp_path / "project", tmp_path / "python"
    made(project, "pyvenv.cfg", "bin/private", "lib/private", ".env")
    made(python, "bin/python", "lib/python3.12/os.py", ".secret")
    made(checkout / ".venv", "bin/python", "lib/python3.12/os.py", "pyvenv.cfg")
    (checkout / ".venv/pyvenv.cfg").write_text(f"home = {project}/bin\nhome = {python}/bin\n")
    (checkout / ".venv/share").symlink_to(project)
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    if activated:
        monkeypatch.setenv("VIRTUAL_ENV", str(checkout / ".venv"))
    for mount in (None, "/workspace"):
        with forked(namespaces / "store", checkout, mount=mount) as box:
            found = sh(box, f"find {tmp_path} -name private -o -name .env -o -name .secret").stdout
        assert found == b""


def test_a_program_of_a_checkout_that_leads_to_a_link_of_the_system_is_no_problem(
    namespaces: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(checkout / ".venv", "pyvenv.cfg", "bin/other")
    (checkout / ".venv/bin/python").symlink_to("/var/run")
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    with forked(namespaces / "store", checkout) as box:
        assert sh(box, "readlink /var/run").stdout == b"/run\n"


_CONNECT = r"""
import os, socket, sys
for address in sys.argv[1:]:
    there = socket.socket(socket.AF_UNIX)
    try:
        there.connect("\0" + address)
        print("reached", address)
    except OSError:
        pass
ours = socket.socket(socket.AF_UNIX)
ours.bind("\0ours-%d" % os.getpid())
ours.listen()
socket.socket(socket.AF_UNIX).connect(ours.getsockname())
print("connected to its own")
"""


def test_a_set_up_reaches_no_abstract_socket_but_its_own(namespaces: Path, checkout: Path) -> None:
    if ctypes.CDLL(None).syscall(444, None, 0, 1) < 6:
        pytest.skip("this kernel has no Landlock that can close abstract sockets")
    (checkout / "connect.py").write_text(_CONNECT)
    address = f"ramify-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0{address}")
        listener.listen()
        with namespace_provider(namespaces / "store", LIMITS) as provider:
            setup = (f"python3 connect.py {address} > /opt/said",)
            with provider.at(provider.create(Workspace(path=checkout, setup=setup))) as box:
                assert box.read("/opt/said") == b"connected to its own\n"


def test_an_environment_may_be_made_of_a_program_in_bin_which_may_be_a_link(
    namespaces: Path, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path / "env", "pyvenv.cfg")
    (tmp_path / "env/pyvenv.cfg").write_text("home = /bin\n")
    (tmp_path / "env/bin").mkdir()
    (tmp_path / "env/bin/python").symlink_to("/bin/sh")
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "env"))
    with forked(namespaces / "store", checkout) as box:
        assert sh(box, "python -c 'echo fine'").stdout == b"fine\n"


def made(folder: Path, *names: str) -> list[Path]:
    """Executable files that hold their own names."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
        (folder / name).chmod(0o755)
    return [folder / name for name in names]


def test_byte_code_of_the_checkout_stays_outside(namespaces: Path, checkout: Path) -> None:
    (checkout / "src" / "__pycache__").mkdir()
    (checkout / "src" / "__pycache__" / "app.cpython-311.pyc").write_bytes(b"stale")
    os.mkfifo(checkout / "pipe")
    with forked(namespaces / "store", checkout) as box:
        assert sh(box, "ls src/__pycache__ pipe").stdout == b"src/__pycache__:\n"


def test_equal_checkouts_have_equal_digests(namespaces: Path, tmp_path: Path, checkout: Path) -> None:
    with namespace_provider(namespaces / "store", LIMITS) as provider:
        one, other = (provider.create(Workspace(path=checkout, mount="/workspace")) for _ in range(2))
        (checkout / "src" / "app.py").write_text("changed\n")
        third = provider.create(Workspace(path=checkout, mount="/workspace"))
    assert one.digest == other.digest != third.digest


def test_states_that_are_discarded_leave_no_layer(tmp_path: Path, checkout: Path) -> None:
    store = tmp_path / "store"
    with namespace_provider(store, LIMITS) as provider:
        base = provider.create(Workspace(path=checkout))
        kept = {path.name for path in (store / "layers").iterdir()}
        with provider.at(base) as box:
            box.write("one", b"1")
            first = box.snapshot()
            box.write("two", b"2")
            second = box.snapshot()
        provider.discard(first)
        assert len({path.name for path in (store / "layers").iterdir()} - kept) == 2
        provider.discard(second)
        assert {path.name for path in (store / "layers").iterdir()} == kept
        provider.discard(base)
    assert [list((store / name).iterdir()) for name in ("layers", "states", "imports")] == [[], [], []]


def test_an_image_without_a_checkout_is_for_docker(namespaces: Path) -> None:
    provider = namespace_provider(namespaces / "store", LIMITS)
    with pytest.raises(SandboxUnavailable, match="Docker"):
        provider.create(Workspace(image="python:3.12"))


@pytest.mark.skipif(os.geteuid() != 0, reason="this is already an ordinary user")
def test_an_ordinary_user_can_have_one(tmp_path_factory: pytest.TempPathFactory) -> None:
    place = Path("/var/tmp") / f"ramify-test-{os.getpid()}"
    subprocess.run(["rm", "-rf", place], check=True)
    place.mkdir()
    place.chmod(0o777)
    root = Path(__file__).parents[1]
    program = (
        f"import sys; sys.path.insert(0, {str(root)!r}); from sandboxes.namespace.provider import probe; print(probe())"
    )
    python = "/usr/bin/python3"
    user = ["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups", "--bounding-set=-all", "--no-new-privs"]
    env = {"PATH": os.defpath, "HOME": str(place), "TMPDIR": str(place)}
    if subprocess.run([*user, python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"], env=env).returncode:
        pytest.skip("no Python 3.11 that an ordinary user can run")
    done = subprocess.run([*user, python, "-c", program], capture_output=True, env=env, text=True, cwd="/")
    assert (done.stdout.strip(), done.stderr) == ("", "")
    subprocess.run(["rm", "-rf", place], check=True)


class TestLargeFiles:
    """Nobody reads more than a patch may contain; `truncate` makes a file of any size for nothing."""

    @pytest.fixture(scope="class")
    @classmethod
    def provider(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
        with namespace_provider(tmp_path_factory.mktemp("large") / "store") as provider:
            yield provider

    @pytest.fixture(scope="class")
    @classmethod
    def base(cls, provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
        return provider.create(Workspace(path=sample(tmp_path_factory.mktemp("large") / "checkout")))

    def left_by(self, provider: Provider, base: Snapshot, script: str) -> Snapshot:
        with provider.at(base) as box:
            assert sh(box, script).exit_code == 0
            return box.snapshot()

    @pytest.mark.slow
    def test_a_new_one_is_left_out_of_the_patch_and_named(
        self, provider: Provider, base: Snapshot, caplog: pytest.LogCaptureFixture
    ) -> None:
        left = self.left_by(provider, base, "truncate -s 300M scratch; echo 3 >> crlf.txt; echo n > new")
        patch = provider.diff(base, left)
        assert [line for line in patch.splitlines() if line.startswith(b"+++")] == [b"+++ b/crlf.txt", b"+++ b/new"]
        assert "'scratch' (300 MiB) is left out" in caplog.text
        assert "scratch" in {change.path for change in provider.changes(base, left)}
        assert provider.merge(base, left, base).patch == b""

    @pytest.mark.slow
    def test_one_that_git_ignores_costs_nothing(self, provider: Provider, base: Snapshot) -> None:
        left = self.left_by(provider, base, "for i in $(seq 8); do truncate -s 60M $i.log; done; echo n > new")
        assert b"+++ b/new" in provider.diff(base, left)

    @pytest.mark.parametrize(
        ("script", "named"),
        [
            ("truncate -s 65M crlf.txt", "'crlf.txt' was changed and has 65 MiB"),
            ("for i in 1 2 3 4; do truncate -s 60M part$i; done; truncate -s 61M whole", "301 MiB .* 'whole'"),
            ("truncate -s 2M .gitignore; echo n > new", ".gitignore has 2097152 bytes"),
        ],
    )
    def test_what_no_patch_takes_is_refused_by_name_and_the_state_stays(
        self, provider: Provider, base: Snapshot, script: str, named: str
    ) -> None:
        left = self.left_by(provider, base, script)
        with pytest.raises(SandboxError, match=named):
            provider.diff(base, left)
        with provider.at(left) as box:
            assert sh(box, "git checkout -q . && rm -f part? whole").exit_code == 0
            assert b"b/part" not in provider.diff(base, box.snapshot())


def test_git_status_leaves_the_state_as_it_is(provider: Provider, tmp_path: Path) -> None:
    base = provider.create(Workspace(path=commit(tmp_path / "repo", {"a.txt": "a\n"})))
    with provider.at(base) as box:
        assert sh(box, "git status").exit_code == 0
        assert box.snapshot().digest == base.digest


@pytest.mark.parametrize(
    ("operation", "fields"),
    [
        ("exec", {"argv": []}),
        ("exec", {"argv": ["/bin/true", "a\0"]}),
        ("exec", {"argv": ["/bin/true"], "env": {"A": "\ud800"}}),
        ("read", {"path": "a\0", "max_bytes": 1}),
        ("remove", {"path": "\ud800"}),
    ],
)
def test_a_guest_that_is_asked_for_the_impossible_says_so_and_goes_on(
    namespaces: Path, checkout: Path, operation: str, fields: dict[str, object]
) -> None:
    limits = {"timeout_s": 100, "output_bytes": 100, "memory_bytes": 1 << 30, "pids": 9, "disk_bytes": 1 << 20}
    with forked(namespaces / "store", checkout) as box:
        assert isinstance(box, LeasedSandbox)
        with pytest.raises(SandboxError):
            box._ask(operation, b"", **{"cwd": "/", "env": {}, **limits, **fields})
        assert sh(box, "echo fine").stdout == b"fine\n"


@pytest.mark.parametrize(("most", "said"), [(0, "SandboxUnavailable"), (1, "SandboxError"), (2, "ran")])
def test_where_network_namespaces_run_out_no_command_shares_one(
    namespaces: Path, checkout: Path, most: int, said: str
) -> None:
    """The guest has one of its own, and each command another."""
    program = f"""
        from pathlib import Path
        from sandboxes import SandboxError, Workspace
        from sandboxes.namespace.provider import namespace_provider
        try:
            with namespace_provider(Path({str(namespaces / "few")!r})) as provider:
                with provider.at(provider.create(Workspace(path=Path({str(checkout)!r})))) as box:
                    print("ran", box.exec(["true"], timeout_s=100).exit_code)
        except SandboxError as error:
            print(type(error).__name__, error)
    """
    limited = f'echo {most} > /proc/sys/user/max_net_namespaces && exec "$@"'
    inside = ["unshare", "--user", "--map-root-user", "sh", "-c", limited, "sh"]
    done = subprocess.run([*inside, sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True)
    assert done.stdout.split()[:1] == [said], done
    assert ("raise /proc/sys/user/max_net_namespaces" in done.stdout) == (most < 2)


def running(mark: str) -> list[Path]:
    """Processes that have `mark` as an argument."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark.encode() in path.read_bytes().split(b"\0"):
                found.append(path)
        except OSError:
            continue
    return found


def descendants(process: int) -> Iterator[int]:
    """Process ids of all that a process started, and of what those did."""
    for tasks in Path(f"/proc/{process}/task").iterdir():
        for child in map(int, (tasks / "children").read_text().split()):
            yield child
            yield from descendants(child)


def wait_for(claim: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 100
    while not claim():
        assert time.monotonic() < deadline
        time.sleep(0.02)
