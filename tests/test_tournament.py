"""Tournaments: facts first, then votes among equals; who meets whom; what is asked, and what is not asked again."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.analysis.report.bracket import brackets
from agent.budget import BudgetSpent, Stop
from agent.errors import ModelError
from agent.run.ballots import Ballot
from agent.run.cross_tests import Matrix, Row
from agent.run.events import Added, Noted, Round, Started
from agent.run.run import Run
from agent.run.tree.node import ROOT
from agent.solver.tournament import comparisons, rank
from agent.solver.tournament.baselines import baselines
from agent.solver.tournament.bracket import draw
from agent.solver.tournament.note import key, note
from agent.solver.tournament.strength import chances, strengths, wins
from sandboxes import Snapshot
from tests import trees
from tests.candidates import TASK, FixedJudge, candidate


def order(ranking):
    return [entrant.node for entrant in ranking.order]


def many(n):
    return [candidate(node) for node in range(1, n + 1)]


# ---- facts


WORST_FIRST = [
    candidate(2, solved=False, progress=0.0, outcome="invalid"),
    candidate(3, solved=False, progress=0.25),
    candidate(4, solved=False, progress=0.5, harm=0.1),
    candidate(7, solved=False, progress=0.5),
    candidate(5, solved=False, progress=0.75),
    candidate(6, solved=True),
]


def test_facts_decide_before_any_vote():
    judge = FixedJudge(lambda nodes, vote: min(nodes))
    assert order(rank(TASK, WORST_FIRST, judge)) == [6, 5, 7, 4, 3, 2]
    assert judge.asked == []


def test_what_models_think_of_a_state_is_no_fact():
    told = candidate(1, solved=False, progress=0.5, value=0.9, judge=1.0)
    judge = FixedJudge()
    assert order(rank(TASK, [told, candidate(2, solved=False, progress=0.5)], judge)) == [2, 1]
    assert len(judge.asked) == 5


def test_only_those_that_are_best_by_facts_are_voted_on():
    judge = FixedJudge()
    found = rank(TASK, [*WORST_FIRST, candidate(8), candidate(9)], judge, votes=1)
    assert {node for group, _ in judge.asked for node in group} == {6, 8, 9}
    assert order(found) == [9, *order(found)[1:3], 5, 7, 4, 3, 2]


def test_equal_patches_are_one_candidate():
    judge = FixedJudge()
    twins = [candidate(1, b"+ a\n", solved=False), candidate(2, b"+ a\n"), candidate(3, b"+ a\n"), candidate(4)]
    found = rank(TASK, twins, judge, votes=1)
    assert len(judge.asked) == 1
    assert order(found) == [4, 2]
    assert found.order[1].duplicates == (1, 3)
    assert found.order[1].rollouts == 3


def test_without_candidates_there_is_no_winner():
    assert rank(TASK, [], FixedJudge()).winner is None


def test_without_a_judge_equals_are_ordered_by_what_can_be_counted():
    equals = [
        candidate(1, b"+ a long patch\n"),
        candidate(2, b"+ bb\n"),
        candidate(3, b"+ cc\n"),
        candidate(4, b"+ twice found\n"),
        candidate(5, b"+ twice found\n"),
        candidate(6, b"+ with a test of its own\n", reproduction=1.0),
    ]
    found = rank(TASK, equals, None)
    assert order(found) == [6, 4, 2, 3, 1]
    assert (found.bracket, found.confidence()) == ((), None)


# ---- votes


def test_the_order_of_a_group_rotates_from_vote_to_vote():
    judge = FixedJudge()
    said = iter([1, 2, 3, 1])
    rank(TASK, many(3), replace(judge, prefer=lambda nodes, vote: next(said)), group=3, votes=4)
    first = judge.asked[0][0]
    assert [nodes for nodes, _ in judge.asked] == [first, first[1:] + first[:1], first[2:] + first[:2], first]
    assert [vote for _, vote in judge.asked] == [0, 1, 2, 3]


def test_a_judge_that_goes_by_the_place_alone_decides_nothing():
    judge = FixedJudge(lambda nodes, vote: nodes[0])
    (match,) = rank(TASK, many(2), judge).bracket[0]
    assert match.tally == {1: 4, 2: 4}
    assert (match.by, match.winner) == ("rule", 1)


def test_most_votes_win_and_abstentions_count_for_nobody():
    said = iter([None, None, None, 1, 2, 2, None, None])
    (match,) = rank(TASK, many(2), FixedJudge(lambda nodes, vote: next(said))).bracket[0]
    assert (match.by, match.winner) == ("votes", 2)
    assert match.tally == {1: 1, 2: 2}
    assert len(match.ballots) == 8


def test_votes_stop_when_the_lead_cannot_be_caught():
    said = iter([2, 1, 2, 2, 2, 2])
    (match,) = rank(TASK, many(2), FixedJudge(lambda nodes, vote: next(said))).bracket[0]
    assert (match.winner, match.tally) == (2, {1: 1, 2: 5})


def test_a_judge_who_finds_no_difference_in_any_order_is_not_asked_again(tmp_path):
    judge = FixedJudge(lambda nodes, vote: "tie")
    found = rank(TASK, many(3), judge, group=3)
    assert len(judge.asked) == 3
    assert all(ballot.tie for ballot in found.bracket[0][0].ballots)
    assert "0 votes, 0 for the first shown; 3 ties" in shown(tmp_path, note(found, many(3)))[0]


def test_votes_keep_to_the_requests_that_they_may_take_but_each_of_two_is_seen_first_once():
    for requests, asked in ((None, 24), (12, 12), (6, 6)):
        judge = FixedJudge(lambda nodes, vote: nodes[0])
        rank(TASK, many(4), judge, requests=requests)
        assert len(judge.asked) == asked


def test_where_few_requests_are_left_more_candidates_are_compared_at_once():
    for requests, asked, largest in ((5, 4, 3), (2, 2, 4), (0, 2, 4)):
        judge = FixedJudge(lambda nodes, vote: nodes[0])
        rank(TASK, many(4), judge, requests=requests)
        assert len(judge.asked) == asked
        assert max(len(nodes) for nodes, _ in judge.asked) == largest


def test_candidates_with_the_same_change_of_the_sources_need_no_vote():
    judge = FixedJudge()
    with_test = candidate(2, b"+ 1\n+ test\n", source=b"+ 1\n", reproduction=1.0)
    found = rank(TASK, [candidate(1), with_test], judge)
    assert (judge.asked, order(found), found.order[0].rollouts) == ([], [2], 2)


@pytest.mark.parametrize(
    ("accepted", "end", "votes"),
    [((1.0, 1.0), "passed", False), ((1.0, 0.0), "passed", True), ((1.0, 1.0), "failed", True)],
    ids=["and all pass", "one is not accepted", "one fails a test of another"],
)
def test_candidates_that_critics_accepted_and_that_pass_each_others_tests_need_no_vote(accepted, end, votes):
    judge = FixedJudge()
    equals = [candidate(node, accept=accept) for node, accept in zip((1, 2), accepted, strict=True)] + [
        candidate(3, accept=1.0)
    ]
    cells = {ROOT: {"t": "failed"}, 1: {"t": "passed"}, 2: {"t": "passed"}, 3: {"t": end}}
    rank(TASK, equals, judge, cross_test=lambda authors, nodes: Matrix((Row((1,), cells, frozenset({1})),)))
    assert bool(judge.asked) is votes


def test_earlier_votes_count_where_no_new_ones_are_held():
    cast = rank(TASK, many(2), FixedJudge()).bracket[0][0].ballots
    assert order(rank(TASK, many(2), None)) == [1, 2]
    assert order(rank(TASK, many(2), None, known=cast)) == [2, 1]


def test_a_judge_that_always_abstains_leaves_it_to_the_rule():
    found = rank(TASK, many(2), FixedJudge(lambda nodes, vote: None))
    assert found.bracket[0][0].by == "rule"
    assert order(found) == [1, 2]
    assert found.confidence() == pytest.approx(0.5, abs=0.05)


def test_a_vote_for_somebody_else_is_refused():
    with pytest.raises(ValueError, match="fixed voted for 9, which is not one of"):
        rank(TASK, many(2), FixedJudge(lambda nodes, vote: 9))


@pytest.mark.parametrize(("wrong", "said"), [({"group": 1}, "group=1"), ({"votes": 0}, "votes=0")])
def test_numbers_that_make_no_sense_are_refused(wrong, said):
    with pytest.raises(ValueError, match=said):
        rank(TASK, many(2), FixedJudge(), **wrong)


# ---- what is not asked again


def test_recorded_ballots_are_not_asked_for_again():
    kept, more, first, second = [], [], FixedJudge(), FixedJudge()
    found = rank(TASK, many(5), first, votes=4, record=kept.append)
    assert len(kept) == len(first.asked) == 3 * comparisons(5, 2)
    assert {(ballot.judge, ballot.round) for ballot in kept} == {("fixed", 1)}
    assert rank(TASK, many(5), second, votes=4, known=kept[:7], record=more.append) == found
    assert more == kept[7:]
    assert len(second.asked) == len(first.asked) - 7


@pytest.mark.parametrize("changed", [{"round": 2}, {"judge": "another"}])
def test_ballots_of_another_round_or_judge_do_not_count_as_votes(changed):
    kept, judge = [], FixedJudge()
    rank(TASK, many(2), FixedJudge(), record=kept.append)
    rank(TASK, many(2), judge, known=[replace(ballot, **changed) for ballot in kept])
    assert len(judge.asked) == 5


@pytest.mark.parametrize("error", [BudgetSpent(Stop.CALLS), ModelError("no server")])
def test_where_no_more_can_be_asked_what_was_said_decides_and_the_rest_can_be_asked_later(error):
    def prefer(nodes, vote):
        if len(judge.asked) > 5:
            raise error
        return max(nodes)

    judge, kept, later = FixedJudge(prefer), [], FixedJudge()
    cut = rank(TASK, many(4), judge, record=kept.append)
    assert cut.error is error
    assert len(kept) == 5
    assert len(cut.order) == 4
    assert len(judge.asked) == 6
    whole = rank(TASK, many(4), later, known=kept)
    assert (whole.error, order(whole)[0], len(later.asked)) == (None, 4, 3 * 5 - 5)


# ---- who meets whom


@given(st.integers(0, 70), st.integers(2, 9))
@settings(max_examples=300, deadline=None)
def test_brackets_take_as_few_comparisons_as_can_be_and_nobody_has_two_byes(n, group):
    left, compared, byes, stages = list(range(n)), 0, Counter(), 0
    while len(left) > 1:
        groups = draw(left, group)
        assert [one for each in groups for one in each] == left
        assert max(map(len, groups)) <= group
        sizes = [len(each) for each in groups if len(each) > 1]
        assert max(sizes) - min(sizes) <= 1
        compared += len(sizes)
        byes.update(each[0] for each in groups if len(each) == 1)
        assert not stages or len(sizes) == len(groups)
        left, stages = [each[-1] for each in groups], stages + 1
    assert compared == comparisons(n, group) == -(-max(0, n - 1) // (group - 1))
    assert not byes or max(byes.values()) == 1
    assert group**stages >= n > group ** (stages - 1) or n < 2


def test_byes_are_spread_over_the_next_stage():
    assert [len(each) for each in draw(range(6), 2)] == [1, 2, 1, 2]
    assert [len(each) for each in draw(range(5), 4)] == [1, 1, 1, 2]
    assert [len(each) for each in draw(range(12), 4)] == [1, 4, 4, 3]


@given(st.integers(2, 40), st.integers(2, 5), st.integers(1, 9), st.integers())
@settings(max_examples=100, deadline=None)
def test_each_comparison_is_asked_until_its_winner_is_clear_and_a_judge_who_is_right_finds_the_best(
    n, group, votes, seed
):
    shuffled = [candidate(node, b"+ %d, %d\n" % (seed, node)) for node in range(1, n + 1)]
    Random(seed).shuffle(shuffled)
    judge = FixedJudge()
    found = rank(TASK, shuffled, judge, group=group, votes=votes)
    assert len(judge.asked) == (votes // 2 + 1) * comparisons(n, group)
    assert len(set(judge.asked)) == len(judge.asked)
    assert order(found)[0] == n
    assert sorted(order(found)) == list(range(1, n + 1))


def test_neither_age_nor_length_places_anybody():
    byes = Counter()
    for seed in range(300):
        rng = Random(seed)
        some = [candidate(node, b"+" * node + b" %d\n" % rng.getrandbits(64)) for node in range(1, 4)]
        byes.update(match.winner for match in rank(TASK, some, FixedJudge(), votes=1).bracket[0] if match.by == "bye")
    assert min(byes[node] for node in (1, 2, 3)) > 70


def test_losers_are_ordered_by_how_far_they_came_and_then_by_strength():
    """Who met the winner early and nearly beat it is stronger than who met it last and had no vote."""
    first = rank(TASK, many(4), FixedJudge()).bracket[0]
    (early,) = next(set(match.group) - {4} for match in first if 4 in match.group)
    far = next(match.winner for match in first if 4 not in match.group)

    def prefer(nodes, vote):
        return early if early in nodes and vote < 3 else max(nodes)

    found = rank(TASK, many(4), FixedJudge(prefer))
    assert order(found)[:3] == [4, far, early]
    assert found.strengths[early] > found.strengths[far] > found.strengths[order(found)[3]]


# ---- strengths


def ballots(*results: tuple[tuple[int, ...], int, int]) -> list[Ballot]:
    """So many ballots on a group for one of it."""
    return [Ballot(group, winner, vote=vote) for group, winner, times in results for vote in range(times)]


@pytest.mark.parametrize(("one", "other"), [(0, 0), (1, 0), (8, 0), (5, 3)])
def test_of_two_the_strength_is_the_share_of_votes_by_the_rule_of_succession(one, other):
    found = strengths((1, 2), wins(ballots(((1, 2), 1, one), ((1, 2), 2, other)), (1, 2)))
    assert found[1] == pytest.approx((one + 1) / (one + other + 2), rel=1e-4)
    assert sum(found.values()) == pytest.approx(1)


@pytest.mark.parametrize(("one", "other", "chance"), [(0, 0, 0.5), (1, 0, 0.75), (8, 0, 1 - 0.5**9), (5, 3, 0.746)])
def test_of_two_the_confidence_is_that_of_a_beta_distribution(one, other, chance):
    won = wins(ballots(((1, 2), 1, one), ((1, 2), 2, other)), (1, 2))
    assert chances((1, 2), won, Random(1), 10_000)[1] == pytest.approx(chance, abs=0.02)


def test_a_ballot_on_more_than_two_is_a_win_over_each_other_member():
    assert wins(ballots(((1, 2, 3), 2, 1)), (1, 2, 3)) == {(2, 1): 1, (2, 3): 1}
    assert wins(ballots(((1, 2, 3), 2, 1)), (1, 2)) == {(2, 1): 1}
    assert wins([Ballot((1, 2), None)], (1, 2)) == {}


def test_strengths_are_where_expected_wins_equal_the_wins_with_the_prior():
    nodes = range(1, 7)
    cast = ballots(((1, 2), 1, 6), ((2, 1), 2, 2), ((3, 4), 3, 5), ((1, 3), 1, 8), ((5, 6), 5, 7), ((1, 5), 5, 5))
    won = wins(cast, nodes)
    found = strengths(nodes, won)
    for node in nodes:
        expected = len(nodes) * found[node]
        for pair, times in won.items():
            if node in pair:
                expected += times * found[node] / (found[pair[0]] + found[pair[1]])
        assert expected == pytest.approx(1 + sum(times for (one, _), times in won.items() if one == node), rel=1e-4)


def test_the_confidence_in_a_winner_rises_with_the_votes_for_it():
    found = [rank(TASK, many(4), FixedJudge(), votes=votes).confidence() for votes in (1, 3, 9)]
    assert 0.4 < found[0] < found[1] < found[2] < 1
    assert found[2] > 0.95


def test_ballots_of_earlier_rounds_count_for_strengths():
    before = [Ballot((1, 2), 1, vote=vote, judge="fixed", round=1) for vote in range(4)]
    found = rank(TASK, many(2), FixedJudge(), votes=2, round=2, known=before)
    assert found.wins == {(1, 2): 4, (2, 1): 2}


# ---- what else would have been chosen, and what is kept


def test_baselines_choose_without_a_vote():
    some = [
        candidate(5, b"+ a\n", leaf=9, solved=False, progress=0.5, judge=0.9),
        candidate(3, b"+ b\n", leaf=7, solved=False, progress=0.25, judge=0.2),
        candidate(4, b"+ a\n", leaf=8, solved=False, progress=0.5),
        candidate(2, b"+ c\n", leaf=6, solved=False, progress=0.0),
    ]
    picks = baselines(some)
    assert picks.pop("random") in {2, 3, 4, 5}
    assert picks == {"first": 2, "tests": 4, "majority": 4, "judge": 5}


def test_a_baseline_that_knows_nothing_picks_nothing():
    assert set(baselines(many(2))) == {"random", "first", "tests", "majority"}
    assert baselines([]) == {}


def test_the_random_baseline_is_seeded_and_any_rollout_may_be_it():
    picks = [baselines(many(3), seed=seed)["random"] for seed in range(40)]
    assert picks == [baselines(many(3), seed=seed)["random"] for seed in range(40)]
    assert set(picks) == {1, 2, 3}


def test_an_opinion_of_a_model_does_not_count_as_a_test_that_passes():
    told = candidate(1, solved=False, progress=0.0, value=0.6, tests=0.1, judge=1.0)
    assert baselines([told, candidate(2, solved=False, progress=0.5, tests=0.2)])["tests"] == 2


def shown(tmp_path, *rankings):
    with Run.open(tmp_path / "run") as run:
        run.record(Started({}, {}, Snapshot("0", "0")))
        run.record(Added(trees.node(0)))
        for wave, data in enumerate(rankings, 1):
            if wave > 1:
                run.record(Round(wave, 1))
            run.record(Noted(0, key(wave), data))
    return list(brackets(Run.read(tmp_path / "run")))


def test_show_draws_the_bracket_of_each_round_and_the_baselines_beside_it(tmp_path):
    some = [*many(3), candidate(4, b"+ 3\n"), candidate(5, solved=False, progress=0.5)]
    said = iter([1, 2, 2, None])
    judge = FixedJudge(lambda nodes, vote: max(nodes) if 3 in nodes else next(said))
    first = note(rank(TASK, some, judge, votes=4), some)
    second = note(rank(TASK, many(1), None), many(1))
    one, two, three = shown(tmp_path, first, second, note(rank(TASK, [], None), []))
    a, b, c = (f"{each['strength']:.2f}" for each in first["order"][:3])
    order = f"3 (solved, strength {a}, 2 rollouts), 2 (solved, strength {b}), 1 (solved, strength {c}), "
    order += "5 (50% of the goals)"
    assert one.splitlines() == [
        "round 1: 4 patches of 5 rollouts",
        "  stage 1   3 has a bye; 2 beats 1 by 2 to 1",
        "  stage 2   3 beats 2 by 3 to 0",
        f"  order     {order}",
        f"  judge     fixed: 6 votes, {first['for_first_shown']} for the first shown; 1 abstention",
        f"  sure      {first['confidence']:.0%} that 3 is the strongest, if votes were independent",
        f"  baselines at random {first['baselines']['random']}, first finished 1, most tests 1, most rollouts 3",
    ]
    assert two.splitlines()[1] == "  order     1 (solved)"
    assert three == "round 3: no rollout has a patch to offer"
    assert one.isascii()


def test_what_earlier_versions_noted_besides_is_passed_over(tmp_path):
    now = note(rank(TASK, many(2), None), many(2))
    then = now | {"order": [each | {"unharmed": 1.0} for each in now["order"]]}
    for entrant in then["order"]:
        del entrant["checked"]
    one, two = shown(tmp_path, now, then)
    assert two == one.replace("round 1", "round 2")


def test_what_ended_the_voting_and_groups_of_three_are_shown(tmp_path):
    def prefer(nodes, vote):
        if vote == 2:
            raise ModelError("no server")
        return nodes[0]

    (drawn,) = shown(tmp_path, note(rank(TASK, many(3), FixedJudge(prefer), group=3), many(3)))
    assert re.search(r"stage 1   \d advances before \d and \d by rule, votes 1 to \d to \d$", drawn, re.MULTILINE)
    assert "  error     no server\n" in drawn


def test_what_a_provider_said_is_shown_on_a_line_without_what_steers_a_terminal(tmp_path):
    failed = note(rank(TASK, many(1), None), many(1)) | {"error": "quota\x1b[2J\n\u202espent"}
    (block,) = shown(tmp_path, failed)
    assert "  error     quota\ufffd[2J \\u202espent" in block.splitlines()
