"""Images for tests, made of what the base image has: no registry is asked."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import docker

from sandboxes.docker.client import ENVIRONMENTS_VOLUME, OUR_IMAGES, labels, removed
from sandboxes.docker.images import BASE_IMAGE, base_volume_name

BARE_PROGRAMS = "sh cat rm mkdir ls grep sed head sleep seq cp mv ln touch chmod stat wc tail cut tr env"

_GATHER = """
cd / && mkdir -p /bare/tmp /bare/root && for program in "$@"; do
    command -v "$program" && ldd "$(command -v "$program")" | grep -o '/[^ ]*'
done > /list
tar -ch --hard-dereference -f /bare.tar -C /bare . -C / $(echo /bin/sh /etc/passwd /etc/group $(cat /list) |
    tr ' ' '\\n' | sort -u)
"""


def bare_image(engine: docker.DockerClient, name: str, *more: str) -> str:
    """An image with a shell and a few programs, and no Python; the caller removes it."""
    programs = [*BARE_PROGRAMS.split(), *more]
    source = engine.containers.create(BASE_IMAGE, ["sh", "-c", _GATHER, "sh", *programs], network_mode="none")
    try:
        source.start()
        assert source.wait()["StatusCode"] == 0
        chunks, _ = source.get_archive("/bare.tar")
        with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as outer:
            root = outer.extractfile("bare.tar")
            assert root is not None
            data = root.read()
    finally:
        source.remove(force=True)
    changes = ["ENV PATH=/usr/local/bin:/usr/bin:/bin", "ENV GREETING=hello"]
    repository, tag = f"ramify-test-{name}-{os.getpid()}", "latest"
    engine.api.import_image_from_data(data, repository=repository, tag=tag, changes=changes)
    return f"{repository}:{tag}"


def deep_image(engine: docker.DockerClient, bottom: str, layers: int) -> str:
    """An image of so many layers over another of one layer; the caller removes it."""
    files = {f"{number}/layer.tar": _tar({f"layer{number}": b""}) for number in range(layers)}
    saved = b"".join(engine.images.get(bottom).save())
    with tarfile.open(fileobj=io.BytesIO(saved)) as archive:
        [described] = json.load(archive.extractfile("manifest.json") or io.BytesIO())
        config = json.load(archive.extractfile(described["Config"]) or io.BytesIO())
        root = archive.extractfile(described["Layers"][0])
        assert root is not None
        files = {"root/layer.tar": root.read(), **files}
    config["rootfs"]["diff_ids"] = ["sha256:" + hashlib.sha256(layer).hexdigest() for layer in files.values()]
    config["history"] = [{"created": config["created"]} for _ in files]
    name = f"ramify-test-deep-{os.getpid()}:latest"
    manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": list(files)}]
    files |= {"config.json": json.dumps(config).encode(), "manifest.json": json.dumps(manifest).encode()}
    engine.images.load(_tar(files))
    return name


def _tar(files: dict[str, bytes]) -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for path, data in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return archive.getvalue()


def remove_made(engine: docker.DockerClient, below: Path) -> None:
    """Remove what this process has made on the engine, and states of stores below a folder, whoever made them. What
    processes share stays: the files of the base image, and environments."""
    kept = (ENVIRONMENTS_VOLUME, base_volume_name(str(engine.images.get(BASE_IMAGE).id)))

    def ours(marks: dict[str, str] | None) -> bool:
        store = Path((marks or {}).get("ramify.store", "/"))
        return marks is not None and (owner(marks) == owner(labels("")) or store.is_relative_to(below.resolve()))

    boxes = engine.containers.list(all=True, filters={"label": "ramify=1"}, ignore_removed=True)
    going: list[Callable[[], object]] = [partial(box.remove, v=True, force=True) for box in boxes if ours(box.labels)]
    for image in engine.api.images(filters={"label": "ramify=1"}):
        tags = [tag for tag in image["RepoTags"] or () if tag.startswith(OUR_IMAGES)]
        going += [partial(engine.images.remove, tag) for tag in tags if ours(image["Labels"])]
    volumes = engine.volumes.list(filters={"label": "ramify=1"})
    going += [each.remove for each in volumes if ours(each.attrs["Labels"]) and each.name not in kept]
    for remove in going:
        removed(remove)


def owner(marks: dict[str, str]) -> tuple[str | None, str | None]:
    """The process that made a thing, on its machine."""
    return marks.get("ramify.host"), marks.get("ramify.pid")


_TESTBED = """
set -e
conda=/opt/miniconda3
mkdir -p $conda/bin $conda/etc/profile.d
python3 -m venv --without-pip --system-site-packages $conda/envs/testbed
echo 'LIMIT = 3' > $conda/envs/testbed/lib/python3.11/site-packages/only_in_testbed.py
cat > $conda/bin/activate <<'END'
conda() {
    export CONDA_DEFAULT_ENV="$2" CONDA_PREFIX="/opt/miniconda3/envs/$2"
    case ":$PATH:" in *":$CONDA_PREFIX/bin:"*) ;; *) export PATH="$CONDA_PREFIX/bin:$PATH" ;; esac
}
END
echo "export SECRET_PROMPT='a b'; source $conda/bin/activate && conda activate testbed" > /root/.bashrc
useradd --uid 1234 --create-home nonroot
cp /root/.bashrc /home/nonroot/.bashrc
mkdir -p /testbed && cd /testbed
printf 'from only_in_testbed import LIMIT\\n\\n\\ndef within(n):\\n    return n < LIMIT\\n' > limits.py
printf 'from limits import within\\n\\n\\ndef test_at_the_limit():\\n    assert within(3)\\n\\n\\n' > test_limits.py
printf 'def test_beyond():\\n    assert not within(4)\\n' >> test_limits.py
printf '__pycache__/\\n' > .gitignore
git init -q && git add -A
git -c user.name=n -c user.email=e@example.invalid commit -qm first
git -c user.name=n -c user.email=e@example.invalid commit -qm second --allow-empty
chown -R "$1" /testbed
"""


def conda_image(engine: docker.DockerClient, user: str = "", owner: str = "0:0") -> str:
    """An image in the style of SWE-bench: a repository at /testbed with one bug, and the Python that its tests need in
    the conda environment `testbed`, which only `.bashrc` activates. It runs as `user`, and the repository is `owner`'s.
    The caller removes it."""
    source = engine.containers.create(BASE_IMAGE, ["bash", "-c", _TESTBED, "bash", owner], network_mode="none")
    try:
        source.start()
        ended = source.wait()["StatusCode"]
        assert ended == 0, source.logs()
        name = f"ramify-test-testbed-{user or 'root'}-{owner.partition(':')[0]}-{os.getpid()}"
        changes = ["WORKDIR /testbed", 'ENTRYPOINT ["/bin/false"]', *([f"USER {user}"] if user else [])]
        source.commit(name, "latest", changes="\n".join(changes))
    finally:
        source.remove(force=True)
    return f"{name}:latest"


def nested_image(engine: docker.DockerClient, image: str) -> str:
    """A `conda_image` whose repository is at /testbed/limits, beside a file. The caller removes it."""
    moving = "cd / && mv testbed limits && mkdir testbed && mv limits testbed && touch testbed/beside"
    source = engine.containers.create(image, ["-c", moving], entrypoint="sh", user="0:0", network_mode="none")
    try:
        source.start()
        assert source.wait()["StatusCode"] == 0, source.logs()
        name = f"{image.partition(':')[0]}-nested"
        source.commit(name, "latest", changes="WORKDIR /testbed")
    finally:
        source.remove(force=True)
    return f"{name}:latest"


def remove_image(engine: docker.DockerClient, name: str) -> None:
    """Remove an image, and what its states stood on; whoever used it is closed."""
    base = base_volume_name(str(engine.images.get(name).id))
    engine.images.remove(name, force=True)
    if any(volume.name == base for volume in engine.volumes.list()):
        engine.volumes.get(base).remove()
