"""Files, read and written from outside."""

from __future__ import annotations

import re

import pytest

from sandboxes import Sandbox, SandboxError
from sandboxes.conformance.given import Given, said, sh


class Files(Given):
    """Reading and writing."""

    def test_files_are_read_written_and_removed(self, box: Sandbox) -> None:
        box.write("new/deep/file.bin", b"\0\r\n\xff")
        assert box.read("new/deep/file.bin") == b"\0\r\n\xff"
        assert box.read(f"{box.workdir}/crlf.txt") == b"one\r\ntwo\r\n"
        box.write("/opt/outside.txt", b"x")
        assert said(box, "cat /opt/outside.txt; test -x new/deep/file.bin || echo plain") == "xplain"
        box.remove("new")
        box.remove("link")
        box.remove("never/was")
        assert said(box, "ls -d new link src/app.py 2>/dev/null || true") == "src/app.py"

    def test_a_written_file_keeps_its_mode_unless_told_otherwise(self, box: Sandbox) -> None:
        box.write("tool.sh", b"#!/bin/sh\necho changed\n")
        assert said(box, "./tool.sh") == "changed"
        box.write("tool.sh", b"#!/bin/sh\n", executable=False)
        box.write("fresh.sh", b"#!/bin/sh\necho fresh\n", executable=True)
        assert said(box, "test -x tool.sh || ./fresh.sh") == "fresh"

    def test_a_write_moves_the_time_by_whole_seconds(self, box: Sandbox) -> None:
        times = []
        for text in (b"x = 1\n", b"x = 2\n", b"x = 3\n"):
            box.write("module.py", text)
            times.append(int(said(box, "stat -c %Y module.py")))
        assert times == sorted(set(times))

    def test_an_edit_is_never_hidden_by_stale_byte_code(self, box: Sandbox) -> None:
        for number in range(1, 6):
            box.write("module.py", b"x = %d\n" % number)
            assert said(box, "python3 -c 'import module; print(module.x)'") == str(number)

    def test_files_that_cannot_be_read_or_written_say_why(self, box: Sandbox) -> None:
        with pytest.raises(FileNotFoundError):
            box.read("nowhere")
        with pytest.raises(IsADirectoryError):
            box.read("src")
        with pytest.raises(IsADirectoryError):
            box.write("src", b"")
        with pytest.raises(NotADirectoryError):
            box.write("crlf.txt/below", b"")
        with pytest.raises(OSError, match="larger"):
            box.read("data.bin", max_bytes=10)

    @pytest.mark.parametrize("path", ["nul\0", "half\ud800", "/tmp/\udbff/x"])
    def test_what_no_file_can_be_called_is_refused_and_the_fork_goes_on(self, box: Sandbox, path: str) -> None:
        for act in (box.read, box.remove, lambda path: box.write(path, b"x")):
            with pytest.raises(SandboxError, match=re.escape(repr(path))):
                act(path)
        assert box.read("crlf.txt") == b"one\r\ntwo\r\n"

    def test_what_is_no_regular_file_is_refused_at_once(self, box: Sandbox) -> None:
        assert sh(box, "mkfifo pipe").exit_code == 0
        for path in ("pipe", "/dev/zero"):
            with pytest.raises(OSError, match="regular"):
                box.read(path)
            with pytest.raises(OSError, match="regular"):
                box.write(path, b"")
