"""Python's unittest: a program of ours in place of `python -m unittest`, which seals what it says.

It begins before the candidate's code, which then runs in the same process, as with pytest; pytest runs the same tests
and is measured with more care, and is what is meant where nobody says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from agent.measure.adapters import Adapter, Left, Order, inside
from agent.measure.planting import Limits, Plan
from agent.measure.reading import Told
from agent.measure.reading import read as read_sealed

__all__ = ["UNITTEST"]

NAMED = re.compile(r"-m\s+unittest\b")


def order(planned: Plan, command: str, wanted: Sequence[str], limits: Limits) -> Order:
    """`python -m PACKAGE` in place of `python -m unittest`, its orders in its own source."""
    package, folder = planned.plugins[-1], planned.folder
    orders = {"report": planned.report, "nonce": planned.nonce, "folder": folder}
    start = f"import json\n\nfrom .unittests import main\n\nmain(json.loads({json.dumps(orders)!r}))\n"
    files = {"__init__.py": b"", "__main__.py": start.encode()}
    files |= {name: inside(name) for name in ("channel.py", "cutting.py", "failures.py", "unittests.py")}
    own = re.sub(r"(?<!\w)PYTHONPATH=", f"PYTHONPATH={folder}:", NAMED.sub(f"-m {package}", command))
    prologue = f"export PYTHONPATH={folder}${{PYTHONPATH:+:$PYTHONPATH}}"
    return Order(f"{prologue}\n{own}", {f"{folder}/{package}/{name}": text for name, text in files.items()})


def read(left: Left) -> Told:
    """Ids are `file::Class::test`."""
    return read_sealed(left.report, left.nonce)


UNITTEST = Adapter(name="unittest", command="python3 -m unittest", named=NAMED, order=order, read=read)
