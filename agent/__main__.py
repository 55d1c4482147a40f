"""The process: runs the command line, and turns what went wrong into one line and an exit code."""

from __future__ import annotations

import errno
import logging
import os
import sys
import threading
import traceback
from typing import NoReturn

from agent.cli.app import app
from agent.errors import RamifyError
from agent.models.deadlines import READER
from agent.redaction import RedactingFormatter, redacted
from agent.untrusted import escaped
from sandboxes import SandboxError

__all__ = ["main"]

FULL = "no space left on a disk; free some and continue with `ramify resume`, or choose another place with --out"


def main() -> None:
    """Entry point of `ramify`. `RAMIFY_DEBUG=1` shows tracebacks and the log."""
    try:
        _command()
    except SystemExit as end:
        if any(thread.name == READER for thread in threading.enumerate()):
            _leave(end.code)
        raise


def _leave(code: object) -> NoReturn:
    """End the process at once. Somebody still reads an answer that nobody waits for, in the midst of an import perhaps;
    Python would stop that thread for good, and then wait for what it holds."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


def _command() -> None:
    debug = bool(os.environ.get("RAMIFY_DEBUG"))
    log = logging.StreamHandler()
    log.setFormatter(RedactingFormatter("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.DEBUG if debug else logging.ERROR, handlers=[log])
    if not debug:
        # which states a run has, and whether they hold; and what is run in place of its test command
        for told in ("sandboxes", "agent.build.sandboxes", "agent.task"):
            logging.getLogger(told).setLevel(logging.WARNING)
    try:
        app(prog_name="ramify")
    except (RamifyError, SandboxError) as error:
        if debug:
            _print_traceback()
        _say(str(error))
        sys.exit(error.exit_code if isinstance(error, RamifyError) else RamifyError.exit_code)
    except Exception as error:  # the border: Python's own exit code 1 would read as "no patch found"
        if _is_full(error):
            _say(FULL)
            sys.exit(RamifyError.exit_code)
        if isinstance(error, OSError) and error.filename is not None:
            if debug:
                _print_traceback()
            _say(_place(error))
            sys.exit(RamifyError.exit_code)
        _print_traceback()
        _say("this is a defect in Ramify; please report it with the lines above")
        sys.exit(RamifyError.exit_code)


def _say(text: str) -> None:
    """Without orders to the terminal, which the name of a file may hold."""
    lines = "\n".join(map(escaped, text.splitlines()))
    print(f"ramify: {lines}", file=sys.stderr)  # noqa: T201  # the terminal is this module's output


def _print_traceback() -> None:
    sys.stderr.write(redacted(traceback.format_exc()))


def _place(error: OSError) -> str:
    """What this machine could not do, and where."""
    name = error.filename if isinstance(error.filename, str) else os.fsdecode(error.filename)
    return f"{name}: {error.strerror}; see that it is there, of the right kind, and may be read and written"


def _is_full(error: Exception) -> bool:
    """Whether a disk was full; `shutil` says so in words only."""
    full = (errno.ENOSPC, errno.EDQUOT)
    return isinstance(error, OSError) and (error.errno in full or any(os.strerror(n) in str(error) for n in full))


if __name__ == "__main__":
    main()
