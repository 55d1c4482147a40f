"""The page's facts about a run as a whole: the issue, the result, rounds, tournaments, cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from agent.analysis.report.rounds import round_lines
from agent.analysis.report.summary import answer_lines
from agent.analysis.report.tree import best_of
from agent.budget import Stop
from agent.errors import JournalError
from agent.run.ballots import Ballot
from agent.run.run import Run
from agent.run.tree.node import ROOT
from agent.solver.outcome import result_of
from agent.solver.tournament.note import notes
from agent.untrusted import issue_text, one_line

TITLE_CHARACTERS = 120
REASON_CHARACTERS = 2_000
SETTINGS = ("policy", "search", "value", "workers", "rollouts", "rounds", "seed")
"""The settings that the page shows."""


def overview(run: Run) -> dict[str, Any]:
    """The facts, as plain data; empty values for a run that was killed before it had any."""
    task, settings = (run.started.task, run.started.settings) if run.started else ({}, {})
    statement = issue_text(str(task.get("statement", "")))
    title = next(
        (line for line in map(one_line, statement.splitlines()) if line.strip("# ")), run.journal.directory.name
    )
    return {
        "title": title.strip("# ")[:TITLE_CHARACTERS],
        "run": run.journal.directory.name,
        "statement": statement,
        "goals": list(task.get("goal_tests", ())),
        "settings": {name: _chosen(settings[name]) for name in SETTINGS if name in settings},
        "status": run.ended.status if run.ended else "running",
        "stop": _stop(run),
        "answer": _answer(run),
        "verified": bool(run.ended and run.ended.verified),
        "seconds": run.elapsed_s,
        "usage": asdict(run.usage),
        "base": _base_tests(run),
        "best": [node.id for node in run.tree.path(best_of(run))] if len(run.tree) else [],
        "references": [[a, b] for a, b, kind in run.tree.structure.edges() if kind == "reference"],
        "starts": list(run.starts),
        "rounds": round_lines(run),
        "tournaments": list(_tournaments(run)),
    }


def _chosen(setting: Any) -> Any:
    """A setting as it is shown; an implementation by its name."""
    return setting.get("name") if isinstance(setting, dict) else setting


def _answer(run: Run) -> list[str]:
    """The facts about the run's answer; empty if its patch is lost."""
    if run.ended is None or not len(run.tree):
        return []
    try:
        return answer_lines(result_of(run, run.ended))
    except JournalError:
        return []


def _stop(run: Run) -> str:
    if run.ended is None:
        return "not ended: the search is running, or it was killed"
    reason = f" ({one_line(run.ended.reason)})" if run.ended.reason else ""
    return Stop[run.ended.stop].value + reason


def _base_tests(run: Run) -> dict[str, str]:
    """The test results of the root state, with which the details of other states are compared."""
    return {test: outcome.value for test, outcome in run.tree[ROOT].report.outcomes.items()} if len(run.tree) else {}


def _tournaments(run: Run) -> Iterator[dict[str, Any]]:
    for number, note in notes(run):
        ballots = [_ballot(ballot) for ballot in run.ballots if ballot.round == number]
        yield {**note, "round": number, "ballots": ballots}


def _ballot(ballot: Ballot) -> dict[str, Any]:
    return {**asdict(ballot), "group": list(ballot.group), "reason": ballot.reason[:REASON_CHARACTERS]}
