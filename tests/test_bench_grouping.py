"""Instances whose images share most are done together, the biggest groups first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.batch.grouping import environment_of, in_groups
from benchmarks.data.instances import Instance
from tests.instances import bare_instance


def instance(name: str, repo: str = "", version: str = "") -> Instance:
    return replace(bare_instance(name), repo=repo, version=version)


def order(instances: Iterable[Instance], images: dict[str, str | None]) -> str:
    return "".join(each.id for each in in_groups(list(instances), images))


def test_instances_of_one_image_follow_one_another_in_the_order_that_they_had() -> None:
    images = {"a": "x", "b": "y", "c": "x", "d": "y", "e": "y", "f": None}
    assert order(map(instance, "abcdef"), images) == "bdeacf"


def test_images_of_one_repository_and_version_share_layers_and_come_together() -> None:
    given = [
        instance("a", "d/d", "3.0"),
        instance("b", "s/s"),
        instance("c", "d/d", "4.0"),
        instance("d", "d/d", "3.0"),
    ]
    assert order(given, {name: name for name in "abcd"}) == "adbc"


def test_without_images_the_order_stays() -> None:
    given = [instance("a", "d/d"), instance("b", "s/s"), instance("c", "d/d")]
    assert order(given, dict.fromkeys("abc")) == "abc"


_CASES = st.lists(st.tuples(st.sampled_from("pq"), st.sampled_from("12"), st.sampled_from("xyz")), max_size=30)


@given(_CASES)
def test_nothing_is_lost_and_no_environment_or_image_in_it_is_come_back_to(cases: list[tuple[str, str, str]]) -> None:
    given = [instance(str(number), repo, version) for number, (repo, version, _) in enumerate(cases)]
    images = {str(number): f"{repo}{version}{image}" for number, (repo, version, image) in enumerate(cases)}
    done = in_groups(given, images)
    assert sorted(each.id for each in done) == sorted(each.id for each in given)
    for key in (lambda each: environment_of(each, images[each.id]), lambda each: images[each.id]):
        runs = [(name, len(list(them))) for name, them in groupby(done, key)]
        assert len({name for name, _ in runs}) == len(runs)
    sizes = [len(list(them)) for _, them in groupby(done, lambda each: environment_of(each, images[each.id]))]
    assert sizes == sorted(sizes, reverse=True)
