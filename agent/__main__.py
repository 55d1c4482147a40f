"""The `ramify` process: runs the command line, and turns errors into one line and an exit code."""

from __future__ import annotations

import errno
import logging
import os
import sys
import threading
import traceback
from typing import NoReturn

from agent.cli.app import app
from agent.errors import RamifyError, exit_code_of
from agent.redaction import RedactingFormatter, redacted
from agent.untrusted import escaped
from sandboxes import SandboxError

FULL = "no space left on a disk; free some and continue with `ramify resume`, or choose another place with --out"


def main() -> None:
    """Entry point of `ramify`. `RAMIFY_DEBUG=1` shows tracebacks and the log."""
    try:
        _command()
    except SystemExit as end:
        if threading.active_count() > 1 and _reads():
            _leave(end.code)
        raise


def _reads() -> bool:
    """Whether a thread is still reading the answer of a model."""
    from agent.models.deadlines import READER

    return any(thread.name == READER for thread in threading.enumerate())


def _leave(code: object) -> NoReturn:
    """End the process at once although a thread is still reading an answer that is no longer needed, perhaps during an
    import. An ordinary exit would freeze that thread and then wait forever for the locks that it holds."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


def _command() -> None:
    debug = bool(os.environ.get("RAMIFY_DEBUG"))
    log = _Stderr()
    log.setFormatter(RedactingFormatter("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.DEBUG if debug else logging.ERROR, handlers=[log])
    if not debug:
        # warnings that users need: inexact states, a test command that was replaced, a model that is asked again
        for name in ("sandboxes", "agent.build.sandboxes", "agent.task", "agent.models.retry"):
            logging.getLogger(name).setLevel(logging.WARNING)
    try:
        app(prog_name="ramify")
    except (RamifyError, SandboxError) as error:
        if debug:
            _print_traceback()
        _say(str(error))
        sys.exit(exit_code_of(error))
    except Exception as error:  # the outermost level: Python's own exit code 1 would mean "no patch found"
        if _is_full(error):
            _say(FULL)
            sys.exit(RamifyError.exit_code)
        if isinstance(error, OSError) and error.filename is not None:
            if debug:
                _print_traceback()
            _say(_file_error(error))
            sys.exit(RamifyError.exit_code)
        _print_traceback()
        _say("this is a defect in Ramify; please report it with the lines above")
        sys.exit(RamifyError.exit_code)


class _Stderr(logging.Handler):
    """Writes to the current stderr: a live view replaces it by one that prints above the view."""

    def emit(self, record: logging.LogRecord) -> None:
        """As `logging.Handler.emit`."""
        sys.stderr.write(self.format(record) + "\n")


def _say(text: str) -> None:
    """Print a message with control characters escaped, since a file name may contain some."""
    lines = "\n".join(map(escaped, text.splitlines()))
    print(f"ramify: {lines}", file=sys.stderr)  # noqa: T201  # the terminal is this module's output


def _print_traceback() -> None:
    sys.stderr.write(redacted(traceback.format_exc()))


def _file_error(error: OSError) -> str:
    """Describe a file error: the file, the reason, and a remedy."""
    name = error.filename if isinstance(error.filename, str) else os.fsdecode(error.filename)
    return f"{name}: {error.strerror}; check that it exists, is of the right kind, and may be read and written"


def _is_full(error: Exception) -> bool:
    """Whether a disk was full; errors of `shutil` say so only in their text."""
    full = (errno.ENOSPC, errno.EDQUOT)
    return isinstance(error, OSError) and (error.errno in full or any(os.strerror(n) in str(error) for n in full))


if __name__ == "__main__":
    main()
