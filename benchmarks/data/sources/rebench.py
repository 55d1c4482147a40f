"""SWE-rebench and SWE-rebench-V2: rows with the configuration that their images were built with."""

from __future__ import annotations

from pathlib import PurePosixPath
from shlex import join
from typing import Any

from benchmarks.data.instances import Instance
from benchmarks.data.sources import changes, columns, images
from benchmarks.data.sources.columns import Row
from benchmarks.data.sources.swebench import PYTEST, hidden_of, instance_of


def rebench(row: Row) -> Instance:
    """A row of the first set: Python, with one command that takes test files."""
    config = columns.read_object(row["install_config"])
    command = str(config.get("test_cmd") or PYTEST)
    tested = [path for path in changes.kept(columns.patch(row["test_patch"])) if path.endswith(".py")]
    hidden = hidden_of(row, test_command=f"{command} {join(tested)}", log_parser=str(config.get("log_parser") or ""))
    image = images.image_of(row, images.published(row["instance_id"], owner="swerebench"))
    return instance_of(row, images.checked_out(image), hidden, command, language="python")


def rebench_2(row: Row) -> Instance:
    """A row of the second set: any language, a list of commands, and the checkout in a folder with the repository's
    name (SWE-rebench-V2, `scripts/eval.py`)."""
    config = columns.read_object(row["install_config"])
    command, mount = _script(config["test_cmd"]), f"/{PurePosixPath(row['repo']).name}"
    hidden = hidden_of(row, test_command=command, log_parser=str(config["log_parser"]), mount=mount)
    place = images.checked_out(images.qualified(row["image_name"]), mount=mount)
    return instance_of(row, place, hidden, command)


def _script(commands: Any) -> str:
    """Join several commands to one that stops at the first failure."""
    lines = [commands] if isinstance(commands, str) else list(commands)
    if not lines or not all(isinstance(line, str) for line in lines):
        raise ValueError(f"the test_cmd {str(commands)[:80]!r} is neither a command nor a list of them")
    return lines[0] if len(lines) == 1 else "\n".join(["set -e", *lines])
