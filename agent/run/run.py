"""Run: the fold of a journal. A live run and a resumed one change state through the same `record`."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, assert_never, cast

from agent.budget import Stop, Usage
from agent.errors import JournalError
from agent.parsing import reason
from agent.run.ballots import Ballot
from agent.run.commands import Steering
from agent.run.events import (
    Added,
    Asked,
    Begun,
    Ended,
    Event,
    Exhausted,
    Extended,
    Failed,
    Merged,
    Noted,
    Refused,
    Remeasured,
    Round,
    Spent,
    Started,
    Steered,
    Summarised,
    Voted,
)
from agent.run.in_progress import InProgress
from agent.run.journal import Journal
from agent.run.message_store import Conversations
from agent.run.rollouts import Briefing, Rollout, Summary, rollouts
from agent.run.schedule import ScheduleEntry
from agent.run.spending import Activity, activity_of
from agent.run.tree.node import ROOT, Act, Attempt, Node, NodeId, Work
from agent.run.tree.part import RoundStart, TreePart
from agent.run.tree.tree import Tree
from agent.run.validation import require_sound
from agent.run.verdict import VERDICT, VerdictNote


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a run had progressed at some moment."""

    usage: Usage = field(default_factory=Usage)
    elapsed_s: float = 0.0
    expansions: int = 0
    """Expansions that had ended, with any result."""
    repeats: int = 0
    """How many of those expansions led to a node that the tree already had."""


class Run:
    """The state of a search: its tree, what it has spent, and how it ended if it has."""

    def __init__(self, journal: Journal, events: Iterable[Event] | None = None) -> None:
        self.journal = journal
        self.tree = Tree()
        self.started: Started | None = None
        self.ended: Ended | None = None
        self.usage = Usage()
        self.spent = defaultdict[Activity, Usage](Usage)
        """The usage by activity."""
        self.asked: list[Asked] = []
        """All calls of models, oldest first."""
        self.refusals: list[Refused] = []
        """All requests that a server rejected, oldest first."""
        self.conversations = Conversations()
        self.begun_count = 0
        """How many expansions have started, according to the journal."""
        self.in_progress = InProgress()
        self.elapsed_s = 0.0
        self.node_seconds: dict[NodeId, float] = {}
        """Seconds from the start of the expansion to the recording of its state, if the journal has both times."""
        self.notes: dict[tuple[NodeId, str], Any] = {}
        self.steering = Steering()
        self.summaries: dict[tuple[NodeId, str], Summary] = {}
        """Summaries by the leaf of the rollout and the author."""
        self.ballots: list[Ballot] = []
        """All votes on candidates, oldest first."""
        self.rounds: list[Round] = []
        """The rounds after the first."""
        self._since = RoundStart()
        self.marks: list[Mark] = []
        """How far the run had progressed when each of those rounds began."""
        self.repeated: list[NodeId] = []
        """The nodes that expansions led to although the tree already had them: one entry per expansion, oldest
        first."""
        self.earlier_proposals: frozenset[str] = frozenset()
        """The proposals of earlier rounds at the root, in canonical form (`agent.run.tree.tree.proposal_of`)."""
        self._lock = threading.RLock()
        try:
            for event in journal.events() if events is None else events:
                self._fold(event)
        except (LookupError, ValueError, ArithmeticError) as error:
            journal.close()
            raise JournalError(f"{journal.directory}: its events do not fit together: {reason(error)}") from error
        except BaseException:
            journal.close()
            raise

    @classmethod
    def open(cls, directory: Path) -> Run:
        """Open a run directory; create it if it does not exist.

        Raises:
            JournalError: another process holds it, or it cannot be read, or its events do not fit together.
        """
        return cls(Journal(directory))

    @classmethod
    def read(cls, directory: Path, events: Iterable[Event] | None = None) -> Run:
        """Read a run as recorded so far, without changing it; another process may hold it. `events`: the events of its
        journal, if they have been read already.

        Raises:
            JournalError: it cannot be read, or its events do not fit together.
        """
        return cls(Journal(directory, read_only=True), events)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Let another process open the run."""
        self.journal.close()

    def record(self, event: Event) -> None:
        """Change the run, on disk first and then in memory. There is no other way to change it."""
        with self._lock:
            self.journal.append(event)
            self._fold(event)

    def note(self, node: NodeId, key: str) -> Any | None:
        """A recorded fact about a node; None if nothing is recorded under the key."""
        return self.notes.get((node, key))

    def verdict(self, node: NodeId) -> VerdictNote | None:
        """The verification of a state's patch; None if it was not verified."""
        return cast("VerdictNote | None", self.note(node, VERDICT))

    def verdicts(self) -> list[VerdictNote]:
        """All verifications, by node."""
        return [note for (_, key), note in sorted(self.notes.items()) if key == VERDICT]

    @property
    def mark(self) -> Mark:
        """How far the run has progressed."""
        return Mark(self.usage, self.elapsed_s, self.tree.ended_expansions, len(self.repeated))

    @property
    def round(self) -> int:
        """The number of the current round, from 1."""
        return 1 + len(self.rounds)

    @property
    def briefing(self) -> Briefing | None:
        """The briefing that the current round started with."""
        return self.rounds[-1].briefing if self.rounds else None

    @property
    def round_tree(self) -> TreePart | None:
        """The part of the tree that a search sees in a round after the first: the root, as if nothing had been tried
        there, and the nodes that the round has added. None in the first round, in which the search sees the whole
        tree."""
        since = self._since
        return self.tree.view(since, lambda whole: TreePart(whole, ROOT, since)) if self.rounds else None

    def attempts(self, node: NodeId) -> tuple[Attempt, ...]:
        """Return the results of the expansions of a node, oldest first; for the root, only those of the current
        round."""
        return self.tree.attempts(node)[self._since.attempts if node == ROOT else 0 :]

    def begun_in_earlier_rounds(self, node: NodeId, policy_id: str) -> int:
        """How many expansions of the root this policy started in earlier rounds; 0 for other nodes."""
        if node != ROOT:
            return 0
        ended = sum(each.policy_id == policy_id for each in self.tree.attempts(node)[: self._since.attempts])
        return max(ended, self.in_progress.first_index((node, "expand", None, policy_id)))

    def next_index(self, work: Work) -> int:
        """The index for a new expansion of this kind. No index is used twice."""
        return max(self.tree.begun(*work), self.in_progress.next_index(work))

    def children(self, node: NodeId) -> list[Node]:
        """Return the nodes whose edit was made in a state, oldest first; for the root, only those of the current
        round."""
        return [child for child in self.tree.children(node) if node != ROOT or child.id >= self._since.nodes]

    def solved(self, node: NodeId) -> bool:
        """Whether the evaluation says that the state solves the task, and no verification refuted it."""
        verdict = self.verdict(node)
        return self.tree[node].evaluation.solved and (verdict is None or bool(verdict["solved"]))

    @property
    def finished(self) -> bool:
        """Whether nothing is left to do: the run is solved or was submitted and, in rounds, all rollouts are finished
        and compared."""
        if self.ended is None:
            return False
        if self.ended.stop == Stop.SUBMITTED.name:
            return True
        if self.ended.status != "solved":
            return False
        settings = self.started.settings if self.started else {}
        in_rounds = settings.get("rollouts", 1) > 1 or settings.get("rounds", 1) > 1
        return not in_rounds or self.ended.stop == Stop.SOLVED.name

    @property
    def starts(self) -> tuple[NodeId, ...]:
        """The id of the first node of each round, in order; the last one may not have been made yet."""
        return 1, *(later.first for later in self.rounds)

    def rollouts(self) -> list[Rollout]:
        """All rollouts, in the order of their leaves."""
        return rollouts(self.tree, self.starts)

    def _fold(self, event: Event) -> None:
        require_sound(event, len(self.tree))
        match event:
            case Started():
                self.started = event
            case Spent() | Asked() | Refused():
                self._fold_use(event)
            case Begun():
                self.begun_count = event.number + 1
                self.in_progress.begin(event)
            case Added() | Merged() | Remeasured() | Failed():
                self._fold_outcome(event)
            case Extended():
                self.tree.extend(event.report)
            case Exhausted():
                self._fold_end(event.flight)
                if event.policy_id:
                    self.tree.exhaust_for(event.node, event.policy_id)
                else:
                    self.tree.close(event.node)
            case Noted():
                self.notes[event.node, event.key] = event.data
            case Steered():
                self.steering.give(event.order, self.tree, event.inbox_bytes)
            case Summarised() | Voted() | Round():
                self._fold_round(event)
            case Ended():
                self.ended = event
                self.in_progress.end_session()
                self.elapsed_s = event.elapsed_s
            case _:
                assert_never(event)

    def _fold_use(self, event: Spent | Asked | Refused) -> None:
        match event:
            case Spent():
                self.usage += event.usage
                self.spent[activity_of(event)] += event.usage
            case Asked():
                self.usage += event.answer.usage
                self.spent[activity_of(event)] += event.answer.usage
                self.asked.append(event)
                self.conversations.learn(event.conversation)
                self.conversations.learn_value(event.answer.message)
            case Refused():
                self.refusals.append(event)
                self.conversations.learn(event.conversation)

    def _fold_outcome(self, event: Added | Merged | Remeasured | Failed) -> None:
        match event:
            case Added():
                self.tree.add(event.node)
                began_s = self.in_progress.began_s(event.flight)
                if began_s is not None:
                    self.node_seconds[event.node.id] = event.elapsed_s - began_s
            case Merged():
                self.repeated.append(event.node)
                self.tree.merge(event.parent, event.node, event.label, *_work(event), event.proposal)
            case Remeasured():
                self.tree.measure_again(event.node, event.evaluation)
            case Failed():
                self.tree.fail(event.node, event.reason, *_work(event))
        self._fold_end(event.flight)
        self.steering.use(event.choice)
        self.elapsed_s = event.elapsed_s

    def _fold_end(self, flight: ScheduleEntry | None) -> None:
        self.in_progress.end(flight)
        self.begun_count = flight.begun if flight else self.begun_count

    def _fold_round(self, event: Summarised | Voted | Round) -> None:
        match event:
            case Summarised():
                self.summaries[event.summary.leaf, event.summary.author] = event.summary
            case Voted():
                self.ballots.append(event.ballot)
            case Round():
                self.rounds.append(event)
                self.in_progress.begin_round()
                self.tree.forget(self._since)
                self._since = RoundStart.now(self.tree, ROOT)
                self.marks.append(self.mark)
                self.earlier_proposals = self.tree.proposals.proposals_from(ROOT)
                for order in event.repairs:
                    self.steering.give(order, self.tree, 0)


def _work(event: Merged | Failed) -> tuple[Act, NodeId | None, str]:
    """The expansion that ended, as the tree counts it."""
    choice = event.choice
    return (choice.act, choice.other, event.policy_id) if choice else ("expand", None, event.policy_id)
