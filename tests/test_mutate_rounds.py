"""The policy without a model in a later round: what earlier rollouts came to moves the order of its proposals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import unified_diff
from itertools import islice, takewhile
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.actions import Edit
from agent.actions.canonical import canonical
from agent.budget import Budget
from agent.engine.components import Components
from agent.evaluate.value.tests import PassingTests
from agent.measure.probing.spectrum import Spectrum
from agent.policy import Position, Proposal
from agent.policy.mutate import MutatePolicy
from agent.policy.mutate.combining import Repair, combined, repairs
from agent.policy.mutate.source import Change, Source, apply
from agent.run.rollouts import Briefing, Summary
from agent.run.run import Run
from agent.search.best_first import BestFirst
from agent.solver.solve import solve
from sandboxes import Provider
from tests.mutating import applied
from tests.projects import commit, task

SHAPES = '''"""Shapes."""


def fits(sizes, limit):
    return any(size <= limit for size in sizes)


def parts(whole, size):
    return divmod(size, whole)


def area(width, height):
    return width + height
'''
FITS = SHAPES.replace("any(", "all(")
PARTS = SHAPES.replace("divmod(size, whole)", "divmod(whole, size)")
BOTH = FITS.replace("divmod(size, whole)", "divmod(whole, size)")
IDLE = SHAPES.replace("width + height", "width - height")
TESTS = """from shapes import area, fits, parts


def test_fits():
    assert fits([1, 2], 2) and not fits([1, 3], 2)


def test_parts():
    assert parts(7, 3) == (2, 1)


def test_area():
    assert area(2, 3) == 6
"""
FIT, PART, AREA = (f"test_shapes.py::test_{name}" for name in ("fits", "parts", "area"))


def patch(new: str, old: str = SHAPES, context: int = 3) -> bytes:
    """As git writes it."""
    lines = unified_diff(old.splitlines(True), new.splitlines(True), "a/shapes.py", "b/shapes.py", n=context)
    return "".join(lines).encode()


def prior(new: str, *gained: str, outcome: Any = "improved") -> Summary:
    """What a rollout came to that made this of the file."""
    return Summary(1, "journal", outcome, tests_passed=gained, patch_blob=new)


@pytest.fixture(scope="module")
def position(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Run, Position]]:
    """A project with three bugs, measured, and a position at its base state."""
    place = tmp_path_factory.mktemp("shapes")
    wanted = task(commit(place / "repo", {"shapes.py": SHAPES, "test_shapes.py": TESTS}), statement="shapes are wrong")
    with Run.open(place / "run") as run:
        policy = MutatePolicy(lambda: Spectrum.from_json(run.note(0, "spectrum")))
        budget = Budget(max_nodes=1)
        parts = Components(provider, policy, BestFirst(), PassingTests(), budget, baseline_runs=1, localise=True)
        solve(wanted, parts, run)
        with provider.at(run.tree.root.snapshot) as box:
            yield run, Position(wanted, (run.tree.root,), 0, (), (), box)


def proposals(position: tuple[Run, Position], *told: Summary, **changes: Any) -> Iterator[Proposal]:
    """All that a policy proposes in a round that is told this."""
    run, place = position
    briefing = Briefing(2, told) if told else None
    policy = MutatePolicy(lambda: Spectrum.from_json(run.note(0, "spectrum")), patch=lambda new: patch(new))
    made = (
        policy.propose(replace(place, index=index, briefing=briefing, **changes), Random(0)) for index in range(10**6)
    )
    return takewhile(lambda proposal: proposal.actions, made)


def made(proposal: Proposal) -> str:
    """The file that a proposal makes."""
    edits = [action for action in proposal.actions if isinstance(action, Edit)]
    return applied(SHAPES.encode(), edits).decode()


def first(some: Iterator[Proposal], count: int) -> list[str]:
    return [made(proposal) for _, proposal in zip(range(count), some, strict=False)]


@pytest.mark.namespace
class TestALaterRound:
    def test_first_takes_up_repairs_of_different_tests_together(self, position: tuple[Run, Position]) -> None:
        (proposal, *_) = proposals(position, prior(FITS, FIT), prior(PARTS, PART))
        assert made(proposal) == BOTH
        assert proposal.label == "mutate: earlier repairs together in shapes.py"

    def test_does_not_join_what_is_in_one_place_or_mends_the_same_or_mended_nothing(
        self, position: tuple[Run, Position]
    ) -> None:
        other = SHAPES.replace("any(size", "any(not size")
        for second in (prior(other, PART), prior(PARTS, FIT), prior(PARTS)):
            proposal = next(proposals(position, prior(FITS, FIT), second))
            assert "together" not in proposal.label

    def test_looks_for_what_no_rollout_has_mended(self, position: tuple[Run, Position]) -> None:
        mended = [prior(FITS, FIT, outcome="solved"), prior(PARTS, PART, outcome="solved")]
        lines = [line for file in first(proposals(position, *mended), 10) for line in _changed(file)]
        assert set(lines) <= {12, 13}

    def test_puts_lines_back_where_an_edit_changed_nothing(self, position: tuple[Run, Position]) -> None:
        def at_area(*told: Summary) -> int:
            return sum(13 in _changed(file) for file in first(proposals(position, *told), 30))

        assert at_area(prior(IDLE, outcome="unchanged")) < at_area(prior(IDLE, outcome="worse"))

    def test_does_not_propose_what_an_earlier_one_has(self, position: tuple[Run, Position]) -> None:
        before = list(islice(proposals(position), 30))
        earlier = frozenset(canonical(proposal.actions) for proposal in before[:20])
        again = list(islice(proposals(position, earlier=earlier), 10))
        assert [p.actions for p in again] == [p.actions for p in before[20:]]
        told = prior(FITS, FIT), prior(PARTS, PART)
        later = islice(proposals(position, *told, earlier=earlier), 30)
        assert not any(canonical(p.actions) in earlier for p in later)

    def test_proposes_the_same_for_the_same_briefing(self, position: tuple[Run, Position]) -> None:
        told = prior(FITS, FIT), prior(PARTS, PART), prior(IDLE, outcome="unchanged")
        assert first(proposals(position, *told), 50) == first(proposals(position, *told), 50)

    def test_passes_over_a_repair_that_is_not_made_by_editing_files_that_are_there(
        self, position: tuple[Run, Position]
    ) -> None:
        run, place = position
        new = b"--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+x = 1\n"
        briefing = Briefing(2, (prior("new", FIT), prior("old", PART), prior("area", AREA)))
        patches = {"new": new, "old": patch(PARTS), "area": patch(IDLE)}
        policy = MutatePolicy(lambda: Spectrum.from_json(run.note(0, "spectrum")), patches.__getitem__)
        proposal = policy.propose(replace(place, briefing=briefing), Random(0))
        assert made(proposal) == PARTS.replace("width + height", "width - height")


def _changed(file: str) -> list[int]:
    """The lines of the base state that a file has not."""
    pairs = zip(SHAPES.splitlines(), file.splitlines(), strict=False)
    return [number for number, (old, new) in enumerate(pairs, 1) if old != new][:1]


def _repair(start: int, end: int, *gained: str, text: str = "x") -> Repair:
    return Repair({"a.py": (Change(start, end, text),)}, frozenset(gained))


class TestJoiningRepairs:
    def test_puts_those_first_that_make_the_most_tests_pass_then_the_fewest(self) -> None:
        a, b, c = _repair(0, 1, "a"), _repair(5, 6, "b", "c"), _repair(8, 9, "d")
        gains = [sorted(repair.gained) for repair in combined([a, b, c])]
        assert gains == [["a", "b", "c", "d"], ["a", "b", "c"], ["b", "c", "d"], ["a", "d"]]

    def test_takes_a_change_that_several_made_once(self) -> None:
        shared = Change(0, 1, "x")
        one = Repair({"a.py": (shared, Change(4, 5, "y"))}, frozenset("a"))
        two = Repair({"a.py": (shared, Change(8, 9, "z"))}, frozenset("b"))
        (both,) = combined([one, two])
        assert [change.start for change in both.changes["a.py"]] == [0, 4, 8]

    @pytest.mark.parametrize(
        ("two", "joins"), [((4, 6), False), ((5, 9), True), ((5, 5), False), ((6, 6), True)], ids=str
    )
    def test_leaves_those_apart_whose_order_would_matter(self, two: tuple[int, int], joins: bool) -> None:
        assert bool(list(combined([_repair(2, 5, "a"), _repair(*two, "b")]))) == joins


lines = st.lists(st.sampled_from(["a = 1", "b = 2", "", "c = 3", "d = 'é'"]), max_size=12)


@given(old=lines, new=lines, context=st.sampled_from([0, 3]), ends=st.sampled_from(["\n", "\r\n"]))
def test_a_patch_as_changes_makes_the_file_that_the_patch_makes(
    old: list[str], new: list[str], context: int, ends: str
) -> None:
    before, after = ("".join(line + ends for line in each) for each in (old, new))
    data = before.encode()
    made_of = _changes(data, patch(after, before, context))
    assert apply(data, made_of) == after.encode()


def _changes(data: bytes, written: bytes) -> Sequence[Change]:
    source = Source("shapes.py", data)
    found = repairs([prior("any", "t")], ["t"], lambda name: written, lambda path: source)
    return found[0].changes["shapes.py"] if found else ()
