"""Base states: set-up commands and shared environments."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from sandboxes import Provider, SetupFailed, Workspace
from sandboxes.conformance.given import Given, said, sh


class Preparing(Given):
    """Set-up."""

    def test_set_up_commands_are_part_of_the_base(self, provider: Provider, workspace: Workspace) -> None:
        prepared = Workspace(
            path=workspace.path,
            image=workspace.image,
            env={"MARK": "m"},
            setup=("echo $MARK > /opt/made", "touch here"),
        )
        with provider.at(provider.create(prepared)) as box:
            assert said(box, "cat /opt/made; ls here; echo $MARK; env | grep -ci _proxy || true") == "m\nhere\nm\n0"

    def test_a_set_up_command_that_fails_says_what_it_printed(self, provider: Provider, workspace: Workspace) -> None:
        broken = Workspace(path=workspace.path, image=workspace.image, setup=("echo the reason >&2; exit 3",))
        with pytest.raises(SetupFailed, match="the reason"):
            provider.create(broken)

    def test_an_environment_is_built_once_without_the_workspace(
        self, provider: Provider, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        commands = (f"echo {tmp_path.name} $(date +%N) > /opt/built", "ls -A > /opt/listing")
        shared = Workspace(path=workspace.path, image=workspace.image, environment=commands)
        built = []
        for _ in range(2):
            with provider.at(provider.create(shared)) as box:
                built.append(box.read("/opt/built"))
                assert b"crlf.txt" not in box.read("/opt/listing")
                assert box.read("crlf.txt") == b"one\r\ntwo\r\n"
        assert built[0] == built[1]
        with provider.at(provider.create(workspace)) as box, pytest.raises(FileNotFoundError):
            box.read("/opt/built")

    def test_a_set_up_runs_once_for_the_same_content_and_commands(
        self, reopen: Callable[[], Provider], workspace: Workspace, tmp_path: Path
    ) -> None:
        command = f"date +%s%N > $HOME/built; cat crlf.txt > $HOME/seen; touch made; echo {tmp_path}"
        stamps = []
        for wanted in (
            replace(workspace, setup=(command,)),
            replace(workspace, setup=(command,)),
            replace(workspace, setup=(command, "true")),
            replace(workspace, setup=(command,), env={"OTHER": "1"}),
        ):
            provider = reopen()
            try:
                base = provider.create(wanted)
                with provider.at(base) as box:
                    stamps.append(said(box, "cat $HOME/built"))
                    assert said(box, "cat $HOME/seen; ls made") == "one\r\ntwo\r\nmade"
                    box.write("crlf.txt", b"changed")
                    changed = box.snapshot()
                assert [change.path for change in provider.changes(base, changed)] == ["crlf.txt"]
                assert b"made" not in provider.diff(base, changed)
            finally:
                provider.close()
        assert stamps[0] == stamps[1]
        assert len(set(stamps)) == 3

    def test_a_set_up_runs_again_when_the_content_differs(
        self, provider: Provider, workspace: Workspace, tmp_path: Path
    ) -> None:
        assert workspace.path
        checkout = tmp_path / "checkout"
        shutil.copytree(workspace.path, checkout, symlinks=True)
        wanted = replace(workspace, path=checkout, mount="/workspace", setup=(f"cat crlf.txt > /opt/x; : {tmp_path}",))
        seen = []
        for text in (b"first", b"second", b"first"):
            (checkout / "crlf.txt").write_bytes(text)
            with provider.at(provider.create(wanted)) as box:
                seen.append((box.read("/opt/x"), said(box, "stat -c %Y.%i /opt/x")))
        assert [text for text, _ in seen] == [b"first", b"second", b"first"]
        assert seen[0] == seen[2]

    def test_a_set_up_that_failed_is_tried_again(self, provider: Provider, workspace: Workspace) -> None:
        broken = replace(workspace, setup=("touch /opt/half", "date +%s%N; exit 3"))
        said = []
        for _ in range(2):
            with pytest.raises(SetupFailed, match="exit code 3") as failure:
                provider.create(broken)
            said.append(str(failure.value))
        assert said[0] != said[1]

    def test_the_same_set_up_wanted_twice_at_once_runs_once(
        self, provider: Provider, workspace: Workspace, tmp_path: Path
    ) -> None:
        wanted = replace(workspace, setup=(f"sleep 0.5; date +%s%N > /opt/built; : {tmp_path}",))

        def built(_: int) -> str:
            with provider.at(provider.create(wanted)) as box:
                return said(box, "cat /opt/built")

        with ThreadPoolExecutor(2) as pool:
            assert len(set(pool.map(built, range(2)))) == 1

    def test_a_set_up_may_install_for_any_user_and_an_action_may_not(
        self, provider: Provider, workspace: Workspace
    ) -> None:
        if os.geteuid() and provider.tier.startswith("namespace"):
            pytest.skip("an ordinary user has no other users' ids to give away")
        install = "touch /opt/theirs && chown 33:34 /opt/theirs && chmod 640 /opt/theirs && echo x >> /opt/theirs"
        drop = "import os; os.setgroups([]); os.setgid(34); os.setuid(33); print(open('/opt/theirs').read())"
        closed = "! mount -t tmpfs x /mnt && ! mknod /opt/d c 1 1 && ! chroot / true && ! unshare -m true"
        ready = replace(
            workspace, setup=(install, f'python3 -c "{drop}"', closed, "! (: >> /proc/sys/kernel/core_pattern)")
        )
        base = provider.create(ready)
        with provider.at(base) as box:
            assert said(box, "stat -c %u:%g:%a /opt/theirs; grep CapEff /proc/self/status | cut -f2").split() == [
                "33:34:640",
                "0" * 16,
            ]
            for attempt in ("cat /opt/theirs", "chown 33 src", f'python3 -c "{drop}"'):
                assert sh(box, attempt).exit_code != 0, attempt
            box.write("new", b"")
            after = box.snapshot()
        with provider.at(after) as box:
            assert said(box, "stat -c %u:%g:%a /opt/theirs") == "33:34:640"
