"""Which tests executed what a patch changes."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.measure.diffs import FilePatch, parse
from agent.measure.probing.spectrum import Spectrum, affected

SPECTRUM = Spectrum(
    executed={
        "t::one": {"a.py": (2, 3)},
        "t::two": {"a.py": (6, 7)},
        "t::both": {"a.py": (2, 6)},
        "t::b": {"b.py": (1,)},
    },
    imported={"a.py": (1, 5), "c.py": (1,)},
)


def hit(path="a.py", gone=(), beside=()):
    return affected(SPECTRUM, [FilePatch(path, gone=set(gone), beside=set(beside))])


def test_a_changed_line_affects_the_tests_that_executed_it():
    assert hit(gone={3}) == {"t::one"}
    assert hit(gone={6}) == {"t::two", "t::both"}


def test_a_line_that_is_added_affects_the_tests_of_its_neighbours():
    assert hit(beside={7, 8}) == {"t::two"}


@pytest.mark.parametrize("gone", [{1}, {1, 3}, {9}])
def test_what_runs_on_import_or_in_no_test_affects_every_user_of_the_file(gone):
    assert hit(gone=gone) == {"t::one", "t::two", "t::both"}


@pytest.mark.parametrize("path", ["c.py", "new.py", "data.txt"])
def test_a_file_that_no_test_executed_says_nothing(path):
    assert hit(path, gone={1}) == frozenset()


def test_files_add_up():
    patches = [FilePatch("a.py", gone={3}), FilePatch("b.py", gone={1})]
    assert affected(SPECTRUM, patches) == {"t::one", "t::b"}


# ---- the lines of a patch

lines = st.lists(st.sampled_from("abcd"), max_size=12)


@given(lines, lines, st.integers(0, 3))
def test_a_patch_says_which_old_lines_are_gone(old, new, context):
    ours = parse(patch_of(old, new, context))
    kept = [line for n, line in enumerate(old, 1) if not ours or n not in ours[0].gone]
    assert kept == [line for n, line in enumerate(new, 1) if not ours or n not in ours[0].added]


def test_lines_that_replace_others_are_beside_none():
    (patch,) = parse(patch_of("abcd", "axyd", 3))
    assert (patch.gone, patch.beside) == ({2, 3}, set())


@pytest.mark.parametrize(("new", "beside"), [("xabcd", {1}), ("abxycd", {2, 3}), ("abcdx", {4, 5})])
@pytest.mark.parametrize("context", [0, 3])
def test_lines_that_are_added_are_beside_their_neighbours(new, beside, context):
    (patch,) = parse(patch_of("abcd", new, context))
    assert (patch.gone, patch.beside) == (set(), beside)


def patch_of(old, new, context):
    both = ([f"{line}\n" for line in each] for each in (old, new))
    return "".join(difflib.unified_diff(*both, "a/a.py", "b/a.py", n=context)).encode()
