"""The program `ramify`: `agent.__main__`, found even where another package `agent` comes first on the path."""

from __future__ import annotations

import sys

from ramify.packages import take_precedence

_INTERRUPTED = 130


def main() -> None:
    """Entry point of `ramify`. An interrupt during the imports ends it quietly."""
    try:
        take_precedence()
        from agent.__main__ import main as command

        command()
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
