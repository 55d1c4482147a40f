"""Eval scripts for rows without one, made from a test command whose log one of our parsers or a program of the row
reads.

They have the form of SWE-bench's own: test files are reset to HEAD, the test patch is applied, and the command runs
between the markers.
"""

from __future__ import annotations

from base64 import b64encode
from shlex import quote

from benchmarks.data.instances import Reader
from benchmarks.data.sources import changes

_PUT_BACK = 'git checkout -q HEAD -- "$path" 2>/dev/null || rm -rf "$path"'
_LOG, _PROGRAM = "/tmp/ramify.log", "/tmp/ramify-reader.py"  # noqa: S108  # inside the sandbox, where nobody else is
_READER = """

import contextlib, io, json, sys
with contextlib.redirect_stdout(io.StringIO()):
    found = parser(open(sys.argv[1], encoding="utf-8", errors="replace").read())
print(json.dumps(found))
"""


def reader_of(program: str) -> Reader:
    """A reader that runs a row's program on the log of `kept` and prints the result as JSON. The program defines
    `parser`, which takes the text of a log and returns a dict of tests."""
    encoded = b64encode(f"{program}{_READER}".encode()).decode()
    return Reader(f"printf %s {encoded} | base64 -d > {_PROGRAM}\npython3 {_PROGRAM} {_LOG}\n", (_LOG,))


def kept(mount: str, test_patch: bytes, command: str, before: str) -> str:
    """As `eval_script`, but what `command` prints, after `before` has run, goes to a log for a `Reader`.

    Raises:
        ValueError: the test patch is malformed.
    """
    return "\n".join([*_prepared(mount, test_patch, before), f"bash -c {quote(command)} > {_LOG} 2>&1", "exit 0", ""])


def eval_script(mount: str, test_patch: bytes, command: str) -> str:
    """The script that grades the checkout at `mount` by the output of `command`.

    Raises:
        ValueError: the test patch is malformed.
    """
    lines = [
        *_prepared(mount, test_patch, "true"),
        ": '>>>>> Start Test Output'",
        f"bash -c {quote(command)}",
        ": '>>>>> End Test Output'",
    ]
    return "\n".join([*lines, ""])


def _prepared(mount: str, test_patch: bytes, before: str) -> list[str]:
    """The lines of a script before the tests."""
    return [
        "#!/bin/bash",
        "set -uxo pipefail",
        f"cd {quote(mount)}",
        "git config --global --add safe.directory '*'",
        *_patching(test_patch),
        f"bash -c {quote(before)} > /dev/null 2>&1",
    ]


def _patching(test_patch: bytes) -> list[str]:
    if not test_patch:
        return []
    paths = " ".join(map(quote, changes.touched(test_patch)))
    text = quote(test_patch.decode("utf-8", "surrogateescape"))
    failed = "{ echo '>>>>> Patch Apply Failed'; exit 1; }"
    return [
        f"for path in {paths}; do {_PUT_BACK}; done",
        f"printf %s {text} > /tmp/test.patch",
        f"git apply -v --whitespace=nowarn /tmp/test.patch || {failed}",
    ]
