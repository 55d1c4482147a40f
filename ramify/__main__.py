"""The program `ramify`: runs `agent.__main__`, even if another package `agent` comes first on the path."""

from __future__ import annotations

import sys

from ramify.packages import take_precedence

_INTERRUPTED = 130


def main() -> None:
    """Entry point of `ramify`. An interrupt during the imports ends it without a traceback."""
    try:
        take_precedence()
        from agent.__main__ import main as command

        command()
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
