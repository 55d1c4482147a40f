"""An image whose programs are hostile: each looks for a way out whenever it is started, by whomever."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from sandboxes import Provider, Template, Workspace
from sandboxes.conformance import LIMITS
from sandboxes.conformance.given import said
from sandboxes.conformance.templates import RUN_THE_ORDER, perform
from sandboxes.docker.images import BASE_IMAGE
from sandboxes.docker.provider import checked_provider
from tests.images import remove_image

pytestmark = pytest.mark.docker

# Nothing is ever written to what could be opened, but to our own files, in the places of states.
_SPY = """#!/opt/real/python3 -IS
import os, sys
name = os.path.basename(sys.argv[0])
kernel = ["/proc/sysrq-trigger", "/proc/sys/vm/drop_caches", "/proc/self/oom_score_adj"]
for top in ("/proc/sys/kernel", "/sys"):
    kernel += [os.path.join(place, file) for place, _, files in os.walk(top) for file in files][:400]
devices = ["/dev/" + device for device in ("mem", "kmsg", "port", "fuse", "net/tun", "vda", "sda", "nvme0n1")]
found = []
for path in kernel + devices:
    try:
        os.close(os.open(path, os.O_WRONLY))
        found.append(path)
    except OSError:
        pass
found += filter(os.path.exists, ("/states", "/environments", "/base"))
line = " ".join([os.environ.get("STAGE", "-"), name, str(os.getuid()), *found])
for place in ("/var", "/states"):
    try:
        with open(place + "/spied", "a") as file:
            file.write(line + "\\n")
    except OSError:
        pass
os.environ["SPIED"] = line
os.execv("/opt/real/" + name, sys.argv)
"""
_PROGRAMS = ("python3", "python", "sh", "bash", "git")
_REPLACE = f"""
set -e
mkdir /opt/real && ln -s python3 /opt/real/python
for program in python3 sh bash git; do cp -L $(command -v $program) /opt/real/$program; done
cat > /opt/spy <<'END'
{_SPY}
END
/opt/real/python3 -IS -c '
import os, shutil, sys
os.chmod("/opt/spy", 0o755)
open("/var/spied", "w").close()
os.chmod("/var/spied", 0o666)
for name in sys.argv[1:]:
    shutil.copy("/opt/spy", "/opt/new")
    os.replace("/opt/new", "/usr/bin/" + name)
' {" ".join(_PROGRAMS)}
"""


@pytest.fixture(scope="module")
def image(engine: docker.DockerClient) -> Iterator[str]:
    """Such an image, made of the base image."""
    source = engine.containers.create(BASE_IMAGE, ["sh", "-c", _REPLACE], network_mode="none")
    try:
        source.start()
        assert source.wait()["StatusCode"] == 0, source.logs()
        name = f"ramify-test-hostile-{os.getpid()}"
        source.commit(name, "latest", changes='ENTRYPOINT ["/usr/bin/python3"]\nVOLUME /var/lib/hostile')
    finally:
        source.remove(force=True)
    yield f"{name}:latest"
    remove_image(engine, f"{name}:latest")


@pytest.fixture
def provider(image: str, tmp_path: Path) -> Iterator[Provider]:
    with checked_provider(tmp_path / "store", LIMITS, image) as provider:
        yield provider


def test_programs_of_an_image_run_in_actions_alone_and_find_no_way_out(
    engine: docker.DockerClient, provider: Provider, image: str, tmp_path: Path
) -> None:
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    (checkout / "a.py").write_text("A = 1\n")
    setup = 'STAGE=set-up python3 -c \'open("made.txt", "w")\'; git --version'
    base = provider.create(Workspace(path=checkout, image=image, setup=(setup,), byte_code=True))
    with provider.at(base) as box:
        said(box, 'git --version; export STAGE=action; python3 -c \'open("a.py", "a").write("B = 2\\n")\' && sh -c :')
        spied = box.read("/var/spied").decode().splitlines()
        changed = box.snapshot()
    assert provider.diff(base, changed).endswith(b"+B = 2\n")
    template = Template(("python3", "-"), RUN_THE_ORDER, {"STAGE": "template"})
    with provider.scratch(changed, base, (), template) as box:
        done = perform(box, "import os; print(os.environ['SPIED'], open('a.py').read().split())")
        assert done.stdout == b"template python3 0 ['A', '=', '1', 'B', '=', '2']\n"
        assert said(box, "echo ran") == "ran"

    assert {"set-up python3 0", "action python3 0", "action sh 0", "- git 0"} <= {*spied}
    assert [line for line in spied if len(line.split()) > 3] == []
    assert _spied_outside(engine, tmp_path / "store") == b""


def _spied_outside(engine: docker.DockerClient, store: Path) -> bytes:
    """What was written beside the states of a store."""
    volume = (store / "volume").read_text()
    reading = ["sh", "-c", "cat /states/spied || true"]
    return engine.containers.run(
        BASE_IMAGE, reading, volumes=[f"{volume}:/states:ro"], network_mode="none", stderr=False, remove=True
    )
