"""Landscapes are the same for whoever searches them, the driver spends what it is given, and searches do on them what
they are for."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.run.tree.choice import Choice
from agent.search.best_first import BestFirst
from agent.search.clade import Clade
from agent.search.linear import Linear
from agent.search.mcts import Mcts
from agent.search.registry import SEARCHES
from benchmarks.perf.landscape import digest, measured
from benchmarks.perf.landscapes import LANDSCAPES, Climb, Duplicates, Repair, Ways, planted
from benchmarks.perf.search_sim import Figure, Runs, Table, found
from benchmarks.perf.simulation import Simulation


def simulated(landscape, search, budget=60, *, workers=1, seed=0):
    """A simulation that has run."""
    made = Simulation(landscape, search, budget, workers=workers, seed=seed)
    made.run()
    return made


def promise(landscape, state):
    """How near the optimum a state really is; only the landscape's own author can tell."""
    match landscape:
        case Ways():
            return (state[1] == 1000, state[2])
        case Climb():
            return state[0]
        case Duplicates():
            return landscape.value(state)
        case Repair():
            needed = frozenset().union(*planted(landscape).needed)
            places = {edit // landscape.variants for edit in needed}
            spoilt = sum(e // landscape.variants in places for e in set(state) - needed)
            broken = sum(edit in planted(landscape).breaks for edit in state)
            return len(needed & set(state)) - 10 * spoilt - 10 * broken


def optimum(landscape):
    """The state that an author's walk ends at: of 60 proposals the most promising, again and again."""
    state = landscape.start
    for _ in range(80):
        if landscape.value(state) == 1.0:
            break
        moves = [move for index in range(60) if (move := landscape.move(state, index))]
        state = max((move.state for move in moves), key=lambda found: promise(landscape, found))
    return state


@pytest.mark.parametrize("name", LANDSCAPES)
class TestLandscapes:
    @given(seed=st.integers(0, 99), indices=st.lists(st.integers(0, 20), max_size=4))
    def test_a_child_is_the_same_whoever_asks(self, name, seed, indices):
        ours, theirs = LANDSCAPES[name](seed), LANDSCAPES[name](seed)
        state = ours.start
        for index in indices:
            moves = ours.move(state, index), theirs.move(state, index)
            assert moves[0] == moves[1]
            assert digest(moves[0].state) != digest(state)
            state = moves[0].state
            assert 0 <= ours.value(state) <= 1
            assert measured(ours, state, 1) == measured(theirs, state, 1)

    def test_another_seed_is_another_landscape(self, name):
        firsts = {
            tuple(LANDSCAPES[name](seed).move((LANDSCAPES[name](seed).start), i) for i in range(5)) for seed in range(6)
        }
        assert len(firsts) == 6

    @pytest.mark.parametrize("seed", range(5))
    def test_an_optimum_is_worth_one_and_can_be_reached(self, name, seed):
        landscape = LANDSCAPES[name](seed)
        assert landscape.value(landscape.start) < 0.3
        assert landscape.value(optimum(landscape)) == 1.0

    @pytest.mark.parametrize("search", SEARCHES)
    def test_no_search_spends_more_than_it_is_given(self, name, search):
        made = simulated(LANDSCAPES[name](1), SEARCHES[search](), 12.5, workers=3)
        assert made.curve.spent <= 12.5
        assert len(made.tree) - 1 + made.merged <= made.tree.ended_expansions
        assert made.tree.in_flight == 0


def test_measuring_again_draws_again_around_the_true_value():
    landscape = LANDSCAPES["noisy"](3)
    state = landscape.move(landscape.start, 0).state
    drawn = [measured(landscape, state, time) for time in range(400)]
    assert len(set(drawn)) > 300
    assert mean(drawn) == pytest.approx(landscape.value(state), abs=0.03)


def test_costs_have_a_heavy_tail_and_cheap_lines_stay_cheap():
    landscape = LANDSCAPES["heavy_tailed"](0)
    firsts = [landscape.move(landscape.start, index) for index in range(300)]
    costs = sorted(move.cost for move in firsts)
    assert sum(costs[-30:]) > sum(costs) / 3
    cheap, dear = min(firsts, key=lambda m: m.state[2]).state, max(firsts, key=lambda m: m.state[2]).state
    below = {line: mean(landscape.move(line, index).cost for index in range(60)) for line in (cheap, dear)}
    assert below[cheap] * 4 < below[dear]


def test_the_first_way_is_a_lure():
    for seed in range(20):
        landscape = Ways(seed)
        assert landscape.move(landscape.start, 0).state[1] < 750


def test_two_edits_of_one_place_cannot_be_fused():
    landscape = Repair(0)
    assert landscape.fused((0, 9), (4,)) == (0, 4, 9)
    assert landscape.fused((0, 9), (1,)) is None


def test_two_half_repairs_fuse_to_a_better_state():
    landscape = Repair(0)
    one, other = (tuple(needed) for needed in planted(landscape).needed[:2])
    assert landscape.value(landscape.fused(one, other)) > max(landscape.value(one), landscape.value(other))


class TestDriver:
    def test_a_known_state_is_merged_and_not_measured_again(self):
        made = simulated(Duplicates(1), BestFirst())
        assert made.merged > 5
        assert len({node.state_hash for node in made.tree}) == len(made.tree)
        assert len(made.tree) - 1 + made.merged == made.tree.ended_expansions

    def test_a_node_without_proposals_is_closed_and_the_run_ends(self):
        made = simulated(Repair(1, goals=2, sites=4, variants=2, limit=1), BestFirst(), 1000)
        assert all(not made.tree.expandable(node.id) for node in made.tree)
        assert made.curve.spent == 9

    def test_a_run_ends_when_an_optimum_is_measured(self):
        made = simulated(Duplicates(0, edits=1, keys=1, harmful=0), Linear(), 50)
        assert made.curve.spent == 1
        assert made.curve.at(50) == 1.0
        assert made.curve.at(0) == 0.0

    def test_the_answer_is_the_state_that_looks_best_and_not_the_best_one(self):
        made = simulated(LANDSCAPES["noisy"](1), BestFirst())
        true = [made.states[node.id][0] / 1000 for node in made.tree]
        assert made.curve.at(60) == true[made.tree.best().id]
        assert max(true) > true[made.tree.best().id]

    def test_eight_workers_are_busy_at_once(self):
        made = Simulation(LANDSCAPES["heavy_tailed"](0), Mcts(), 60, workers=8)
        most = 0
        while made.step():
            most = max(most, made.tree.in_flight)
        assert most == 7


class Script:
    """A search that does what is written, then nothing."""

    def __init__(self, *choices):
        self.choices = choices

    def select(self, tree, rng):
        done = tree.ended_expansions + tree.in_flight
        return self.choices[done] if done < len(self.choices) else None


class TestActs:
    def test_a_measurement_is_one_more_of_the_same_state_and_costs_budget(self):
        landscape = LANDSCAPES["noisy"](3)
        made = simulated(landscape, Script(Choice(0), Choice(1, "measure"), Choice(1, "measure")))
        expected = [measured(landscape, made.states[1], time) for time in range(3)]
        assert [evaluation.value for evaluation in made.tree.evaluations(1)] == expected
        assert made.curve.spent == 3

    def test_two_branches_are_fused_to_one_node_with_both_as_parents(self):
        made = simulated(Duplicates(1), Script(Choice(0), Choice(0), Choice(1, "fuse", other=2)))
        assert made.states[3] == tuple(sorted(made.states[1] + made.states[2]))
        assert (made.tree[3].parents, made.tree[3].kind) == ((1, 2), "fuse")

    def test_branches_that_conflict_cost_little_and_close_nothing(self):
        made = simulated(Ways(1), Script(Choice(0), Choice(0), *[Choice(1, "fuse", other=2)] * 4))
        assert len(made.tree) == 3
        assert made.curve.spent == pytest.approx(2.4)
        assert made.tree.expandable(1)


class Greedy:
    """Always from the state that looks best."""

    def select(self, tree, rng):
        return Choice(tree.best().id)


class Flat:
    """A landscape whose proposals say nothing of themselves."""

    def __init__(self, landscape):
        self.landscape = landscape

    def __getattr__(self, name):
        return getattr(self.landscape, name)

    def move(self, state, index):
        move = self.landscape.move(state, index)
        return move and replace(move, prior=1.0)


def answers(search, name, budget, seeds, workers=1):
    """The mean of what runs answer with."""
    runs = (simulated(LANDSCAPES[name](s), search, budget, workers=workers, seed=s) for s in range(seeds))
    return mean(made.curve.at(budget) for made in runs)


class TestWhatSearchesAreFor:
    def test_a_dead_end_at_first_stops_a_line_and_not_mcts(self):
        ways = [Ways(seed, lures=0.0, levels=2, climbs=0.6) for seed in range(10)]
        assert not any(simulated(way, Linear(), 100).tree.solved for way in ways)
        assert all(simulated(way, Mcts(c=1.0), 100).tree.solved for way in ways)

    def test_priors_that_tell_something_lead_to_a_repair_in_fewer_measurements(self):
        search = Mcts(formula="puct", c=0.5, prior_visits=5)
        programs = [Repair(seed, goals=2, sites=12, variants=2) for seed in range(20)]
        informed, flat = (
            mean(simulated(look(program), search, 120).curve.spent for program in programs)
            for look in (lambda program: program, Flat)
        )
        assert informed < 0.75 * flat

    def test_clades_find_more_than_the_best_measurement_does_where_measurements_err(self):
        assert answers(Clade(), "noisy", 60, 40) > 1.1 * answers(Greedy(), "noisy", 60, 40)

    @pytest.mark.parametrize("search", [Mcts(), Clade()])
    def test_eight_workers_find_nearly_as_much_as_one_for_the_same_budget(self, search):
        assert answers(search, "repair", 60, 12, workers=8) > 0.75 * answers(search, "repair", 60, 12)


class TestTable:
    def test_it_holds_every_search_at_every_budget(self):
        options = ["--seeds", "2", "--at", "5,9", "--landscapes", "deceptive,repair", "--without-treequest"]
        command = [sys.executable, "-m", "benchmarks.perf.search_sim", *options, "--searches", "linear,best_of_n"]
        root = Path(__file__).parent.parent
        said = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout.splitlines()
        assert said[0] == "| budget | search | deceptive | repair |"
        assert [line.split(" | ")[1] for line in said[2:6]] == ["`linear`", "`best_of_n`"] * 2
        expected = Figure.of([value[1] for value in found(Runs("linear", "repair", range(2), (5, 9)))])
        assert said[4].endswith(f" {expected} |")

    def test_a_difference_is_of_pairs_and_level_where_its_interval_holds_zero(self):
        runs = {"a": ((0.5,), (0.7,), (0.6,)), "b": ((0.4,), (0.6,), (0.5,)), "c": ((0.9,), (0.1,), (0.5,))}
        table = Table(["here"], (9,), ["a"], ["b"])
        noisy = Table(["here"], (9,), ["a"], ["c"])
        for name, values in runs.items():
            for each in (table, noisy):
                each.put(name, "here", values)
        assert "| ahead: +0.100 ±0.000 (a, b) |" in list(table.lines())[-1]
        assert "| level: +0.100 " in list(noisy.lines())[-1]
