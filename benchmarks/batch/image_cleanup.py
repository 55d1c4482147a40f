"""Removes images that a batch pulled, as soon as none of its instances needs them.

Images of one environment share layers, which an engine deletes with the last image that has them. So one image of an
environment stays while other instances of it are still to be done, and the next pull reuses the layers.

Invariant: an image that was on the engine before the batch stays. Which images were there is noted before anything is
pulled, and remembered across sessions until the batch removes the image. If somebody pulls it again after that, it
stays.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from agent.files import write_atomically
from benchmarks.batch.batch import Attempt
from benchmarks.batch.runner import Observer
from benchmarks.data.instances import Instance
from sandboxes import SandboxError
from sandboxes.docker.image_cleanup import here, remove_with_derived

if TYPE_CHECKING:
    from docker import DockerClient


NOTE = "images.json"
"""The file in a batch's folder that records which images were on the engine before the batch."""

log = logging.getLogger(__name__)


class Pruner(Observer):
    """An observer of a batch that removes images.

    `images` has the image of every instance of the batch by instance id, and `left` the environment of every instance
    still to do (`benchmarks.batch.grouping.environment_of`). `out` is the batch's folder.
    """

    def __init__(self, client: DockerClient, out: Path, images: Mapping[str, str], left: Mapping[str, str]) -> None:
        self._client = client
        self._out = out
        self._images = images
        self._environments = left
        self._needed = Counter(image for name, image in images.items() if name in left)
        self._waiting = Counter(left.values())
        self._staying: dict[str, str] = {}
        self._before = _noted(client, out / NOTE, sorted(set(images.values())))
        for image in sorted(set(images.values()) - self._needed.keys()):
            self._prune(image)

    def ended(self, instance: Instance, attempt: Attempt | None) -> None:
        """Remove the instance's image if nothing needs it any more. An instance that will be tried again needs it.
        While an environment has work left, its latest image stays, in place of the one before."""
        image, environment = self._images.get(instance.id), self._environments.get(instance.id, "")
        if image is None or attempt is None or not attempt.finished:
            return
        self._needed[image] -= 1
        self._waiting[environment] -= 1
        if self._needed[image]:
            return
        if (before := self._staying.pop(environment, None)) is not None:
            self._prune(before)
        if self._waiting[environment] > 0:
            self._staying[environment] = image
        else:
            self._prune(image)

    def _prune(self, image: str) -> None:
        if self._before.get(image, True):
            return
        try:
            gone = remove_with_derived(self._client, image, self._out)
        except SandboxError as error:
            log.warning("%s stays until the next session: %s", image, error)
            return
        for name in gone:
            log.info("removed %s", name)
        if image in gone:
            del self._before[image]
            _note(self._out / NOTE, self._before)


def _noted(client: DockerClient, note: Path, images: Collection[str]) -> dict[str, bool]:
    """Whether each image was on the engine when the batch first used it, as noted in the file, which is updated."""
    present: dict[str, bool] = json.loads(note.read_bytes()) if note.exists() else {}
    present |= {image: here(client, image) for image in images if image not in present}
    _note(note, present)
    return present


def _note(note: Path, present: Mapping[str, bool]) -> None:
    write_atomically(note, json.dumps(present, indent=1, sort_keys=True).encode() + b"\n")
