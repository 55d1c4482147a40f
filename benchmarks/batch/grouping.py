"""Grouping: in which order instances are done, so that those whose images share most come together.

Images of one environment, which is a repository at a version, have their lower layers in common even where each
instance has an image of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import chain

from benchmarks.data.instances import Instance

__all__ = ["environment_of", "in_groups"]


def environment_of(instance: Instance, image: str | None) -> str:
    """The environment from which the image of an instance was made; empty: the instance has no image."""
    if image is None:
        return ""
    return f"{instance.repo} {instance.version}" if instance.repo else image


def in_groups(instances: Sequence[Instance], images: Mapping[str, str | None]) -> list[Instance]:
    """The instances with those of one environment together, and in it those of one image; biggest groups first, else in
    the order that they had. `images` are those of all of them, by instance id. Where no image is needed the order stays
    as it is."""
    if not any(images[each.id] for each in instances):
        return list(instances)
    environments = _grouped(instances, lambda each: environment_of(each, images[each.id]))
    return list(chain.from_iterable(chain(*_grouped(group, lambda each: images[each.id])) for group in environments))


def _grouped(instances: Iterable[Instance], key: Callable[[Instance], Hashable]) -> list[list[Instance]]:
    groups: dict[Hashable, list[Instance]] = {}
    for each in instances:
        groups.setdefault(key(each), []).append(each)
    return sorted(groups.values(), key=len, reverse=True)
