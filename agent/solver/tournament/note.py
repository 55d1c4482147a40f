"""The note at the root that records a round's ranking, together with the baselines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

from agent.run.rollouts import Candidate
from agent.run.run import Run
from agent.run.tree.node import ROOT
from agent.solver.tournament.baselines import baselines
from agent.solver.tournament.bracket import Match
from agent.solver.tournament.facts import Entrant
from agent.solver.tournament.ranking import Ranking


def key(number: int) -> str:
    """The key of the note with the ranking made after a round."""
    return f"ranking-{number}"


def notes(run: Run) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the rankings that a run has noted (see `note`), each with the number of its round."""
    for number in range(1, run.round + 1):
        if (found := run.note(ROOT, key(number))) is not None:
            yield number, found


def note(ranking: Ranking, candidates: Sequence[Candidate], *, seed: int = 0) -> dict[str, Any]:
    """Return a ranking of these candidates and the picks of the baselines, as plain data for JSON."""
    ballots = [ballot for stage in ranking.bracket for match in stage for ballot in match.ballots]
    return {
        "order": [_entrant(entrant, ranking) for entrant in ranking.order],
        "bracket": [[_match(match) for match in stage] for stage in ranking.bracket],
        "judge": ballots[0].judge if ballots else "",
        "votes": sum(ballot.winner is not None for ballot in ballots),
        "ties": sum(ballot.tie for ballot in ballots),
        "abstained": sum(ballot.winner is None and not ballot.tie for ballot in ballots),
        "for_first_shown": sum(ballot.winner == ballot.group[0] for ballot in ballots),
        "confidence": ranking.confidence(),
        "error": "" if ranking.error is None else str(ranking.error),
        "baselines": baselines(candidates, seed=seed),
    }


def _entrant(entrant: Entrant, ranking: Ranking) -> dict[str, Any]:
    facts = entrant.facts
    return {
        "node": entrant.node,
        "same": list(entrant.duplicates),
        "rollouts": entrant.rollouts,
        "patch": sha256(entrant.candidate.patch).hexdigest(),
        "solved": facts.solved,
        "progress": facts.progress,
        "strength": ranking.strengths.get(entrant.node),
        "checked": ranking.checked.get(entrant.node),
    }


def _match(match: Match) -> dict[str, Any]:
    return {"group": [[node, match.tally[node]] for node in match.group], "winner": match.winner, "by": match.by}
