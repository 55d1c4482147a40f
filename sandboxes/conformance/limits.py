"""What a command may use: processes, memory, disk, output, time. It takes all it can get, and only it pays for that."""

from __future__ import annotations

import pytest

from sandboxes import Sandbox, SandboxError, SandboxLost
from sandboxes.conformance.given import LIMITS, Given, python, said, sh

FILLERS = {
    "one file": f"head -c {LIMITS.disk_bytes + (1 << 20)} /dev/zero > one",
    "a file in /tmp": f"head -c {LIMITS.disk_bytes + (1 << 20)} /dev/zero > /tmp/one",
    "a file in shared memory": f"head -c {LIMITS.disk_bytes + (1 << 20)} /dev/zero > /dev/shm/one",
    "many files": "i=0; while :; do i=$((i + 1)); head -c 1000000 /dev/zero > part$i; sleep 0.02; done",
    "a file that is deleted and kept open": """python3 -c "
import os, time
while True:
    file = os.open('gone', os.O_CREAT | os.O_RDWR, 0o600)
    os.unlink('gone')
    [os.write(file, bytes(1 << 20)) for _ in range(4)]
    time.sleep(0.02)
" """,
    "files without content": """python3 -c "
import os
for number in range(100_000):
    if number % 500 == 0:
        os.mkdir(f'd{number}')
    os.close(os.open(f'd{number // 500 * 500}/{number}', os.O_CREAT))
" """,
}

BOMBS = {
    "many processes": f"""
        import os, select
        ready, done = os.pipe()
        for _ in range(30):
            if os.fork() == 0:
                kept = bytearray({LIMITS.memory_bytes >> 4})
                os.write(done, b'x')
                select.select([], [], [])
        filled = 0
        while filled < 30 and os.waitpid(-1, os.WNOHANG) == (0, 0):
            filled += len(os.read(ready, 30)) if select.select([ready], [], [], 0.05)[0] else 0
        raise SystemExit(filled < 30)
    """,
    "a mapping that is shared": f"""
        import mmap
        kept = mmap.mmap(-1, {LIMITS.memory_bytes * 2})
        for place in range(0, len(kept), 4096): kept[place] = 1
    """,
    "shared memory without a name": f"""
        import ctypes
        c = ctypes.CDLL(None)
        c.shmat.restype = ctypes.c_void_p
        ctypes.memset(c.shmat(c.shmget(0, {LIMITS.memory_bytes * 2}, 0o1600), None, 0), 1, {LIMITS.memory_bytes * 2})
    """,
}
"""Programs that end with 0 where they get twice the memory that they may have."""

_DEEP = "import os\nfor _ in range({}):\n os.mkdir('d')\n os.chdir('d')\nopen('leaf', 'w').close()"


class Limited(Given):
    """What any container sees to: processes, memory, time."""

    def test_a_fork_bomb_stops_at_the_limit(self, rogue: Sandbox) -> None:
        bomb = """
            import os, time
            made = 0
            try:
                while made < 1000:
                    if os.fork() == 0: time.sleep(1000); os._exit(0)
                    made += 1
            except OSError: print(made)
        """
        made = int(python(rogue, bomb).stdout or b"1000")
        assert made < LIMITS.pids + 10
        assert sh(rogue, "true").exit_code == 0

    def test_a_memory_bomb_is_killed(self, rogue: Sandbox) -> None:
        done = python(rogue, f"a = [bytearray(1 << 20) for _ in range({LIMITS.memory_bytes >> 19})]; print('alive')")
        assert done.exit_code != 0
        assert b"alive" not in done.stdout
        assert sh(rogue, "true").exit_code == 0


class Bounded(Limited):
    """What a fork leaves for others, too: disk, output, order of death."""

    def test_a_fork_bomb_that_goes_on_ends_with_its_time(self, rogue: Sandbox) -> None:
        done = sh(rogue, "bomb() { bomb | bomb & }; { bomb; } & while :; do :; done", timeout_s=1)
        assert (done.exit_code, done.timed_out) == (124, True)

    def test_memory_that_belongs_to_no_process_is_limited_and_its_makers_die_first(self, rogue: Sandbox) -> None:
        """The kernel picks who dies by size, and these are small: nothing but their place in the order tells."""
        bomb = f"""
            import os
            for number in range(40): os.memfd_create(str(number), 0)
            fill = "dd if=/dev/zero of=/proc/self/fd/$i bs=64k count={LIMITS.memory_bytes >> 20}"
            os.execvp("sh", ["sh", "-c", f"for i in $(seq 5 40); do {{fill}} || exit 9; done; echo alive"])
        """
        done = python(rogue, bomb)
        assert (done.exit_code != 0, done.stdout) == (True, b""), done
        assert sh(rogue, "echo 0 > /proc/self/oom_score_adj").exit_code != 0
        assert said(rogue, "cat /proc/self/oom_score_adj") == "1000"

    @pytest.mark.parametrize("way", BOMBS)
    def test_memory_is_limited_however_it_is_had(self, rogue: Sandbox, way: str) -> None:
        assert python(rogue, BOMBS[way]).exit_code != 0
        assert said(rogue, "echo fine") == "fine"

    @pytest.mark.parametrize("way", FILLERS)
    def test_a_command_that_fills_the_disk_is_stopped(self, rogue: Sandbox, way: str) -> None:
        done = sh(rogue, FILLERS[way], timeout_s=200)
        assert (done.exit_code != 0, done.timed_out, done.limit) == (True, False, "disk"), done

    def test_a_file_with_several_names_takes_its_room_once(self, rogue: Sandbox) -> None:
        fill = f"head -c {LIMITS.disk_bytes * 5 // 8} /dev/zero > one; ln one two; ln one three; sleep 0.5; echo done"
        done = sh(rogue, fill)
        assert (done.stdout, done.limit) == (b"done\n", ""), done

    def test_space_is_not_to_be_had_without_writing(self, rogue: Sandbox) -> None:
        done = sh(rogue, "fallocate -l 1M reserved 2>/dev/null; stat -c %b reserved")
        assert done.stdout == b"0\n"
        assert sh(rogue, "truncate -s 1T sparse").exit_code != 0

    def test_a_state_of_endless_holes_is_refused(self, rogue: Sandbox) -> None:
        done = sh(rogue, f"for i in $(seq 200); do truncate -s {LIMITS.disk_bytes - 1} hole$i; done")
        assert done.exit_code == 0
        with pytest.raises(SandboxError, match="holes"):
            rogue.snapshot()
        with pytest.raises(SandboxLost):
            rogue.read("src/app.py")

    def test_a_state_of_endless_directories_is_refused_and_removed(self, rogue: Sandbox) -> None:
        done = python(rogue, _DEEP.format(1500))
        assert done.exit_code == 0 or done.limit == "disk"  # what cannot be counted, while the disk shrinks
        with pytest.raises(SandboxError, match="deep"):
            rogue.snapshot()

    def test_directories_may_be_nested_a_good_deal(self, box: Sandbox) -> None:
        assert python(box, _DEEP.format(150)).exit_code == 0
        box.snapshot()
        assert said(box, "find d | wc -l") == "151"
        box.remove("d")
        assert sh(box, "test -e d").exit_code == 1

    def test_endless_output_is_drained_and_ends_with_its_time(self, rogue: Sandbox) -> None:
        done = sh(rogue, "yes out & yes err >&2", timeout_s=1)
        assert (done.exit_code, done.timed_out) == (124, True)
        assert len(done.stdout) == len(done.stderr) == LIMITS.output_bytes
        assert min(done.stdout_bytes, done.stderr_bytes) > LIMITS.output_bytes
