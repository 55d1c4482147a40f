"""Any state, forked at any later time, in any order and at once, is byte for byte what it was when it was frozen.

What is generated are sequences of real commands. The oracle is what the acting fork saw at its end, looked at from
inside: what an overlay does to an action itself (names of one file that writing parts, above all) is in it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from sandboxes import Forked, Provider, Sandbox, Snapshot, Workspace
from sandboxes.conformance import LIMITS, sample, sh
from sandboxes.conformance.given import fingerprint_of
from sandboxes.docker.provider import docker_provider, probe
from sandboxes.namespace.provider import namespace_provider
from tests.projects import wheel
from tests.tiers import examples

LONG = examples(200, 80)
"""The states of a long path: enough for layers to be merged twice."""
PATHS = (
    *("a", "b", "d", "d/x", "d/e/z", "pkg", "pkg/deep", "pkg/deep/one.txt", "crlf.txt", "link", "build/out.o", "n.log"),
    *("/tmp/t", "/tmp/t/u", "/root/r", "/root/.config/rc", "/dev/shm/s", "/opt/o", "/etc/shells"),
)
GIT = "git -c user.name=n -c user.email=e@x.invalid"
SITE = "$(python3 -c 'import sysconfig; print(sysconfig.get_path(\"purelib\"))')"
WHEEL = "/tmp/planted-1.0-py3-none-any.whl"
SERVER = """import socket, time
a = socket.socket(); a.bind(("127.0.0.1", 8765)); a.listen()
b = socket.socket(socket.AF_UNIX); b.bind("{0}.socket"); time.sleep(60)"""

paths, digits = st.sampled_from(PATHS), st.integers(0, 9)
modes = st.sampled_from(("600", "700", "711", "755", "1777", "2750", "0"))
times = st.sampled_from(("2001-02-03T04:05:06.123456789", "1999-12-31", "2030-01-01"))
COMMANDS = st.one_of(
    st.builds("mkdir -p $(dirname {0}); echo {1} > {0}".format, paths, digits),
    st.builds("echo more >> {}".format, paths),
    st.builds("sed -i s/1/2/ {}".format, paths),
    st.builds("exec 9<>{}".format, paths),
    st.builds("rm -rf {}".format, paths),
    st.builds("rm -rf {0}; mkdir -p {0}".format, paths),
    st.builds("mkdir -p {}/empty/dirs".format, paths),
    st.builds("mv {} {}".format, paths, paths),
    st.builds("cp -a {} {}".format, paths, paths),
    st.builds("ln -sfn {} {}".format, paths, paths),
    st.builds("ln -f {} {}".format, paths, paths),
    st.builds("chmod {1} {0}".format, paths, modes),
    st.builds("touch -h -d {1} {0}".format, paths, times),
    st.builds("touch -d {1} $(dirname {0})".format, paths, times),
    st.builds("mkfifo -m 640 {}.pipe".format, paths),
    st.builds("truncate -s {1}M {0}; echo end >> {0}".format, paths, digits),
    st.builds("head -c {1}000000 /dev/zero | tr '\\0' x > {0}".format, paths, digits),
    st.builds("python3 -c \"import os; os.setxattr('{0}', 'user.n{1}', b'{1}')\"".format, paths, digits),
    st.builds("python3 -c \"import os; [os.removexattr('{0}', n) for n in os.listxattr('{0}')]\"".format, paths),
    st.builds("echo {0} >> tracked{0}; git add -A; {1} commit -q -m {0}".format, digits, st.just(GIT)),
    st.builds("echo {0} >> crlf.txt; {1} stash -q; git checkout -q -b b{0}".format, digits, st.just(GIT)),
    st.builds("echo 'echo {0} > hooked' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit".format, digits),
    st.builds("git clone -q . {0}/nested; git -C {0}/nested checkout -q -b n".format, paths),
    st.builds("git clean -fdqx; git checkout -qf .; git gc -q".format),
    st.builds("(while :; do echo beat >> {0}; sleep 0.01; done) & sleep 0.05".format, paths),
    st.builds("python3 -c '{0}' & sleep 0.2".format, st.builds(SERVER.format, paths)),
    st.just(f"python3 -m pip install -q --no-index --no-deps {WHEEL} || python3 -m zipfile -e {WHEEL} {SITE}"),
    st.just(f"rm -rf {SITE}/planted; touch {SITE}/planted.py"),
)
OPERATIONS = st.one_of(
    *[st.tuples(st.just("sh"), COMMANDS)] * 4, st.tuples(st.just("write"), paths), st.tuples(st.just("remove"), paths)
)
STEPS = st.lists(st.tuples(digits, st.lists(OPERATIONS, min_size=1, max_size=5)), min_size=3, max_size=6)
SLOWLY = settings(
    deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.reuse, Phase.generate]
)


def look(box: Sandbox) -> str:
    """All that a state is, where the actions may have been."""
    places = ("/workspace", "/tmp", "/root", "/dev/shm", "/opt")
    elsewhere = (
        f"cd {SITE}; ls -A | cksum; cat planted/* planted*.py | cksum; stat -c '%n %a %u %.9Y' . planted* / /etc"
    )
    return fingerprint_of(box, *places) + sh(box, f"{elsewhere} /etc/shells; cat /etc/shells").stdout.decode()


def contents(box: Sandbox) -> bytes:
    """Names, types, modes and contents, without times: what a digest has to tell apart, if not what all of it is."""
    listing = "find . /tmp /root /dev/shm /opt -xdev -printf '%p %m %y %l\\n' | sort"
    return sh(box, f"{listing}; find . /tmp /root /opt -xdev -type f | sort | xargs -d '\\n' md5sum").stdout


def act(box: Sandbox, kind: str, what: str) -> None:
    """One operation; that it fails is as good as that it works."""
    try:
        if kind == "sh":
            sh(box, what)
        elif kind == "write":
            box.write(what, b"written\n")
        else:
            box.remove(what)
    except OSError:
        return


def begun(provider: Provider, checkout: Path) -> Snapshot:
    """A state to start from."""
    base = provider.create(Workspace(path=sample(checkout), mount="/workspace"))
    with provider.at(base) as box:
        box.write(WHEEL, wheel())
        return box.snapshot()


def explore(
    provider: Provider, reopen: Callable[[], Provider], base: Snapshot, steps: list, rng: random.Random
) -> None:
    """Grow a tree of states as told, and look at all of them again: in any order, at once, by another provider."""
    with provider.at(base) as box:
        states = [(base, look(box))]
    for parent, operations in steps:
        with provider.at(states[parent % len(states)][0]) as box:
            for kind, what in operations:
                act(box, kind, what)
            seen = look(box)
            states.append((box.snapshot(), seen))

    def again(state: tuple[Snapshot, str]) -> bytes:
        with provider.at(state[0]) as box:
            assert look(box) == state[1]
            return contents(box)

    rng.shuffle(states)
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(again, states))
    told = {(snapshot.digest, content) for (snapshot, _), content in zip(states, found, strict=True)}
    assert len({digest for digest, _ in told}) == len(told)
    with reopen() as later:
        for snapshot, seen in rng.sample(states, 2):
            with later.at(snapshot) as box:
                assert look(box) == seen
    grown = [snapshot for snapshot, _ in states if snapshot != base]
    rng.shuffle(grown)
    provider.discard(*grown[1:])
    for snapshot, seen in states:
        if snapshot in (base, grown[0]):
            with provider.at(snapshot) as box:
                assert look(box) == seen
    provider.discard(grown[0])


@pytest.mark.namespace
class TestNamespace:
    @pytest.fixture(scope="class")
    @classmethod
    def reopen(cls, namespaces: Path) -> Callable[[], Provider]:
        return lambda: namespace_provider(namespaces / "exact", LIMITS)

    @pytest.fixture(scope="class")
    @classmethod
    def provider(cls, reopen: Callable[[], Provider]) -> Iterator[Provider]:
        with reopen() as provider:
            yield provider

    @pytest.fixture(scope="class")
    @classmethod
    def base(cls, provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
        return begun(provider, tmp_path_factory.mktemp("exact") / "checkout")

    @settings(SLOWLY, max_examples=examples(6))
    @given(steps=STEPS, rng=st.randoms(use_true_random=False))
    def test_every_state_stays_what_it_was(self, provider, reopen, base, steps, rng) -> None:
        explore(provider, reopen, base, steps, rng)

    @settings(SLOWLY, max_examples=1)
    @given(operations=st.lists(OPERATIONS, min_size=40, max_size=40), rng=st.randoms(use_true_random=False))
    def test_so_do_all_states_on_one_long_path(self, provider, base, operations, rng) -> None:
        states, last = [], base
        for level in range(1, LONG + 1):
            with provider.at(last) as box:
                act(box, *operations[level // 5]) if level % 5 == 0 and level < LONG else box.write("n", b"%d" % level)
                seen = look(box) if level % (LONG // 5) == 0 else ""
                last = box.snapshot()
            states += [(last, seen)] if seen else []
        rng.shuffle(states)
        for snapshot, seen in states:
            with provider.at(snapshot) as box:
                assert look(box) == seen

    @settings(SLOWLY, max_examples=examples(2))
    @given(steps=STEPS, rng=st.randoms(use_true_random=False))
    def test_the_paranoid_way_finds_no_fault(self, namespaces, tmp_path_factory, steps, rng) -> None:
        def reopen() -> Provider:
            return namespace_provider(namespaces / "paranoid", LIMITS, paranoid=True)

        with reopen() as provider:
            base = begun(provider, tmp_path_factory.mktemp("paranoid") / "checkout")
            explore(provider, reopen, base, steps, rng)
            assert provider.forked == Forked(provider.forked.times, 0, checked=True)


@pytest.mark.docker
class TestDocker:
    @pytest.fixture(scope="class")
    @classmethod
    def reopen(cls, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Provider]:
        if why := probe():
            pytest.skip(why)
        store = tmp_path_factory.mktemp("exact-docker") / "store"
        return lambda: docker_provider(store, LIMITS, paranoid=True)

    @settings(SLOWLY, max_examples=2)
    @given(steps=STEPS, rng=st.randoms(use_true_random=False))
    def test_every_state_stays_what_it_was(self, reopen, tmp_path_factory, steps, rng) -> None:
        with reopen() as provider:
            base = begun(provider, tmp_path_factory.mktemp("exact") / "checkout")
            explore(provider, reopen, base, steps, rng)
            assert provider.forked.mismatches == 0
