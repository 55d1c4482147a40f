"""What `ramify doctor` advises, for machines of every kind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent.cli.doctor.machine import Machine, look
from agent.cli.doctor.report import sandboxes_of


def said(**facts: object) -> dict[str, tuple[bool, str, str]]:
    """By name: whether it works, what is said, what to change."""
    found = sandboxes_of(Machine(**facts))  # type: ignore[arg-type]
    return {finding.name: (finding.ok, finding.detail, finding.remedy) for finding in found}


def test_a_machine_that_can_do_everything_is_told_what_it_gets_and_to_change_nothing() -> None:
    found = said()
    assert found["sandbox"] == (True, "default sandbox: namespace (docker when --image is given)", "")
    assert {remedy for _, _, remedy in found.values()} == {""}
    assert "commit" not in found


@pytest.mark.parametrize(
    ("facts", "remedy"),
    [
        ({"kernel": (5, 4)}, "Linux 5.11"),
        ({"linux": False, "kernel": (0, 0)}, "virtual machine"),
        ({"settings": {"user.max_user_namespaces": "0"}}, "sysctl -w user.max_user_namespaces=15000"),
        ({"settings": {"kernel.unprivileged_userns_clone": "0"}}, "kernel.unprivileged_userns_clone=1"),
        (
            {"settings": {"kernel.apparmor_restrict_unprivileged_userns": "1"}},
            "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
        ),
        ({"filesystem": "overlay"}, "on ext4, xfs or btrfs"),
        ({"filesystem": "nfs4"}, "XDG_STATE_HOME"),
        ({}, "use Docker"),
    ],
)
def test_what_stands_in_the_way_of_namespaces_is_named(facts: dict[str, object], remedy: str) -> None:
    ok, detail, advice = said(**facts, namespace_problem="it failed; some hint")["namespace"]
    assert (ok, detail) == (False, "it failed")
    assert remedy in advice


def test_a_setting_that_binds_ordinary_users_only_is_no_remedy_for_root() -> None:
    facts = {"settings": {"kernel.apparmor_restrict_unprivileged_userns": "1"}, "namespace_problem": "no"}
    assert "apparmor" in said(**facts)["namespace"][2]
    assert "apparmor" not in said(**facts, root=True)["namespace"][2]


@pytest.mark.parametrize(
    ("limited", "words"),
    [
        ((), "memory and processes limited only"),
        (("pids",), "but memory limited"),
        (("memory",), "but processes limited"),
    ],
)
def test_limits_that_hold_for_each_process_alone_are_said_and_how_to_have_real_ones(
    limited: tuple[str, ...], words: str
) -> None:
    ok, detail, remedy = said(limited=frozenset(limited))["namespace"]
    assert ok
    assert words in detail
    assert "Delegate=yes" in remedy


def test_a_container_without_user_namespaces_is_told_how_to_start_it() -> None:
    found = said(namespace_problem="user namespaces are refused here (unshare: Operation not permitted); use Docker")
    assert "--security-opt seccomp=unconfined" in found["namespace"][2]
    assert "--security-opt" not in said(namespace_problem="no overlay can be mounted here; use Docker")["namespace"][2]


def test_a_user_whom_the_engine_refuses_is_told_of_its_group() -> None:
    found = said(engine_problem="no Docker engine answers at unix:///run/x ([Errno 13] Permission denied); start one")
    assert found["sandbox"][1] == "default sandbox: namespace (none when --image is given)"
    assert "usermod -aG docker" in found["docker"][2]
    absent = said(engine_problem="no Docker engine answers at unix:///run/x (No such file or directory); start one")
    assert "DOCKER_HOST" in absent["docker"][2]


def test_an_engine_that_refuses_namespaces_gives_the_slow_tier_and_says_why() -> None:
    found = said(namespace_problem="no", guest_problem="user namespaces are refused here (EPERM)")
    slow = "commit, which is slow and not exact"
    assert found["sandbox"][:2] == (True, f"default sandbox: {slow} ({slow} when --image is given)")
    assert (found["docker"][0], found["commit"][0]) == (False, True)
    assert "user namespaces are refused here" in found["commit"][1]
    assert "seccomp" in found["docker"][2]


def test_a_missing_image_is_named_with_the_command_that_makes_it() -> None:
    lacking = "there is no image ramify-base:latest; make it with `make image`"
    found = said(namespace_problem="no", image_problem=lacking)
    slow = "commit, which is slow and not exact; not tried"
    assert found["sandbox"][:2] == (False, f"default sandbox: none ({slow} when --image is given)")
    missing = "an engine answers, but ramify-base:latest, in which states are forked, is missing"
    assert found["docker"][:2] == (False, missing)
    assert found["image"] == (False, "there is no image ramify-base:latest", "make it with `make image`")
    assert said()["image"] == (True, "ramify-base:latest", "")
    assert "image" not in said(engine_problem="none answers")


def test_a_machine_without_any_sandbox_is_told_so() -> None:
    found = said(namespace_problem="no", engine_problem="none answers")
    assert found["sandbox"][:2] == (False, "default sandbox: none (none when --image is given)")
    found = said(namespace_problem="no", guest_problem="a", commit_problem="b")
    assert found["sandbox"][0] is False


def test_an_older_kernel_is_told_what_a_newer_one_is_good_for() -> None:
    assert "6.5" in said(kernel=(6, 1))["docker"][1]
    assert "6.5" not in said(kernel=(6, 5))["docker"][1]


def test_the_facts_of_this_machine_are_found(namespaces: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{namespaces}/none.sock")
    found = look(namespaces)
    assert (found.linux, found.root, found.namespace_problem) == (True, os.geteuid() == 0, "")
    assert found.kernel >= (5, 11)
    assert "none.sock" in found.engine_problem
    assert found.filesystem
    assert "user.max_user_namespaces" in found.settings
