"""Measures what a second round of rollouts changes on real tasks, with `mutate` and with a simulated developer.

    python -m benchmarks.perf.second_round SOURCE --out DIR [--policies mutate,developer] [--measurements 60]

Each policy searches every task in two rounds, by `ramify bench run`, with the failing tests known. The answer of the
first round and the final answer are graded by the hidden tests, by `ramify bench grade`. "Kept right" is the share of
tasks that the final answer resolves among those that the first answer resolved, "fixed wrong" among the others. The
developer (`benchmarks.perf.developer`) replaces a model: its summaries, votes and attempts are processed like a
model's, and what it finds is random. It counts test runs, so other load on the machine changes nothing. A batch in DIR
is resumed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from benchmarks.data.sources import open_source
from benchmarks.perf.answering import serving
from benchmarks.perf.developer import Developer
from benchmarks.perf.table import table

HEADINGS = (
    "policy",
    "tasks with a second round",
    "kept right (hidden tests)",
    "fixed wrong (hidden tests)",
    "kept right, by round (visible)",
    "fixed wrong, by round (visible)",
    "test runs of the first rounds, of the second",
)
POLICIES = ("mutate", "developer")


def main() -> None:
    """Fill the missing batches and print the table."""
    given = _given()
    print(table(HEADINGS, [cells(policy, _refinement(given, policy)) for policy in given.policies.split(",")]))


def cells(policy: str, refinement: Mapping[str, Any] | None) -> tuple[str, ...]:
    """A line of the table, from the refinement in `ramify bench report --json`; None: no task had a second round."""
    if refinement is None:
        return (f"`{policy}`", "0", *[""] * (len(HEADINGS) - 2))
    hidden, visible = (_rates(refinement[by]) for by in ("hidden", "visible"))
    spent = ", ".join(str(cost["measurements"]) for cost in refinement["rounds"])
    return (f"`{policy}`", str(refinement["rounds"][1]["instances"]), *hidden, *visible, spent)


def _rates(counts: Mapping[str, int]) -> tuple[str, str]:
    kept, lost, fixed, missed = (counts[name] for name in ("kept", "lost", "fixed", "missed"))
    return f"{kept} of {kept + lost}", f"{fixed} of {fixed + missed}"


def _refinement(given: Namespace, policy: str) -> Mapping[str, Any] | None:
    out = Path(given.out) / policy
    instances = open_source(given.source, out / "source").instances()
    developer = Developer(instances, given.finds, given.takes, given.right)
    with serving(developer) if policy == "developer" else nullcontext("") as url:
        ramify("run", given.source, *_choice(given, url), "--out", str(out))
    graders = ["--workers", str(given.workers), "--sandbox", given.sandbox]
    ramify("grade", str(out), "--source", given.source, "--candidates", *graders)
    refinement: Mapping[str, Any] | None = json.loads(ramify("report", str(out), "--json")).get("refinement")
    return refinement


def _choice(given: Namespace, url: str) -> Iterator[str]:
    settings = {"rollouts": given.rollouts, "rounds": 2, "refine.gate": str(given.gate).lower()}
    if url:
        settings |= {"model.base_url": url, "model.stream": "false", "search.name": "best_of_n"}
    settings["budget.max_measurements"] = given.measurements
    yield from ("--reveal-tests", "--model", "openai/developer" if url else "mutate", "--sandbox", given.sandbox)
    yield from ("--workers", str(given.workers), "--filter", given.filter, "--seed", str(given.seed))
    for name, value in settings.items():
        yield from ("-c", f"{name}={value}")


def ramify(*arguments: str) -> str:
    """Run a command of `ramify bench` and return its output. A failure ends the program."""
    command: Sequence[str] = [sys.executable, "-m", "agent", "bench", *arguments]
    keys = {"OPENAI_API_KEY": os.environ.get("OPENAI_API_KEY", "none")}
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True, env={**os.environ, **keys})
    if done.returncode:
        sys.exit(f"`ramify bench {arguments[0]}` ended with exit code {done.returncode}; the same command resumes it")
    return done.stdout


def _given() -> Namespace:
    parser = ArgumentParser(prog="python -m benchmarks.perf.second_round", description="What a second round changes.")
    parser.add_argument("source", help="instances; see `ramify bench run --help`")
    parser.add_argument("--out", required=True, metavar="DIR", help="where the batches are kept")
    parser.add_argument("--policies", default=",".join(POLICIES), metavar="NAMES")
    parser.add_argument("--rollouts", type=int, default=4, metavar="N", help="rollouts per round")
    parser.add_argument("--gate", action="store_true", help="no second round for tasks that the first shows to be easy")
    parser.add_argument("--measurements", type=int, default=60, metavar="N", help="test runs per task")
    parser.add_argument("--finds", type=float, default=0.3, metavar="P", help="probability of finding a part")
    parser.add_argument("--takes", type=float, default=0.5, metavar="P", help="of adopting one from one summary")
    parser.add_argument("--right", type=float, default=0.8, metavar="P", help="of a right vote")
    parser.add_argument("--filter", default="", metavar="REGEX", help="only instances whose id it matches")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--sandbox", default="namespace")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="tasks at the same time")
    return parser.parse_args()


if __name__ == "__main__":
    main()
