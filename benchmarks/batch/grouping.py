"""Orders instances so that those whose images share most layers are next to each other.

Images of one environment, which is a repository at a version, have their lower layers in common even if each instance
has an image of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import chain

from benchmarks.data.instances import Instance


def environment_of(instance: Instance, image: str | None) -> str:
    """The environment that the image of an instance is built on; empty if the instance has no image."""
    if image is None:
        return ""
    return f"{instance.repo} {instance.version}" if instance.repo else image


def in_groups(instances: Sequence[Instance], images: Mapping[str, str | None]) -> list[Instance]:
    """Group the instances by environment, and within it by image. Larger groups come first; otherwise the order is
    kept. `images` has the image of every instance by id. If none has an image, the order is unchanged."""
    if not any(images[i.id] for i in instances):
        return list(instances)
    environments = _grouped(instances, lambda i: environment_of(i, images[i.id]))
    return list(chain.from_iterable(chain(*_grouped(group, lambda i: images[i.id])) for group in environments))


def _grouped(instances: Iterable[Instance], key: Callable[[Instance], Hashable]) -> list[list[Instance]]:
    groups: dict[Hashable, list[Instance]] = {}
    for instance in instances:
        groups.setdefault(key(instance), []).append(instance)
    return sorted(groups.values(), key=len, reverse=True)
