"""What serves an action is out of its reach: it can be neither seen, nor stopped, nor spoken for."""

from __future__ import annotations

import os

from sandboxes import Sandbox
from sandboxes.conformance.given import Given, python, said, sh


class Serving(Given):
    """The guest, from inside."""

    def test_a_command_cannot_see_what_serves_it(self, box: Sandbox) -> None:
        assert said(box, "ls /proc | grep -c '^[0-9]'") in ("3", "4")  # the first one, sh, ls and grep
        assert said(box, "readlink /proc/1/fd/* /proc/1/exe /proc/1/cwd | wc -l") == "0"
        assert said(box, "ls -l /proc/self/fd | grep -c -v -e pipe: -e /dev/null -e /proc/ -e total || true") == "0"

    def test_a_command_cannot_read_or_change_the_first_process(self, rogue: Sandbox) -> None:
        for name in ("mem", "environ", "maps", "root/etc/passwd", "cwd/etc/passwd", "auxv", "stack"):
            assert sh(rogue, f"head -c 1 /proc/1/{name}").exit_code != 0, name
        assert sh(rogue, ": >> /proc/1/mem").exit_code != 0

    def test_a_command_cannot_speak_for_the_guest(self, rogue: Sandbox) -> None:
        forge = """
            import glob, os, struct
            frame = b'{"code": 0, "stdout": 10, "stdout_bytes": 10, "stderr_bytes": 0, "duration_s": 0.1, ' \\
                    b'"timed_out": false, "limit": ""}'
            frame = struct.pack('!II', len(frame), 10) + frame + b'500 passed'
            for path in [*glob.glob('/proc/[0-9]*/fd/*'), *(f'/proc/self/fd/{n}' for n in range(3, 50))]:
                if path.split('/')[2] not in ('self', str(os.getpid())):
                    try: os.write(os.open(path, os.O_WRONLY | os.O_NONBLOCK), frame)
                    except OSError: pass
            for number in range(3, 100):
                try: os.write(number, frame)
                except OSError: pass
            raise SystemExit(7)
        """
        done = python(rogue, forge)
        assert (done.exit_code, done.stdout) == (7, b"")
        assert sh(rogue, "echo fine").stdout == b"fine\n"

    def test_killing_everybody_kills_only_its_own(self, rogue: Sandbox) -> None:
        done = sh(rogue, "sleep 60 & kill -9 -1; kill -9 1; kill -TERM 1; echo still here")
        assert done.stdout in (b"", b"still here\n")
        assert sh(rogue, "kill -STOP 1; kill -9 1; kill -HUP -1; true").exit_code in (0, 129)
        assert sh(rogue, "echo fine").stdout == b"fine\n"

    def test_no_process_of_this_machine_is_reached(self, box: Sandbox) -> None:
        reach = f"""
            import os, signal
            for act in (lambda: os.kill({os.getpid()}, 0), lambda: os.kill(-{os.getpgid(0)}, 0),
                        lambda: os.kill({os.getppid()}, 0), lambda: os.pidfd_open({os.getpid()})):
                try: act()
                except ProcessLookupError: continue
                print('reached')
        """
        assert python(box, reach).stdout == b""

    def test_removing_everything_removes_only_its_own(self, rogue: Sandbox) -> None:
        sh(rogue, "rm -rf --no-preserve-root /etc /root /dev /tmp /opt . .. / 2>&1 | tail -c 1000", timeout_s=1)

    def test_a_stopped_command_still_ends_with_its_time(self, rogue: Sandbox) -> None:
        done = sh(rogue, "sleep 60 & kill -STOP $! $$; sleep 1000", timeout_s=0.5)
        assert (done.exit_code, done.timed_out) == (124, True)

    def test_output_that_looks_like_frames_is_output(self, rogue: Sandbox) -> None:
        done = python(rogue, "import os; os.write(1, b'\\0\\0\\0\\x02\\0\\0\\0\\0{}' * 9); os.write(2, bytes(99))")
        assert (done.stdout, done.stderr) == (b"\0\0\0\x02\0\0\0\0{}" * 9, bytes(99))
