"""The report of a batch: a line for every instance, totals, and an interval for the rate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import sqrt
from pathlib import Path
from typing import Any

from rich.table import Table

from agent.counting import counted
from agent.errors import RamifyError
from agent.files import is_held
from agent.run.run import Run
from agent.solver.outcome import result_of
from agent.solver.warnings import manipulations
from benchmarks.batch.batch import Attempt, read_attempts, read_identity, read_plan
from benchmarks.grading.verdicts import Verdict, Verdicts, patch_digest, read_verdicts

Z_95 = 1.959963984540054


@dataclass(frozen=True, slots=True)
class Line:
    """The report on one instance."""

    instance_id: str
    mode: str
    state: str
    """The state of the attempt (`benchmarks.batch.batch.State`); `running`, `interrupted` or `waiting` if no attempt
    has ended yet."""
    solved: bool | None
    """Whether the solver claims to have solved the instance, by the tests that it could see; None: it has not ended."""
    resolved: bool | None
    """The grader's verdict on the hidden tests; None: not graded, or grading failed."""
    nodes: int
    measurements: int
    seconds: float
    cost_usd: float | None
    """None: unknown."""
    stop: str
    why: str
    """Why the instance is not resolved, if known."""
    tokens: int = 0
    model_calls: int = 0
    flagged: int = 0
    """The number of states that the solver refused because they tamper with the tests."""


def read_report(out: Path) -> list[Line]:
    """Return the lines of a batch's instances that have ended, by instance id.

    Raises:
        UsageError: the folder is not a batch.
    """
    return report(*read_graded(out))


def read_progress(out: Path, inside: Callable[[Path], bool] = lambda path: True) -> list[Line]:
    """Return the same as `read_report` and the instances that have not ended. Only runs whose journal is `inside` are
    read.

    Raises:
        UsageError: the folder is not a batch.
    """
    lines = read_report(out)
    return sorted([*lines, *_not_ended(out, {line.instance_id for line in lines}, inside)], key=_by_id)


def _not_ended(out: Path, ended: Collection[str], inside: Callable[[Path], bool]) -> Iterator[Line]:
    mode = read_identity(out).mode
    runs = {file.parent.name: file.parent for file in out.glob("*/journal.jsonl") if inside(file)}
    for name in dict.fromkeys([*read_plan(out), *runs]):
        if name in ended:
            continue
        line = line_of_run(runs[name]) if name in runs else None
        if line is None:
            yield Line(name, mode, "waiting", None, None, 0, 0, 0.0, 0.0, "", "")
        else:
            state = "interrupted" if line.state == "done" else line.state  # it ended, and was not recorded
            yield replace(line, mode=mode, state=state, solved=None)


def line_of_run(directory: Path) -> Line | None:
    """The report on a run that belongs to no batch; None if its journal cannot be read."""
    try:
        with Run.read(directory) as run:
            usage, ended = run.usage, run.ended
            going = "running" if is_held(directory / "journal.jsonl") else "interrupted"
            return Line(
                instance_id=directory.name,
                mode="",
                state="done" if ended else going,
                solved=result_of(run, ended).resolved if ended else None,
                resolved=None,
                nodes=len(run.tree),
                measurements=usage.measurements,
                seconds=run.elapsed_s,
                cost_usd=None if usage.unpriced_calls else usage.cost_usd,
                stop=ended.stop.lower() if ended else "",
                why="",
                tokens=usage.tokens,
                model_calls=usage.model_calls,
                flagged=len(manipulations(run)),
            )
    except RamifyError:
        return None


def read_graded(out: Path) -> tuple[list[Attempt], Verdicts]:
    """The attempts of a batch in the order in which they ended, and the verdicts so far.

    Raises:
        UsageError: the folder is not a batch.
    """
    read_identity(out)
    return list(read_attempts(out).values()), read_verdicts(verdicts_file(out / "preds.json"))


def report(attempts: Iterable[Attempt], verdicts: Verdicts) -> list[Line]:
    """A line for each attempt, by instance id."""
    return sorted((_line(a, verdicts.get((a.instance_id, patch_digest(a.patch)))) for a in attempts), key=_by_id)


def verdicts_file(predictions: Path) -> Path:
    """The file with the verdicts on a file of predictions."""
    return predictions.with_suffix(".verdicts.jsonl")


def evidence_folder(predictions: Path) -> Path:
    """The folder with the evidence for those verdicts."""
    return predictions.with_suffix(".evidence")


def _by_id(line: Line) -> str:
    return line.instance_id


def _line(attempt: Attempt, verdict: Verdict | None) -> Line:
    facts: Mapping[str, Any] = attempt.facts
    return Line(
        instance_id=attempt.instance_id,
        mode=attempt.mode,
        state=attempt.state,
        solved=facts.get("resolved", facts.get("status") == "solved"),
        resolved=None if verdict is None else verdict.resolved,
        nodes=facts.get("nodes", 0),
        measurements=facts.get("measurements", 0),
        seconds=facts.get("seconds", 0.0),
        cost_usd=facts.get("cost_usd", 0.0),
        stop=facts.get("stop", ""),
        why=attempt.error or ("" if verdict is None else verdict.reason),
        tokens=attempt.usage.tokens,
        model_calls=attempt.usage.model_calls,
        flagged=facts.get("flagged", 0),
    )


def total(lines: Sequence[Line]) -> dict[str, Any]:
    """Sums over lines of one mode. The rate is a share of `graded`, which leaves out instances whose grading failed."""
    graded = [line for line in lines if line.resolved is not None]
    resolved = sum(line.resolved is True for line in graded)
    low, high = wilson(resolved, len(graded))
    costs = [line.cost_usd for line in lines]
    return {
        "modes": sorted({line.mode for line in lines}),
        "instances": len(lines),
        "states": dict(Counter(line.state for line in lines)),
        "solved": sum(line.solved is True for line in lines),
        "graded": len(graded),
        "resolved": resolved,
        "resolved_rate": resolved / len(graded) if graded else None,
        "resolved_rate_95": [low, high] if graded else None,
        "nodes": sum(line.nodes for line in lines),
        "measurements": sum(line.measurements for line in lines),
        "seconds": sum(line.seconds for line in lines),
        "cost_usd": None if None in costs else sum(c for c in costs if c is not None),
        "tokens": sum(line.tokens for line in lines),
        "flagged": sum(line.flagged for line in lines),
    }


def wilson(successes: float, trials: int) -> tuple[float, float]:
    """The 95 % score interval of a rate (E. B. Wilson, J. Am. Stat. Assoc. 22, 1927); (0, 1) without trials."""
    if not trials:
        return 0.0, 1.0
    rate, z2 = successes / trials, Z_95**2
    middle = (rate + z2 / (2 * trials)) / (1 + z2 / trials)
    half = Z_95 / (1 + z2 / trials) * sqrt(rate * (1 - rate) / trials + z2 / (4 * trials**2))
    return max(0.0, middle - half), min(1.0, middle + half)


def as_json(lines: Sequence[Line]) -> dict[str, Any]:
    """Totals and lines as one object."""
    return {"total": total(lines), "instances": [asdict(line) for line in lines]}


def as_table(lines: Sequence[Line]) -> Table:
    """The lines as a table, with the totals in the footer."""
    sums = total(lines)
    table = Table(box=None, padding=(0, 2, 0, 0), show_footer=True, footer_style="bold")
    table.add_column("instance", footer=counted(sums["instances"], "instance"), no_wrap=True)
    table.add_column("tests", footer="/".join(sums["modes"]))
    table.add_column("state")
    table.add_column("solved", footer=str(sums["solved"]))
    table.add_column("resolved", footer=f"{sums['resolved']} of {sums['graded']}")
    table.add_column("states", footer=str(sums["nodes"]), justify="right")
    table.add_column("test runs", footer=str(sums["measurements"]), justify="right")
    table.add_column("seconds", footer=f"{sums['seconds']:.0f}", justify="right")
    table.add_column("tokens", footer=str(sums["tokens"]), justify="right")
    table.add_column("dollars", footer=_dollars(sums["cost_usd"]), justify="right")
    table.add_column("flagged", footer=str(sums["flagged"]), justify="right")
    table.add_column("stop")
    for line in lines:
        table.add_row(*_cells(line))
    return table


def _cells(line: Line) -> tuple[str, ...]:
    solved, resolved = ({None: "?", True: "yes", False: "no"}[each] for each in (line.solved, line.resolved))
    texts = (line.instance_id, line.mode, line.state, solved, resolved)
    numbers = (str(line.nodes), str(line.measurements), f"{line.seconds:.0f}", str(line.tokens))
    return (*texts, *numbers, _dollars(line.cost_usd), str(line.flagged), line.stop)


def _dollars(cost_usd: float | None) -> str:
    return "?" if cost_usd is None else f"{cost_usd:.2f}"


def headline(lines: Sequence[Line]) -> str:
    """The rate and the mode in one sentence."""
    if not lines:
        return "no instance has been started yet"
    sums = total(lines)
    modes = "/".join(sums["modes"])
    states = ", ".join(f"{count} {state}" for state, count in sums["states"].items())
    if not sums["graded"]:
        return f"{modes} tests: nothing is graded yet (ramify bench grade); {states}"
    low, high = sums["resolved_rate_95"]
    rate = f"{sums['resolved']} of {sums['graded']} resolved = {sums['resolved_rate']:.1%}"
    ungraded = sums["instances"] - sums["graded"]
    return f"{modes} tests: {rate} (95 % interval {low:.1%} to {high:.1%}); {ungraded} not graded; {states}"
