"""Forks and the states they are frozen into."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from sandboxes import Provider, Snapshot, SnapshotMissing, Workspace
from sandboxes.conformance.given import Given, fingerprint, said, sh


class States(Given):
    """Forking and freezing."""

    def test_a_fork_sees_the_state_and_nothing_of_its_siblings(self, provider: Provider, base: Snapshot) -> None:
        with provider.at(base) as one, provider.at(base) as other:
            one.write("src/app.py", b"one")
            assert sh(other, "rm -r pkg; echo other > /tmp/note").exit_code == 0
            first, second = one.snapshot(), other.snapshot()
            assert said(one, "cat src/app.py pkg/deep/one.txt; ls /tmp/note 2>/dev/null || true") == "one1"
        with provider.at(first) as box:
            assert said(box, "cat src/app.py; ls -d pkg") == "onepkg"
        with provider.at(second) as box:
            assert said(box, "cat /tmp/note; ls -d pkg 2>/dev/null || grep -c return src/app.py") == "other\n1"

    def test_what_is_not_frozen_is_lost(self, provider: Provider, base: Snapshot) -> None:
        with provider.at(base) as box:
            before = fingerprint(box)
            # An environment lent below /tmp is left alone: its deleted files would count towards the disk limit.
            done = sh(box, "rm -rf * .git; find /tmp -xdev -mindepth 1 -delete; touch /root/x /opt/y")
            assert (done.exit_code, done.limit) == (0, "")
        with provider.at(base) as box:
            assert fingerprint(box) == before

    def test_installed_packages_belong_to_the_state(self, provider: Provider, base: Snapshot) -> None:
        place = "$(python3 -c 'import pytest, os; print(os.path.dirname(os.path.dirname(pytest.__file__)))')"
        with provider.at(base) as box:
            assert sh(box, f"echo x = 5 > {place}/planted_module.py").exit_code == 0
            planted = box.snapshot()
        with provider.at(planted) as box:
            assert said(box, "python3 -c 'import planted_module; print(planted_module.x)'") == "5"
        with provider.at(base) as box:
            assert sh(box, "python3 -c 'import planted_module'").exit_code == 1

    def test_a_file_is_renamed_between_the_workspace_and_the_rest(self, provider: Provider, base: Snapshot) -> None:
        """They are one file system, as in an image; many tests move files between them."""
        with provider.at(base) as box:
            moved = sh(
                box,
                "python3 -c \"import os; os.rename('crlf.txt', '/tmp/moved'); os.rename('/tmp/moved', 'back.txt')\"",
            )
            assert (moved.exit_code, moved.stderr) == (0, b"")

    def test_many_forks_run_at_once(self, provider: Provider, base: Snapshot) -> None:
        def work(number: int) -> tuple[str, Snapshot]:
            with provider.at(base) as box:
                box.write("number", str(number).encode())
                return said(box, "sleep 0.1; cat number"), box.snapshot()

        with ThreadPoolExecutor(4) as pool:
            results = list(pool.map(work, range(8)))
        assert [text for text, _ in results] == [str(number) for number in range(8)]
        assert len({snapshot.digest for _, snapshot in results}) == 8

    def test_a_discarded_state_is_missing_and_its_children_stay(self, provider: Provider, base: Snapshot) -> None:
        with provider.at(base) as box:
            box.write("parent", b"p")
            parent = box.snapshot()
            box.write("child", b"c")
            child = box.snapshot()
            provider.discard(parent)
            assert said(box, "cat parent child") == "pc"
        with pytest.raises(SnapshotMissing), provider.at(parent):
            pass
        with provider.at(child) as box:
            assert said(box, "cat parent child") == "pc"

    def test_what_is_not_retained_is_missing(self, provider: Provider, base: Snapshot) -> None:
        with provider.at(base) as box:
            box.write("gone", b"g")
            gone = box.snapshot()
            box.write("kept", b"k")
            kept = box.snapshot()
        provider.retain([base, kept])
        with pytest.raises(SnapshotMissing), provider.at(gone):
            pass
        with provider.at(kept) as box:
            assert said(box, "cat gone kept") == "gk"
        assert [change.path for change in provider.changes(base, kept)] == ["gone", "kept"]

    def test_a_later_provider_finds_the_states(self, workspace: Workspace, reopen: Callable[[], Provider]) -> None:
        earlier, later = reopen(), reopen()
        base = earlier.create(workspace)
        with earlier.at(base) as box:
            box.write("kept", b"k")
            kept = box.snapshot()
        earlier.close()
        try:
            with later.at(kept) as box:
                assert box.read("kept") == b"k"
            assert [change.path for change in later.changes(base, kept)] == ["kept"]
            with pytest.raises(SnapshotMissing), later.at(Snapshot(kept.id[:-8] + "00000000", "")):
                pass
        finally:
            later.close()
