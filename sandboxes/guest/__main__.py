"""Starts the guest."""

from __future__ import annotations

import gc
import json
import sys

from .confine import filter_program
from .enter import enter
from .frames import IDLE_S, Refused, failure, reply
from .server import Server


def main() -> None:
    """Serve until stdin ends."""
    try:
        config = json.loads(sys.argv[1])
        IDLE_S[0] = config.get("idle_s", IDLE_S[0])
        filter_program()  # kept for every action: what is done after a fork costs several times as much
        enter(config["network"])
        server = Server(config)
    except (OSError, Refused) as error:
        reply(failure(error))
        sys.exit(1)
    sys.path.clear()  # what is imported from now on, in a fork, would be a file of the fork's
    gc.freeze()
    server.serve()


if __name__ == "__main__":
    main()
