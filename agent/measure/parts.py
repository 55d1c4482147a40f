"""Run the tests of a state in several parts: one pytest process for each, at the same time and in the same fork.

Each process runs the files of one part and reports as if it were alone. Tests that write to the same place can disturb
one another, as with pytest-xdist, which is not needed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote

from agent.measure.reading import Transcript, fetch
from agent.measure.warm.plugins import Limits, install_reporter, run_names, shell
from agent.measure.warm.rewritten import Rewritten
from sandboxes import ExecResult, Sandbox

NOTHING_COLLECTED = 5
"""The exit code of pytest for a part without tests."""
BEGIN = "({command}) >{output} 2>&1 & p{part}=$!"
END = "wait $p{part}; c=$?; [ $c = 0 ] || [ $c = {nothing} ] || code=$c; cat {output}"


def run_in_parts(
    box: Sandbox,
    command: str,
    tests: Sequence[str],
    site_packages: Sequence[str],
    limits: Limits,
    rewritten: Rewritten,
    *,
    archive: bool,
) -> tuple[Transcript, ExecResult]:
    """Run all parts; return their merged transcript and the exit status, 0 if every part succeeded. The transcript is
    empty if the fork was lost. `archive`: add the newly rewritten test files to `rewritten`."""
    processes = [run_names(site_packages) for _ in range(limits.jobs)]
    begin, end = list[str](), list[str]()
    for part, names in enumerate(processes):
        archives = rewritten.write(box, names)
        install_reporter(box, names, tests, limits, part=(part, len(processes)), archives=archives, archive=archive)
        output = f"{names.folder}.output"
        own = " ".join(map(quote, shell(command, names)))
        begin.append(BEGIN.format(command=own, output=output, part=part))
        end.append(END.format(output=output, part=part, nothing=NOTHING_COLLECTED))
    script = "\n".join(["code=0", *begin, *end, "exit $code"])
    result = box.exec(["/bin/sh", "-c", script], timeout_s=limits.kill_s)
    if result.timed_out:
        return Transcript(), result
    for names in processes if archive else ():
        rewritten.fetch(box, names)
    return _together([fetch(box, names.report, names.nonce) for names in processes]), result


def _together(parts: Sequence[Transcript]) -> Transcript:
    """Merge the transcripts of the parts. If one part did not finish, the merged one is unfinished too."""
    whole = Transcript(opened=all(part.opened for part in parts))
    for part in parts:
        whole.started += part.started[-1:] if part.unfinished else []
        whole.tests |= part.tests
        whole.broken |= part.broken
        whole.left_out |= part.left_out
        whole.late += part.late
        whole.doubts += [*part.doubts, *(["a part came to its end more than once"] if len(part.ends) > 1 else [])]
    if all(part.ends for part in parts):
        ends = [part.ends[-1] for part in parts]
        worst = max((end["exit"] for end in ends if end["exit"] != NOTHING_COLLECTED), default=NOTHING_COLLECTED)
        sums = {key: sum(end[key] for end in ends) for key in ("tests", "collected", "left_out")}
        whole.ends.append({"exit": worst, **sums})
    return whole
