"""Several rollouts in several rounds, in a real sandbox with a scripted policy."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from agent import Order, steer
from agent.actions import Edit, Submit, View, Write
from agent.analysis.report.bracket import brackets
from agent.analysis.report.tree import facts
from agent.budget import Budget, Stop
from agent.engine.components import Components, RoundComponents
from agent.errors import UsageError
from agent.evaluate.value.judge import Judge
from agent.evaluate.value.tests import PassingTests
from agent.policy import Proposal
from agent.policy.chat.policy import ChatPolicy
from agent.run.events import Added, Ended, Merged, Noted, Round, Spent, Summarised, Voted
from agent.run.journal import read_events
from agent.run.run import Run
from agent.search.best_of_n import BestOfN
from agent.settings import RefineSettings, TournamentSettings
from agent.solver.solve import solve
from agent.solver.tournament.judges import ModelJudge
from agent.solver.tournament.note import notes
from sandboxes import SnapshotMissing
from tests.candidates import FixedJudge
from tests.policies import Scripted
from tests.projects import BUG, FIX, SOURCE, quick_means, quick_task
from tests.scripted import ScriptedModel, answer

pytestmark = pytest.mark.namespace

OTHERS = [f"    if len(numbers) < -{n}:\n" for n in range(1, 9)]
SECOND = "    if len(numbers) < 1:\n"
WORSE = "    if len(numbers) < 4:\n"


class Attempts:
    """The n-th rollout of the run submits the n-th text in place of the bug, and remembers what it was shown."""

    def __init__(self, *texts, per_wave=2, declares=()):
        self.texts, self.per_wave, self.positions, self.before = texts, per_wave, [], []
        self.submit = Submit("", tuple(declares))
        self.policy = Scripted(self.answer)

    def answer(self, position):
        self.positions.append(position)
        self.before.append((position.node.state_hash, position.box.read("means.py").decode()))
        wave = position.briefing.round - 1 if position.briefing else 0
        text = self.texts[wave * self.per_wave + position.index]
        edit = Edit("means.py", BUG, text) if isinstance(text, str) else text
        return Proposal((edit, self.submit), label=f"attempt {position.index}")


@pytest.fixture(scope="module")
def repo(tmp_path_factory):
    return quick_means(tmp_path_factory.mktemp("project") / "repo")


@pytest.fixture(scope="module")
def half(tmp_path_factory):
    """The project with a test that nothing mends, so that an attempt can be better than the base and solve nothing."""
    repo = quick_means(tmp_path_factory.mktemp("half") / "repo")
    (repo / "test_more.py").write_text("def test_never():\n    assert False\n")
    return repo


@pytest.fixture(scope="module")
def solve_at(provider):
    """Solves a project in rounds; a second call with the same directory resumes the run."""

    def solve_at(directory, of, attempts, *, rollouts=2, rounds=2, on_event=None, waves=None, value=None, **limits):
        with Run.open(directory) as run:
            search, budget, waves = (
                BestOfN(n=rollouts),
                Budget(**limits),
                RoundComponents(rollouts, rounds, **waves or {}),
            )
            parts = Components(provider, attempts.policy, search, value or PassingTests(), budget, rounds=waves)
            settings = {"rollouts": rollouts, "rounds": rounds}
            return solve(quick_task(of), parts, run, settings=settings, on_event=on_event), run

    return solve_at


@pytest.fixture
def go(solve_at, repo, tmp_path):
    return lambda attempts, of=repo, **options: solve_at(tmp_path / "run", of, attempts, **options)


TEXTS = (OTHERS[0], FIX, OTHERS[1], OTHERS[2])


@pytest.fixture(scope="module")
def whole(solve_at, half, tmp_path_factory):
    """Two rounds that nobody interrupts, the better one first: the directory, the result and the run."""
    directory = tmp_path_factory.mktemp("whole") / "run"
    return directory, *solve_at(directory, half, Attempts(*TEXTS))


def story(directory):
    """What a run recorded, but for clocks, and for how each session ended."""
    return [
        (event.kind, getattr(event, "node", None) if not isinstance(event, Added) else event.node.state_hash)
        for event in read_events(directory / "journal.jsonl")
        if not isinstance(event, Ended) and not (isinstance(event, Noted) and event.key == "forked")
    ]


SAME_FIX = (FIX, f"    # an empty list has no mean\n{FIX}", f"{FIX.rstrip()}  # nothing to add up\n", OTHERS[0])
"""Three ways to write one program, and another program."""


def test_a_round_ends_when_its_majority_makes_the_same_change_but_for_comments(go):
    attempts = Attempts(*SAME_FIX)
    result, _ = go(attempts, rollouts=4, rounds=1)
    assert (len(attempts.positions), result.status, result.rollouts, result.stop) == (3, "solved", 3, Stop.SOLVED)


def test_a_round_without_a_known_goal_ends_when_its_majority_submits_the_same_change(go, tmp_path):
    quiet = quick_means(tmp_path / "quiet")
    (quiet / "test_means.py").write_text("from means import mean\n\n\ndef test_mean():\n    assert mean([2]) == 2\n")
    attempts = Attempts(*SAME_FIX)
    result, _ = go(attempts, of=quiet, rollouts=4, rounds=1)
    assert (len(attempts.positions), result.status, result.rollouts) == (3, "submitted", 3)


DECLARATION = ("test_means.py::test_mean: nothing has a mean of 0.0 now",)


@pytest.mark.parametrize(("declared", "rollouts", "rounds"), [(DECLARATION, 3, 1), ((), 4, 2)])
def test_an_approved_patch_that_declares_what_it_breaks_ends_its_round_and_the_search(
    go, tmp_path, declared, rollouts, rounds
):
    quiet = quick_means(tmp_path / "quiet")
    (quiet / "test_means.py").write_text(
        "import pytest\nfrom means import mean\n\n\ndef test_mean():\n"
        "    with pytest.raises(ZeroDivisionError):\n        mean([])\n"
    )
    opinion = '{"value": 0.9, "verdict": "accept", "assessment": "It is right."}'
    attempts = Attempts(
        *[FIX, SECOND, "    if not numbers:\n", f"{FIX}        pass\n"] * 2, per_wave=4, declares=declared
    )
    judge = ScriptedModel([answer(opinion)] * 8, "judge")
    result, run = go(attempts, of=quiet, rollouts=4, rounds=2, value=Judge(judge))
    heard = [str(messages) for messages in judge.heard]
    assert heard
    assert ["the issue contradicts these of the tests" in each for each in heard] == [bool(declared)] * len(heard)
    assert [len(attempts.positions) >= rollouts, run.round] == [True, rounds]
    assert (len(attempts.positions) == rollouts) is (rounds == 1)
    assert result.broken == ("test_means.py::test_mean",)


@pytest.mark.parametrize(("verdict", "rollouts"), [("accept", 3), ("refine", 4)])
def test_a_round_ends_when_a_judge_accepts_its_majority(go, tmp_path, verdict, rollouts):
    quiet = quick_means(tmp_path / "quiet")
    (quiet / "test_means.py").write_text("from means import mean\n\n\ndef test_mean():\n    assert mean([2]) == 2\n")
    opinion = f'{{"value": 0.9, "verdict": "{verdict}", "assessment": "It is right."}}'
    judge = ScriptedModel([answer(opinion)] * 4, "judge")
    attempts = Attempts(FIX, SECOND, "    if not numbers:\n", OTHERS[0])
    result, _ = go(attempts, of=quiet, rollouts=4, rounds=1, value=Judge(judge))
    assert (len(attempts.positions), result.status) == (rollouts, "submitted")


@pytest.mark.parametrize(
    ("texts", "options"),
    [
        (SAME_FIX, {"waves": {"tournament": TournamentSettings(stop_agreed=False)}}),
        ((FIX, OTHERS[0], SAME_FIX[1], SAME_FIX[2]), {}),
        ((WORSE, f"    # four\n{WORSE}", f"{WORSE.rstrip()}  # four\n", FIX), {}),
    ],
    ids=["where that is not asked for", "where two of three agree", "where the change does not solve the task"],
)
def test_a_round_runs_to_its_end(go, texts, options):
    attempts = Attempts(*texts)
    go(attempts, rollouts=4, rounds=1, **options)
    assert len(attempts.positions) == 4


@pytest.mark.slow
def test_a_second_round_begins_at_the_base_state_and_knows_nothing_of_the_first_but_its_summaries(go):
    attempts = Attempts(OTHERS[0], OTHERS[1], OTHERS[2], FIX)
    result, run = go(attempts)
    assert (result.status, result.verified, result.stop) == ("solved", True, Stop.SOLVED)
    assert (result.rollouts, result.rounds, result.best_node) == (4, 2, 4)
    assert [rollout.path for rollout in run.rollouts()] == [(0, 1), (0, 2), (0, 3), (0, 4)]
    assert [rollout.round for rollout in run.rollouts()] == [1, 1, 2, 2]
    assert attempts.before == [(run.tree.root.state_hash, SOURCE)] * 4
    assert [position.index for position in attempts.positions] == [0, 1, 0, 1]
    assert not any(position.tried for position in attempts.positions)
    assert [len(position.siblings) for position in attempts.positions] == [0, 1, 0, 1]
    told = [position.briefing for position in attempts.positions]
    assert told[:2] == [None, None]
    assert told[2] == told[3] == run.briefing
    assert {summary.leaf for summary in told[2].summaries} == {1, 2}
    assert "\nround 1: states 1 to 2, 2 rollouts; hard: no patch solves the task\nround 2: states 3 to 4," in facts(run)


@pytest.mark.slow
def test_no_model_is_asked_for_summaries_where_no_other_round_follows(go):
    model = ScriptedModel(lambda messages: pytest.fail("asked"), "tiny")
    _, run = go(Attempts(FIX, FIX), waves={"summariser": model})
    assert {author for _, author in run.summaries} == {"journal"}
    assert not run.rounds


@pytest.mark.slow
def test_a_model_writes_all_summaries_before_the_votes_where_that_is_wanted(go):
    said = {"hypothesis": "One was left out.", "outcome": "solved", "progress": ""}
    model = ScriptedModel(lambda messages: answer(json.dumps(said)), "tiny")
    waves = {"summariser": model, "tournament": TournamentSettings(model_summaries=True)}
    _, run = go(Attempts(FIX, SECOND), waves=waves)
    assert set(run.summaries) == {(1, "tiny"), (2, "tiny")}


@pytest.mark.slow
def test_a_model_writes_the_summaries_that_a_later_round_reads_and_no_others(go):
    said = {"hypothesis": "One was left out.", "outcome": "solved", "progress": ""}
    model = ScriptedModel(lambda messages: answer(json.dumps(said)), "tiny")
    texts = (OTHERS[0], OTHERS[1], View("means.py"), FIX)
    _, run = go(Attempts(*texts), waves={"summariser": model})
    assert {leaf for leaf, author in run.summaries if author == "tiny"} == {1, 2}
    assert {leaf for leaf, author in run.summaries if author == "journal"} == {1, 2, 3, 4}
    assert len(model.heard) == len(run.asked) == 2


@pytest.mark.slow
def test_the_others_of_a_round_go_on_when_one_has_solved_the_task(go):
    attempts = Attempts(FIX, OTHERS[0], SECOND)
    result, run = go(attempts, rollouts=3, rounds=4)
    assert (result.status, result.stop, result.rounds) == ("solved", Stop.SOLVED, 1)
    assert len(run.tree) == 4
    assert [run.note(node, "verdict")["solved"] for node in (1, 3)] == [True, True]
    assert {leaf for leaf, _ in run.summaries} == {1, 2, 3}


@pytest.mark.slow
def test_single_edits_that_solve_nothing_leave_later_rounds_their_share_of_the_limits(go, half):
    result, run = go(Attempts(*TEXTS), half, rollouts=9, max_nodes=5, waves={"single_edits": True})
    assert [wave.first for wave in run.rounds] == [3]
    assert (result.stop, result.nodes) == (Stop.NODES, 5)


@pytest.mark.slow
def test_single_edits_that_solve_nothing_go_on_to_the_limits_although_a_round_was_no_better(go, half):
    attempts = Attempts(FIX, *OTHERS[:5])
    result, run = go(attempts, half, rollouts=9, rounds=3, max_nodes=7, waves={"single_edits": True})
    assert (len(run.rounds), result.stop, result.nodes) == (2, Stop.NODES, 7)


@pytest.mark.slow
def test_a_later_round_that_does_worse_takes_nothing_away(whole):
    _, result, run = whole
    assert (result.status, result.best_node, result.stop, run.round) == ("improved", 2, Stop.FINISHED, 2)
    assert b"+    if len(numbers) <= 0" in result.patch


@pytest.mark.slow
def test_a_rollout_that_comes_to_a_state_of_an_earlier_round_is_its_own_and_nothing_is_measured_again(go):
    rewritten = Write("means.py", SOURCE.replace(BUG, OTHERS[0]))
    events = []
    result, run = go(Attempts(OTHERS[0], OTHERS[1], rewritten, OTHERS[2]), on_event=events.append)
    assert not any(isinstance(event, Merged) for event in events)
    assert run.tree[3].state_hash == run.tree[1].state_hash
    measured = [event.usage.measurements for event in events if isinstance(event, Spent) and event.what == "tests"]
    assert sum(measured) == 3
    assert [(rollout.path, rollout.round) for rollout in run.rollouts()][2:] == [((0, 3), 2), ((0, 4), 2)]
    assert (result.status, result.stop, run.round) == ("improved", Stop.FINISHED, 2)


def test_one_patch_of_two_rollouts_is_verified_once(go):
    rubbish = (Edit("means.py", BUG, FIX), Write(".git/rubbish", "x"))
    attempts = Attempts(FIX, None)
    attempts.policy = Scripted(
        lambda position: attempts.answer(position) if position.index == 0 else Proposal((*rubbish, Submit()))
    )
    events = []
    result, run = go(attempts, rounds=1, on_event=events.append)
    assert run.tree[1].state_hash != run.tree[2].state_hash
    assert [event.node for event in events if isinstance(event, Spent) and event.what == "verification"] == [1]
    assert (result.status, run.note(2, "verdict")) == ("solved", run.note(1, "verdict"))


@pytest.mark.slow
def test_a_round_that_a_limit_ended_is_gone_on_with_although_one_of_its_rollouts_has_solved_the_task(go, tmp_path):
    first, run = go(Attempts(FIX, SECOND), rounds=1, max_nodes=2)
    assert (first.status, first.stop, run.summaries) == ("solved", Stop.NODES, {})
    assert [steer(tmp_path / "run", Order(act, 0)) for act in ("pin", "unpin")] == ["recorded", "recorded"]
    again, run = go(Attempts(FIX, SECOND), rounds=1)
    assert (again.stop, again.nodes, {leaf for leaf, _ in run.summaries}) == (Stop.SOLVED, 3, {1, 2})
    with pytest.raises(UsageError, match="is solved"):
        steer(tmp_path / "run", Order("pin", 0))


@pytest.mark.slow
def test_verifying_what_a_round_came_to_keeps_to_the_limit_of_measurements_and_one_answer_is_verified_beyond(go):
    """Three states are measured, the base state twice; the one that is verified beyond is that which is delivered."""
    result, run = go(Attempts(FIX, SECOND), rounds=1, max_measurements=4)
    assert (result.status, result.verified, result.stop) == ("solved", True, Stop.MEASUREMENTS)
    assert [run.note(node, "verdict") is not None for node in (1, 2)] == [True, False]


@pytest.mark.slow
def test_a_state_that_is_lost_ends_the_run_with_the_best_patch_that_can_be_verified(go, provider):
    def lose(event):
        if isinstance(event, Added) and event.node.id == 1:
            lost.append(event.node.snapshot)
        if isinstance(event, Added) and event.node.id == 2:
            provider.discard(*lost)

    lost = []
    result, run = go(Attempts(FIX, SECOND), rounds=1, on_event=lose)
    assert (result.status, result.verified, result.best_node, result.stop) == ("solved", True, 2, Stop.FAILED)
    assert isinstance(result.error, SnapshotMissing)
    assert run.ended is not None


@pytest.mark.slow
def test_a_limit_in_the_second_round_ends_it_with_the_best_so_far_and_it_goes_on_from_there(go, half, whole, tmp_path):
    first, run = go(Attempts(*TEXTS), half, max_nodes=4)
    assert (first.status, first.stop, first.best_node) == ("improved", Stop.NODES, 2)
    assert (len(run.tree), run.round) == (4, 2)
    again, run = go(Attempts(*TEXTS), half)
    assert (again.stop, again.patch, again.best_node) == (Stop.FINISHED, whole[1].patch, 2)
    assert [node.state_hash for node in run.tree] == [node.state_hash for node in whole[2].tree]
    assert dict(notes(run)) == dict(notes(whole[2]))
    events = []
    once_more, _ = go(Attempts(*TEXTS), half, on_event=events.append)
    assert (once_more.patch, once_more.stop) == (again.patch, Stop.FINISHED)
    assert {event.kind for event in events} == {"noted", "ended"}


@pytest.mark.slow
@pytest.mark.parametrize(("last", "number"), [("noted", 1), ("summarised", 3)])
def test_a_run_that_was_cut_off_while_rollouts_were_compared_goes_on_exactly_there(
    go, half, whole, tmp_path, last, number
):
    lines = (whole[0] / "journal.jsonl").read_bytes().splitlines(keepends=True)
    ends = [n for n, event in enumerate(read_events(whole[0] / "journal.jsonl"), 1) if event.kind == last]
    shutil.copytree(whole[0], tmp_path / "run")
    (tmp_path / "run" / "journal.jsonl").write_bytes(b"".join(lines[: ends[number - 1]]))
    go(Attempts(*TEXTS), half)
    assert story(tmp_path / "run") == story(whole[0])


@pytest.mark.slow
def test_a_run_that_was_cut_off_in_the_middle_of_a_vote_asks_for_the_missing_votes_only(go, solve_at, repo, tmp_path):
    def options(judge):
        return {"waves": {"judge": lambda ask: judge, "tournament": TournamentSettings(votes=4)}}

    texts, first, later = (FIX, SECOND), FixedJudge(), FixedJudge()
    result, run = solve_at(tmp_path / "whole", repo, Attempts(*texts), **options(first))
    assert (result.status, result.best_node, result.stop) == ("solved", 2, Stop.SOLVED)
    assert b"< 1" in result.patch
    assert len(run.ballots) == len(first.asked) == dict(notes(run))[1]["votes"] == 3
    (drawn,) = brackets(run)
    assert "\n  stage 1   2 beats 1 by 3 to 0\n" in drawn
    assert ", first finished 1, most tests 1, most rollouts 1" in drawn
    lines = (tmp_path / "whole" / "journal.jsonl").read_bytes().splitlines(keepends=True)
    ends = [n for n, e in enumerate(read_events(tmp_path / "whole" / "journal.jsonl"), 1) if isinstance(e, Voted)]
    shutil.copytree(tmp_path / "whole", tmp_path / "run")
    (tmp_path / "run" / "journal.jsonl").write_bytes(b"".join(lines[: ends[1]]))
    go(Attempts(*texts), **options(later))
    assert later.asked == first.asked[2:]
    assert story(tmp_path / "run") == story(tmp_path / "whole")


@pytest.mark.slow
def test_what_there_is_at_a_limit_is_compared_and_not_the_oldest_taken(go):
    result, run = go(Attempts(FIX, SECOND, SECOND, OTHERS[0]), rollouts=4, rounds=1, max_nodes=4)
    assert (result.status, result.best_node, result.stop) == ("solved", 2, Stop.NODES)
    assert [entrant["rollouts"] for entrant in dict(notes(run))[1]["order"]] == [2, 1]


@pytest.mark.slow
def test_a_fifth_of_the_limits_is_kept_for_choosing(go):
    """Of ten requests eight are for rollouts, one each, and two for the votes on the two that solve the task."""

    def repairs(text):
        return answer("I repair it.", ("edit", {"path": "means.py", "old": BUG, "new": text}), ("submit", {}))

    proposing = ScriptedModel([repairs(text) for text in (FIX, SECOND, *OTHERS)])
    judging = ScriptedModel(lambda messages: answer(json.dumps({"winner": "A", "reason": "It is shorter."})), "judge")
    waves = {"judge": lambda ask: ModelJudge(judging, ask)}
    chat = SimpleNamespace(policy=ChatPolicy(proposing))
    result, run = go(chat, rollouts=10, rounds=1, waves=waves, max_calls=10)
    assert (result.status, result.stop, len(run.tree)) == ("solved", Stop.SOLVED, 9)
    assert (len(proposing.heard), len(judging.heard)) == (8, 2)


@pytest.mark.slow
def test_what_votes_have_decided_holds_at_a_limit_in_a_later_round_and_session(go, half):
    """Of two equals the newer would be taken where nobody was asked."""
    judge, texts = FixedJudge(lambda nodes, vote: min(nodes)), (FIX, SECOND, OTHERS[0], OTHERS[1])
    for _ in range(2):
        result, run = go(Attempts(*texts), half, waves={"judge": lambda ask: judge}, max_nodes=4)
        assert (result.status, result.stop, result.best_node, run.round) == ("improved", Stop.NODES, 1, 2)


@pytest.mark.slow
def test_some_rollouts_of_a_later_round_go_on_from_where_an_earlier_one_was_last_right(go, solve_at, half, tmp_path):
    asked = []

    def answer(position):
        asked.append(position)
        depth, index = len(position.path) - 1, position.index
        if depth == 0:
            text = OTHERS[index + 2] if position.briefing else [FIX, OTHERS[0]][index]
            return Proposal((Edit("means.py", BUG, text), *((Submit(),) if text != FIX else ())))
        text = [WORSE, SECOND][index]
        return Proposal((Edit("means.py", FIX, text), Submit()))

    attempts = Attempts()
    attempts.policy = Scripted(answer)
    events = []
    result, run = go(attempts, half, waves={"refine": RefineSettings(local=0.5)}, on_event=events.append)
    (second,) = [event for event in events if isinstance(event, Round)]
    assert [(order.act, order.node, order.by) for order in second.repairs] == [("fork", 1, "diagnosis")]
    assert [(len(p.path) - 1, p.kind) for p in asked[3:]] == [(1, "repair"), (0, "")]
    assert [(rollout.path, rollout.round) for rollout in run.rollouts()] == [
        ((0, 1, 2), 1),
        ((0, 3), 1),
        ((0, 1, 4), 2),
        ((0, 5), 2),
    ]
    assert (result.status, result.best_node, result.stop) == ("improved", 4, Stop.FINISHED)


def ramify(*arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "agent", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "NO_COLOR": "1"},
    )


@pytest.mark.slow
def test_a_run_that_is_killed_in_its_second_round_begins_none_twice(half, tmp_path):
    run, env = tmp_path / "run", 'sandbox.env={PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"}'
    waves = ("--rollouts", "2", "--rounds", "2", "--search", "best_of_n", "-c", "search.n=2", "-c", env)
    process = ramify("solve", "--issue", "x", "--repo", half, "-c", "measure.baseline_runs=1", *waves, "--out", run)
    journal = run / "journal.jsonl"
    while process.poll() is None and not (journal.exists() and b'"round"' in journal.read_bytes()):
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL, "it ended before it was killed"
    out, err = ramify("resume", run, "--json").communicate()
    told = json.loads(out)
    assert (told["status"], told["rounds"], told["stop"]) == ("improved", 2, "finished"), err
    events = list(read_events(journal))
    (second,) = [event for event in events if isinstance(event, Round)]
    leaves = [event.summary.leaf for event in events if isinstance(event, Summarised)]
    assert len(leaves) == len(set(leaves)) == told["rollouts"] == 4
    assert sum(leaf >= second.first for leaf in leaves) == 2
    nodes = [event.node for event in events if isinstance(event, Added)]
    assert len({node.state_hash for node in nodes}) == len(nodes)
