"""The benchmark of choosing among candidates whose verdict is known."""

from argparse import Namespace
from random import Random

from benchmarks.perf.selection import WAYS, Case, OwnTest, cases
from benchmarks.perf.variants import MOST, Variant, patches

BASE = Variant(b"", False, False, frozenset(), {"t1": "1 == 2", "t2": "1 == 3"})
RIGHT = [Variant(f"right {n}".encode(), True, False, frozenset({"t1", "t2"}), {}) for n in range(2)]
WRONG = [Variant(f"wrong {n}".encode(), False, False, frozenset({"t1"}), {"t2": f"{n} == 3"}) for n in range(5, 7)]
SHOWS, MISTAKEN = OwnTest("t2"), OwnTest("t2", "5 == 3")
PATCH = b"""diff --git a/m.py b/m.py
--- a/m.py
+++ b/m.py
@@ -1,2 +1,2 @@
-    return a
+    return a + b if a is not None and b == 0 else max(a, b)
 y = 1
@@ -9,1 +9,1 @@
-x = True
+x = False
"""


def test_a_variant_lacks_a_hunk_or_differs_in_one_added_line():
    reference, *others = patches(PATCH)
    assert reference == PATCH
    assert 3 < len(others) < MOST
    assert len({*others, reference}) == len(others) + 1
    for other in others:
        kept = set(reference.splitlines()) & set(other.splitlines())
        hunks = other.count(b"@@ -")
        assert (hunks == 1) or (hunks == 2 and len(kept) == len(set(reference.splitlines())) - 1)


def test_a_test_that_two_right_candidates_pass_lets_the_matrix_choose_one_of_them():
    case = Case(BASE, [WRONG[0], WRONG[1], *RIGHT], [[], [], [SHOWS], []])
    assert case.right(WAYS["matrix"](case, 0))
    untested = Case(BASE, [WRONG[0], WRONG[1], *RIGHT], [[], [], [], []])
    assert not untested.right(WAYS["matrix"](untested, 0))  # equal in all: the oldest


def test_a_test_that_asserts_its_authors_mistake_counts_only_where_another_makes_the_same():
    alone = Case(BASE, [WRONG[0], *RIGHT], [[MISTAKEN], [SHOWS], []])
    assert alone.matrix(alone.candidates, [1, 2, 3]).scores([1, 2, 3]) == {1: 0.0, 2: 1.0, 3: 1.0}
    assert MISTAKEN.end(WRONG[0]) == "passed"
    assert {MISTAKEN.end(other) for other in (BASE, WRONG[1], *RIGHT)} == {"failed"}


def test_a_set_has_right_and_wrong_candidates_and_none_that_breaks_a_test():
    harmful = Variant(b"harmful", False, True, frozenset({"t1"}), {"t2": ""})
    given = Namespace(n=4, right=0.5, tests=0.8, misled=0.5)
    drawn = list(cases([BASE, *RIGHT, *WRONG, harmful], 50, given, Random(0)))
    assert len(drawn) == 50
    for case in drawn:
        assert {variant.right for variant in case.variants} == {True, False}
        assert harmful not in case.variants
        ends = [
            (test.end(variant), test.end(BASE))
            for variant, own in zip(case.variants, case.tests, strict=True)
            for test in own
        ]
        assert set(ends) <= {("passed", "failed")}
    assert not list(cases([BASE, *RIGHT, harmful], 50, given, Random(0)))


def test_a_judge_that_reads_the_matrix_finds_the_right_one_more_often_than_one_that_does_not():
    drawn = list(cases([BASE, *RIGHT, *WRONG], 300, Namespace(n=4, right=0.5, tests=0.8, misled=0.3), Random(1)))

    def share(way: str) -> float:
        return sum(case.right(WAYS[way](case, seed)) for seed, case in enumerate(drawn)) / len(drawn)

    assert share("any") < share("votes, q = 0.6") < share("reading, q = 0.6")
    assert share("votes, q = 0.6") < share("votes, q = 0.8")
