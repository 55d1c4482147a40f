"""What differs between two states, and patches of it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from sandboxes import Provider, Snapshot, Workspace
from sandboxes.conformance.given import Given, sh
from sandboxes.conformance.sample import git


class Patches(Given):
    """Comparing states."""

    def test_changes_lists_every_path_that_differs(self, provider: Provider, base: Snapshot) -> None:
        with provider.at(base) as box:
            assert (
                sh(
                    box, "echo 1 > a.log; echo 2 >> crlf.txt; rm -r pkg; chmod 600 tool.sh; mkdir dir; touch dir/f"
                ).exit_code
                == 0
            )
            assert sh(box, "touch latin.txt; echo tmp > /tmp/elsewhere; ln -sfn src link").exit_code == 0
            new = box.snapshot()
        found = [(change.path, change.kind) for change in provider.changes(base, new)]
        assert found == [
            ("a.log", "added"), ("crlf.txt", "modified"), ("dir/f", "added"), ("link", "modified"),
            ("pkg/deep/one.txt", "removed"), ("pkg/deep/two.txt", "removed"), ("tool.sh", "modified"),
        ]  # fmt: skip
        back = {(change.path, change.kind) for change in provider.changes(new, base)}
        assert {("a.log", "removed"), ("pkg/deep/one.txt", "added"), ("crlf.txt", "modified")} <= back
        assert provider.changes(new, new) == ()

    def test_a_patch_shows_as_many_unchanged_lines_as_are_asked_for(self, provider: Provider, base: Snapshot) -> None:
        with provider.at(base) as box:
            box.write("long.txt", b"".join(b"%d\n" % n for n in range(100)))
            old = box.snapshot()
            assert sh(box, "sed -i s/^50$/new/ long.txt").exit_code == 0
            new = box.snapshot()
        for context in (0, 3, 10):
            lines = provider.diff(old, new, context=context).splitlines()
            assert sum(line.startswith(b" ") for line in lines) == 2 * context
        assert provider.diff(old, new) == provider.diff(old, new, context=3)

    def test_a_patch_applied_to_the_checkout_gives_the_state(
        self, provider: Provider, base: Snapshot, workspace: Workspace, tmp_path: Path
    ) -> None:
        edits = {
            "crlf.txt": b"one\r\n2\r\n", "latin.txt": "d\u00e9j\u00e0\n".encode("latin-1"), "no_newline.txt": b"no",
            "data.bin": bytes(reversed(range(256))), "src/app.py": b"def add(a, b):\n    return a + b\n",
            "new/deep.txt": b"new\r\nmixed\n", "important.log": b"kept\n", "nul.bin": b"a\0b", "empty.txt": b"",
            "build/kept.txt": b"changed\n", "noise.log": b"left out\n", "build/made.o": b"left out\n",
            "with space\tand\nnewline": b"odd\n", "odd-\udcff.txt": b"changed\n", "new-\udcfe": b"n",
        }  # fmt: skip
        with provider.at(base) as box:
            for path, content in edits.items():
                box.write(path, content)
            done = sh(box, "chmod 644 tool.sh; chmod 755 pkg/deep/one.txt; rm pkg/deep/two.txt; ln -sf crlf.txt link; "
                           "ln -s nowhere dangling; rm -r tests; echo file > tests; rm build/out.o; "
                           "git init -q nested; echo n > nested/file; chmod 600 .gitignore")  # fmt: skip
            assert done.exit_code == 0
            new = box.snapshot()
        patch = provider.diff(base, new)
        assert provider.diff(base, base) == provider.diff(new, new) == b""
        assert workspace.path
        checkout = shutil.copytree(workspace.path, tmp_path / "checkout", symlinks=True)
        before = git(checkout, "status", "--porcelain")
        assert before == b""
        git(checkout, "apply", "--check", "-p1", stdin=patch)
        git(checkout, "apply", "--index", "-p1", stdin=patch)
        for path in ("noise.log", "build/made.o", "nested", "nested/file"):
            assert not (checkout / path).exists()
            edits.pop(path, None)
        for path, content in edits.items():
            assert (checkout / path).read_bytes() == content, path
        assert (checkout / "link").readlink() == Path("crlf.txt")
        assert (checkout / "dangling").is_symlink()
        assert (checkout / "tests").read_bytes() == b"file\n"
        assert [os.access(checkout / path, os.X_OK) for path in ("tool.sh", "pkg/deep/one.txt")] == [False, True]
        assert not (checkout / "pkg/deep/two.txt").exists()

    def test_names_that_git_would_take_for_patterns_are_names(self, provider: Provider, base: Snapshot) -> None:
        names = (":!x", ":(exclude)a", ":^y", ":/z", "*.py", "-")
        with provider.at(base) as box:
            for name in names:
                box.write(name, b"new\n")
            box.write(":!x.log", b"ignored\n")
            ours = box.snapshot()
        with provider.at(base) as box:
            box.write("no_newline.txt", b"theirs")
            theirs = box.snapshot()
        patch = provider.diff(base, ours)
        assert all(f"+++ b/{name}\n".encode() in patch for name in names)
        assert b".log" not in patch
        merged = provider.merge(base, theirs, ours)
        assert (merged.patch, merged.conflicts) == (patch, ())

    def test_the_checkout_is_never_written(self, provider: Provider, workspace: Workspace) -> None:
        assert workspace.path
        tree = json.dumps(sorted((str(p), p.lstat().st_mtime_ns, p.lstat().st_mode) for p in workspace.path.rglob("*")))
        base = provider.create(workspace)
        with provider.at(base) as box:
            assert sh(box, "rm -rf * .git").exit_code == 0
            provider.diff(base, box.snapshot())
        after = json.dumps(
            sorted((str(p), p.lstat().st_mtime_ns, p.lstat().st_mode) for p in workspace.path.rglob("*"))
        )
        assert after == tree
