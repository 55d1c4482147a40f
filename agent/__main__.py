"""The process: runs the command line, and turns what went wrong into one line and an exit code."""

from __future__ import annotations

import errno
import logging
import os
import sys
import threading
import traceback
from typing import NoReturn

from agent.cli import app
from agent.errors import RamifyError
from agent.models.deadlines import READER
from agent.secrets import RedactingFormatter, redacted
from sandboxes import SandboxError

__all__ = ["main"]

FULL = "no space left on a disk; free some and go on with `ramify resume`, or name another place with --out"


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
        for told in ("sandboxes", "agent.providers"):  # which states a run has, and whether they hold
            logging.getLogger(told).setLevel(logging.WARNING)
    try:
        app(prog_name="ramify")
    except (RamifyError, SandboxError) as error:
        if debug:
            _print_traceback()
        print(f"ramify: {error}", file=sys.stderr)  # noqa: T201  # the terminal is this module's output
        sys.exit(error.exit_code if isinstance(error, RamifyError) else RamifyError.exit_code)
    except Exception as error:  # the border: Python's own exit code 1 would read as "no patch found"
        if _is_full(error):
            print(f"ramify: {FULL}", file=sys.stderr)  # noqa: T201
            sys.exit(RamifyError.exit_code)
        _print_traceback()
        print("ramify: this is a defect in Ramify; please report it with the lines above", file=sys.stderr)  # noqa: T201
        sys.exit(RamifyError.exit_code)


def _print_traceback() -> None:
    sys.stderr.write(redacted(traceback.format_exc()))


def _is_full(error: Exception) -> bool:
    """Whether a disk was full; `shutil` says so in words only."""
    full = (errno.ENOSPC, errno.EDQUOT)
    return isinstance(error, OSError) and (error.errno in full or any(os.strerror(n) in str(error) for n in full))


if __name__ == "__main__":
    main()
