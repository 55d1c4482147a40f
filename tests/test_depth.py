"""States stay exact and cheap however deep the tree: their layers are merged now and then, and nobody sees it."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sandboxes import Provider, Sandbox, Snapshot, Workspace
from sandboxes.conformance import LIMITS, sample, sh
from sandboxes.conformance.given import fingerprint_of, said
from sandboxes.namespace.provider import namespace_provider
from tests.tiers import slow_but

pytestmark = pytest.mark.namespace

SPAN = 32
"""Of `sandboxes.guest.flatten`."""


@pytest.fixture
def store(namespaces: Path, tmp_path: Path) -> Path:
    return namespaces / tmp_path.name


@pytest.fixture
def provider(store: Path) -> Iterator[Provider]:
    with namespace_provider(store, LIMITS) as provider:
        yield provider


@pytest.fixture
def base(provider: Provider, tmp_path: Path) -> Snapshot:
    return provider.create(Workspace(path=sample(tmp_path / "checkout"), mount="/workspace"))


def look(box: Sandbox) -> str:
    return fingerprint_of(box, "/workspace", "/tmp", "/dev/shm", "/root")


def look_again(provider: Provider, snapshot: Snapshot) -> str:
    with provider.at(snapshot) as box:
        return look(box)


def names(provider: Provider, snapshot: Snapshot) -> set[frozenset[str]]:
    """Which names are names of one file."""
    with provider.at(snapshot) as box:
        found: dict[str, set[str]] = {}
        for line in said(box, "find . /tmp -xdev -links +1 -type f -printf '%i %p\\n'").splitlines():
            inode, path = line.split()
            found.setdefault(inode, set()).add(path)
    return {frozenset(group) for group in found.values()}


def chain(store: Path, snapshot: Snapshot) -> list[str]:
    state = json.loads((store / "states" / f"{snapshot.id}.json").read_text())
    return max((mount["chain"] for mount in state["mounts"]), key=len)


ACTIONS = (
    "echo {n} > file{m}; mkdir -p d/{n}/e; echo {n} > d/{n}/e/f",
    "rm -rf d; mkdir d; echo {n} > d/new",
    "rm -f file{m}; ln -sf target{n} link{m}",
    "ln -f crlf.txt hard{m}; ln -f latin.txt hard{n}",
    "rm -rf pkg; mkdir -p pkg/deep; echo {n} > pkg/deep/two.txt",
    "rm -rf pkg src; echo {n} > pkg",
    "rm -f pkg; mkdir pkg; touch -d 2001-02-{m}1 pkg",
    "git checkout -q -- pkg src; chmod 7{m}5 src; rm -f /etc/hosts; echo {n} > /tmp/t{m}",
    (
        "truncate -s {n}M holes; echo x >> holes; mkfifo -m 640 pipe{n}; python3 -c 'import socket; "
        'socket.socket(socket.AF_UNIX).bind("/tmp/s{n}")\''
    ),
    "python3 -c \"import os; os.setxattr('.', 'user.n', b'{n}'); os.setxattr('crlf.txt', 'user.m', b'{m}')\"",
    "mv data.bin moved{n}; cp -a moved{n} data.bin; rm -rf hard*; touch -h -d 2002-03-04 link",
    "git -c user.name=n -c user.email=e@x.invalid commit -q -a -m {n}; git stash -q; touch -d 2003-01-0{m} / /tmp /etc",
)


@pytest.mark.slow
def test_merged_layers_show_what_the_layers_showed(provider: Provider, base: Snapshot, store: Path) -> None:
    rng, depth = random.Random(7), 2 * SPAN + 6
    looked_at = {*range(depth - 6, depth), *rng.sample(range(SPAN, depth - 6), 6), *rng.sample(range(SPAN), 3)}
    seen, snapshot = [], base
    for level in range(depth):
        with provider.at(snapshot) as box:
            sh(box, "; ".join(f"({act.format(n=level % 50 + 1, m=level % 3 + 1)})" for act in rng.sample(ACTIONS, 2)))
            before = look(box) if level in looked_at else ""
            snapshot = box.snapshot()
        seen += [(snapshot, before)] if before else []
    assert len(merged(store)) == 2
    assert len(chain(store, snapshot)) <= 2 * SPAN
    for snapshot, before in seen:
        assert look_again(provider, snapshot) == before


def test_names_of_one_file_are_merged_as_such(provider: Provider, base: Snapshot, store: Path) -> None:
    with provider.at(base) as box:
        said(box, "ln crlf.txt a; ln crlf.txt b; ln latin.txt /tmp/c; echo x > gone; ln gone stays; mkdir d; ln a d/e")
        box.snapshot()
        said(box, "rm gone; rm b; ln /tmp/c f")
        linked, seen = box.snapshot(), look(box)
    deep, counts = deeper(provider, linked, SPAN), "stat -c '%n %h' crlf.txt a d/e stays latin.txt f /tmp/c"
    assert len(merged(store)) == 1
    assert names(provider, deep) == names(provider, linked) != set()
    with provider.at(deep) as box:
        assert said(box, counts) == said_at(provider, linked, counts)
    assert look_again(provider, linked) == seen


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user's sandbox knows only one owner")
def test_owners_are_merged_as_well(provider: Provider, tmp_path: Path, store: Path) -> None:
    setup = ("chown 1:2 latin.txt pkg; chmod 666 latin.txt; chmod 777 pkg",)
    owned = provider.create(Workspace(path=sample(tmp_path / "checkout"), mount="/workspace", setup=setup))
    with provider.at(owned) as box:
        said(box, "echo more >> latin.txt; touch pkg/new")
        deep = deeper(provider, box.snapshot(), SPAN)
    assert len(merged(store)) == 1
    assert said_at(provider, deep, "stat -c '%u:%g %a' latin.txt pkg pkg/new") == "1:2 666\n1:2 777\n0:0 644"


def test_children_of_one_state_share_what_is_merged_for_them(provider: Provider, base: Snapshot, store: Path) -> None:
    deep = deeper(provider, base, SPAN)
    assert merged(store) == []
    with ThreadPoolExecutor(3) as pool:
        children = list(pool.map(lambda _: deeper(provider, deep, 2), range(3)))
    assert len(merged(store)) == 1
    assert len({name for child in children for name in chain(store, child) if name.startswith("flat/")}) == 1
    for child in children:
        provider.discard(child)
    assert len(merged(store)) == 1


def test_merged_layers_go_with_the_last_state_that_needs_them(tmp_path: Path, namespaces: Path) -> None:
    store = namespaces / tmp_path.name
    with namespace_provider(store, LIMITS) as provider:
        base = provider.create(Workspace(path=sample(tmp_path / "checkout"), mount="/workspace"))
        states = []
        with provider.at(base) as box:
            for number in range(SPAN + 2):
                box.write("number", b"%d" % number)
                states.append(box.snapshot())
        provider.discard(*states[:-2])
        assert len(merged(store)) == 1
        assert all(said_at(provider, state, "cat number") == str(SPAN + n) for n, state in enumerate(states[-2:]))
        provider.discard(states[-1])
        assert len(merged(store)) == 1
        provider.discard(states[-2])
        assert merged(store) == []


@pytest.mark.parametrize("levels", slow_but([100], [100, 1000]))
def test_many_levels_are_exact(provider: Provider, base: Snapshot, store: Path, levels: int) -> None:
    rng, seen = random.Random(1), []
    with provider.at(base) as box:
        for level in range(1, levels + 1):
            box.write(f"numbers/{level % 7}", b"%d\n" % level)
            if level % (levels // 10) == 0:
                said(
                    box,
                    f"rm -r numbers/3 pkg/deep; mkdir -p pkg/deep; echo {level} > pkg/deep/{level}; ln -f tool.sh t",
                )
                before = look(box)
                seen.append((box.snapshot(), level, before))
            else:
                box.snapshot()
    assert len(chain(store, seen[-1][0])) <= 2 * SPAN + 4
    rng.shuffle(seen)
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(lambda each: look_again(provider, each[0]), seen)) == [before for _, _, before in seen]


def deeper(provider: Provider, snapshot: Snapshot, levels: int) -> Snapshot:
    """The last of some states on a path below one."""
    with provider.at(snapshot) as box:
        for level in range(levels):
            box.write("deep", b"%d" % level)
            last = box.snapshot()
    return last


def said_at(provider: Provider, snapshot: Snapshot, script: str) -> str:
    with provider.at(snapshot) as box:
        return said(box, script)


def merged(store: Path) -> list[str]:
    return [path.name for path in (store / "flat").iterdir()]


def test_three_edits_in_a_large_repository_take_little_room(provider: Provider, tmp_path: Path, store: Path) -> None:
    checkout = tmp_path / "large"
    for number in range(2000):
        folder = checkout / f"one{number % 10}" / f"two{number % 50}" / "three" / "four"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"module{number}.py").write_text(f"x = {number}\n" * 100)
    base = provider.create(Workspace(path=checkout, mount="/workspace"))
    before = taken(store)
    with provider.at(base) as box:
        for number in (1, 2, 3):
            said(box, f"echo y = 1 >> one{number}/two{number}/three/four/module{number}.py")
        box.snapshot()
    assert 0 < taken(store) - before <= 100_000


def taken(store: Path) -> int:
    """Bytes on disk of what states are made of."""
    kept = [path for name in ("layers", "flat", "states", "repositories") for path in (store / name).rglob("*")]
    return sum(path.lstat().st_blocks * 512 for path in kept)
