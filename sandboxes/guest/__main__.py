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
    """Start the guest and serve requests until stdin is closed."""
    try:
        config = json.loads(sys.argv[1])
        IDLE_S[0] = config.get("idle_s", IDLE_S[0])
        filter_program()  # cached for all actions: after a fork it would take several times as long
        enter(config["network"])
        server = Server(config)
    except (OSError, Refused) as error:
        reply(failure(error))
        sys.exit(1)
    sys.path.clear()  # later imports would load files of the fork
    gc.freeze()
    server.serve()


if __name__ == "__main__":
    main()
