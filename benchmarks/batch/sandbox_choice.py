"""Chooses the sandbox in which an instance is worked on or graded, from its image and the settings.

Precedence of images: the one in the settings (`--image`), then the instance's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from agent.build.sandboxes import make_provider
from agent.settings import Settings
from agent.task import Task
from benchmarks.data.instances import Instance
from benchmarks.data.sources import Source, open_source
from benchmarks.grading.harness.script import LOG_BYTES
from sandboxes import Provider, Workspace


@dataclass(frozen=True, slots=True)
class Fitted:
    """A source whose instances have the sandbox settings applied."""

    source: Source
    settings: Settings

    def instances(self) -> Iterator[Instance]:
        """As `Source.instances`."""
        for instance in self.source.instances():
            hidden = instance.hidden
            if hidden.workspace is not None:
                hidden = replace(hidden, workspace=_workspace(hidden.workspace, self.settings))
            yield replace(instance, task=fitted(instance.task, self.settings), hidden=hidden)

    def prepare(self, instance: Instance) -> None:
        """As `Source.prepare`."""
        self.source.prepare(instance)


def fitted(task: Task, settings: Settings) -> Task:
    """The task with the sandbox settings applied."""
    return replace(task, workspace=_workspace(task.workspace, settings))


def _workspace(workspace: Workspace, settings: Settings) -> Workspace:
    sandbox = settings.sandbox
    return replace(
        workspace,
        image=sandbox.image or workspace.image,
        environment=(*workspace.environment, *sandbox.environment),
        setup=(*workspace.setup, *sandbox.setup),
        env={**workspace.env, **sandbox.env},
    )


def with_image(settings: Settings, image: str | None) -> Settings:
    """The settings with this image, so that the automatic choice is a sandbox that can run it. An image that is
    already in the settings takes precedence."""
    if image is None or settings.sandbox.image:
        return settings
    return settings.model_copy(update={"sandbox": settings.sandbox.model_copy(update={"image": image})})


def _with_logs(settings: Settings) -> Settings:
    """The settings with an output limit that is large enough for the log of an eval script."""
    limits = settings.sandbox.limits
    limits = replace(limits, output_bytes=max(limits.output_bytes, LOG_BYTES))
    return settings.model_copy(update={"sandbox": settings.sandbox.model_copy(update={"limits": limits})})


@contextmanager
def grading_place(name: str, settings: Settings) -> Iterator[tuple[Source, Provider]]:
    """Yield a source and a provider for grading, for the block. The first usable instance's image determines the kind
    of sandbox; logs are not cut."""
    with TemporaryDirectory(prefix="ramify-grade-", ignore_cleanup_errors=True) as folder:
        source = Fitted(open_source(name, Path(folder) / "clones"), settings)
        first = next((i for i in source.instances() if not i.fault), None)
        image = first.task.workspace.image if first else None
        provider = make_provider(_with_logs(with_image(settings, image)), Path(folder) / "store")
        try:
            yield source, provider
        finally:
            provider.close()
