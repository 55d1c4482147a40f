"""The sandbox in which an instance is solved and graded: its image, and the kind that the settings ask for.

Precedence of images: the one of the settings (`--image`), then the instance's own.
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

__all__ = ["Fitted", "fitted", "grading_place", "with_image"]


@dataclass(frozen=True, slots=True)
class Fitted:
    """A source whose instances have the sandbox of the settings."""

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
    """The task with the sandbox of the settings."""
    return replace(task, workspace=_workspace(task.workspace, settings))


def _workspace(given: Workspace, settings: Settings) -> Workspace:
    wanted = settings.sandbox
    return replace(
        given,
        image=wanted.image or given.image,
        environment=(*given.environment, *wanted.environment),
        setup=(*given.setup, *wanted.setup),
        env={**given.env, **wanted.env},
    )


def with_image(settings: Settings, image: str | None) -> Settings:
    """Settings in which an automatic choice becomes a sandbox that can run the image."""
    if image is None or settings.sandbox.image:
        return settings
    return settings.model_copy(update={"sandbox": settings.sandbox.model_copy(update={"image": image})})


def _with_logs(settings: Settings) -> Settings:
    """Settings that do not shorten the log of an evaluation script."""
    given = settings.sandbox.limits
    limits = replace(given, output_bytes=max(given.output_bytes, LOG_BYTES))
    return settings.model_copy(update={"sandbox": settings.sandbox.model_copy(update={"limits": limits})})


@contextmanager
def grading_place(name: str, settings: Settings) -> Iterator[tuple[Source, Provider]]:
    """A source and a sandbox to grade in, closed at the end of the block. The image of the first instance decides which
    sandbox works; logs are kept whole."""
    with TemporaryDirectory(prefix="ramify-grade-", ignore_cleanup_errors=True) as folder:
        source = Fitted(open_source(name, Path(folder) / "clones"), settings)
        first = next((each for each in source.instances() if not each.fault), None)
        image = first.task.workspace.image if first else None
        provider = make_provider(_with_logs(with_image(settings, image)), Path(folder) / "store")
        try:
            yield source, provider
        finally:
            provider.close()
