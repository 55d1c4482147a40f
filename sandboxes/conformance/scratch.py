"""Forks to measure in."""

from __future__ import annotations

from sandboxes import Provider, Snapshot
from sandboxes.conformance.given import Given, fingerprint, said, sh


class Scratch(Given):
    """Measuring in a state that cannot vouch for itself."""

    def test_scratch_has_the_workspace_of_one_state_and_the_rest_of_another(
        self, provider: Provider, base: Snapshot
    ) -> None:
        tamper = """
            echo 'def add(a, b): return 4' > src/app.py; echo 'def test_add(): pass' > tests/test_app.py
            echo evil > tests/conftest.py; echo evil > /tmp/evil; echo x > /usr/local/bin/evil; echo x > conftest.py
        """
        with provider.at(base) as box:
            original = fingerprint(box)
            assert sh(box, tamper).exit_code == 0
            evil = box.snapshot()
        with provider.scratch(evil, base, ["tests", "conftest.py"]) as box:
            assert said(box, "cat src/app.py") == "def add(a, b): return 4"
            assert b"assert add" in box.read("tests/test_app.py")
            left = said(box, "ls tests; ls conftest.py /tmp/evil /usr/local/bin/evil 2>/dev/null || true")
            assert left == "test_app.py"
        with provider.scratch(evil, base) as box:
            assert box.read("tests/conftest.py") == b"evil\n"
        with provider.at(base) as box:
            assert fingerprint(box) == original

    def test_scratch_puts_back_whatever_stands_in_the_way(self, provider: Provider, base: Snapshot) -> None:
        with provider.at(base) as box:
            assert (
                sh(box, "rm -r tests pkg; ln -s src tests; echo file > pkg; mkdir crlf.txt.d; rm crlf.txt").exit_code
                == 0
            )
            assert sh(box, "mkdir crlf.txt; touch crlf.txt/x; rm link tool.sh").exit_code == 0
            moved = box.snapshot()
        with provider.scratch(
            moved, base, ["tests/test_app.py", "pkg", "crlf.txt", "link", "tool.sh", "nothing"]
        ) as box:
            assert b"assert add" in box.read("tests/test_app.py")
            assert said(box, "cat pkg/deep/two.txt; ./tool.sh; readlink link; ls src") == "2\ntool\nsrc/app.py\napp.py"
            assert box.read("crlf.txt") == b"one\r\ntwo\r\n"
