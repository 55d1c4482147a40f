"""Harbor: a folder for each task (`task.toml`, `instruction.md`, `environment`, `tests`, `solution`).

The checkout is the working directory of the task's image. `tests/test.sh` runs as in Harbor, at `/tests`, and writes
a reward to `/logs/verifier`; a reward of 1 resolves the task.
"""

from __future__ import annotations

import base64
import io
import tarfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from agent.errors import UsageError
from agent.measure.reading import COMMAND
from agent.task import Task
from benchmarks.data.instances import Hidden, Instance, InstanceBroken
from benchmarks.data.sources import columns, images
from sandboxes import Workspace

_VERIFY = r"""
rm -rf /logs/verifier; mkdir -p /logs/verifier; bash /tests/test.sh
cd /logs/verifier; test -f reward.txt && exec grep -Eqx '[[:space:]]*1(\.0*)?[[:space:]]*' reward.txt
exec grep -Eq '"reward" *: *1(\.0*)?[[:space:]]*([,}]|$)' reward.json"""
_SOLVE = "\nbash /solution/solve.sh"
_NO_TESTS = "true"
"""The test command of a solver, which must know nothing about the tests."""


@dataclass(frozen=True, slots=True)
class Harbor:
    """The tasks of a folder, in the order of their names, or the single task in a folder."""

    folder: Path
    reveal: bool = False

    @staticmethod
    def fits(folder: Path) -> bool:
        """Whether the folder is a task or holds tasks."""
        return (folder / "task.toml").is_file() or any(folder.glob("*/task.toml"))

    def instances(self) -> Iterator[Instance]:
        """The tasks. Raises UsageError if a task lacks a file, or if its tests are to be revealed, which is impossible
        as they are not files of the checkout."""
        if self.reveal:
            raise UsageError(f"{self.folder} has Harbor tasks, whose tests cannot be revealed")
        single = (self.folder / "task.toml").is_file()
        for file in [self.folder / "task.toml"] if single else sorted(self.folder.glob("*/task.toml")):
            try:
                yield _instance(file.parent.resolve())
            except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
                raise UsageError(f"{file.parent} is not a Harbor task: {error}") from error

    def prepare(self, instance: Instance) -> None:
        """Build the image of a task that names none, unless it exists."""
        from docker.errors import BuildError, DockerException, ImageNotFound

        from sandboxes.docker.client import connect

        image, folder = instance.task.workspace.image, instance.task.tags.get("environment")
        if image is None or folder is None:
            return
        try:
            client = connect()
            try:
                client.images.get(image)
            except ImageNotFound:
                client.images.build(path=folder, tag=image, rm=True)
            finally:
                client.close()
        except (BuildError, DockerException) as error:
            raise InstanceBroken(f"the image of {instance.id} cannot be built from {folder}: {error}") from error


def _instance(folder: Path) -> Instance:
    config = tomllib.loads((folder / "task.toml").read_text("utf-8"))
    environment = config.get("environment", {})
    tests, solution = folder / "tests", folder / "solution"
    if not (tests / "test.sh").is_file():
        raise ValueError("it has no tests/test.sh")
    image, built = _image(folder, environment)
    workspace = Workspace(image=image, mount=environment.get("workdir"), setup=(images.SEALED_WHERE_KEPT,))
    task = Task(
        id=columns.instance_name(folder.name),
        statement=(folder / "instruction.md").read_text("utf-8"),
        workspace=workspace,
        test_command=_NO_TESTS,
        tags={"environment": built} if built else {},
    )
    hidden = Hidden(
        fail_to_pass=(COMMAND,),
        pass_to_pass=(),
        patch=b"",
        test_patch=b"",
        test_command=_unpacked(tests, "/tests") + _VERIFY,
        solution=_unpacked(solution, "/solution") + _SOLVE if (solution / "solve.sh").is_file() else "",
    )
    return Instance(task, hidden, language="")


def _image(folder: Path, environment: dict[str, Any]) -> tuple[str, str]:
    """The task's image and, if the task does not name it, the folder that it is built from."""
    if named := environment.get("docker_image"):
        return images.qualified(named), ""
    context = folder / "environment"
    if not (context / "Dockerfile").is_file():
        raise ValueError("it has neither environment.docker_image nor environment/Dockerfile")
    return f"ramify-harbor-{sha256(_packed(context)).hexdigest()[:12]}:latest", str(context)


def _unpacked(folder: Path, target: str) -> str:
    """A command that recreates the folder in the sandbox."""
    data = base64.b64encode(_packed(folder)).decode()
    return f"rm -rf {target}; mkdir -p {target}; printf %s {data} | base64 -d | tar -x -C {target}"


def _packed(folder: Path) -> bytes:
    """A tar archive of the files of a folder with their modes. The same files give the same bytes."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path in sorted(folder.rglob("*")):
            archive.add(path, path.relative_to(folder).as_posix(), recursive=False, filter=_without_owner)
    return packed.getvalue()


def _without_owner(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mtime = 0
    return entry
