"""What the mutating policy proposes for a file, as properties of every candidate."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.policy.mutate.candidates import candidates, distinct
from agent.policy.mutate.source import Source, Unsupported, edits
from tests.mutating import QUEUE, TABS, applied, every_line, results
from tests.tiers import examples

LINES = QUEUE.count("\n")
layouts = st.builds(
    lambda newline, final, text: (text if final else text.rstrip("\n")).replace("\n", newline).encode(),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
    st.sampled_from([QUEUE, TABS, "# -*- coding: utf-8 -*-\nnamé = 'ü'\n\n\ndef é(x):\n    return x - 1  # ß\n"]),
)


@settings(max_examples=examples(12, 4), deadline=None)
@given(layouts)
def test_every_candidate_compiles_and_differs_from_all_others(data):
    found = results(data, limit=250)
    assert len(set(found)) == len(found) > 10
    assert data not in found
    for result in found:
        ast.parse(result)


@settings(max_examples=examples(12, 4), deadline=None)
@given(layouts, st.integers(1, LINES))
def test_what_lies_outside_the_suspicious_lines_statement_stays_as_it_was(data, line):
    source = Source("module.py", data)
    for candidate, result in distinct(candidates([source], {"module.py": {line: 1.0}}, "", {}), {"module.py": source}):
        first = min(c.start for c in candidate.changes)
        last = max(c.end for c in candidate.changes)
        assert result.startswith(data[:first])
        assert result.endswith(data[last:])


@settings(max_examples=examples(8, 3), deadline=None)
@given(layouts)
def test_a_file_keeps_its_line_ends(data):
    ends = b"\r\n" if b"\r\n" in data else b"\n"
    final = data.endswith(b"\n")
    for result in results(data, limit=250):
        assert result.count(b"\n") == result.count(ends)
        assert result.endswith(b"\n") == final


@settings(max_examples=examples(8, 3), deadline=None)
@given(layouts)
def test_edits_at_lines_make_the_same_file_as_the_changes(data):
    source = Source("module.py", data)
    found = distinct(candidates([source], every_line(source), "", {}), {"module.py": source})
    for _, (candidate, result) in zip(range(250), found, strict=False):
        assert applied(data, edits(source, candidate.changes)) == result


def test_pairs_of_edits_at_far_places_are_applied_from_the_end():
    source = Source("module.py", QUEUE.encode())
    found = list(distinct(candidates([source], every_line(source), "", {}), {"module.py": source}))
    pairs = [(c, r) for c, r in found if len(edits(source, c.changes)) > 1]
    assert len(pairs) > 20
    for candidate, result in pairs:
        assert applied(source.data, edits(source, candidate.changes)) == result


def test_the_order_is_the_same_every_time():
    assert results(QUEUE.encode(), limit=300) == results(QUEUE.encode(), limit=300)


def test_tabs_indent_what_is_inserted_into_a_file_of_tabs():
    inserted = [r for r in results(TABS.encode()) if r.count(b"\n") > TABS.count("\n")]
    assert inserted
    for result in inserted:
        assert not any(line.startswith(b" ") for line in result.splitlines())


def test_a_docstring_is_no_place_for_a_defect():
    for result in results(QUEUE.encode(), limit=400):
        assert b'"""A queue of jobs."""' in result
        assert b'"""The jobs that are due."""' in result


def test_frozen_bytes_are_left_alone():
    source = Source("module.py", b"def f(a, b):\n    return a - b\n")
    start = source.data.index(b"a - b")
    found = candidates([source], every_line(source), "", {"module.py": [(start, start + 5)]})
    for _, result in distinct(found, {"module.py": source}):
        assert b"a - b" in result


def test_a_name_in_the_issue_brings_its_function_forward():
    data = b"def first(a):\n    return a - 1\n\n\ndef second(a):\n    return a - 1\n"
    source = Source("module.py", data)
    best = candidates([source], every_line(source), "`second` is wrong", {})[0]
    assert best.line == 6


@pytest.mark.parametrize(
    "data",
    [b"\xff\xfe", b"def f(:\n", b"\xef\xbb\xbfx = 1\n", b"x = 1\ry = 2\n"],
    ids=["utf-16", "syntax", "bom", "cr"],
)
def test_a_file_that_cannot_be_edited_by_span_is_refused(data):
    with pytest.raises(Unsupported):
        Source("module.py", data)


FIXES = {
    "comparison": ("if a < b:\n        return a", "if a <= b:\n        return a"),
    "off by one": ("return range(a)", "return range(a + 1)"),
    "swapped arguments": ("return divmod(a, b)", "return divmod(b, a)"),
    "forgotten check": ("if b.next is a:\n        return 1", "if b is None or b.next is a:\n        return 1"),
    "wrapped in a text": ('return f"{a} pieces"', 'return f"{int(a)} pieces"'),
    "one-tuple": ('return "%s!" % a', 'return "%s!" % (a,)'),
    "unused variable": ("c = dict(a, b=b)\n    return dict(a)", "c = dict(a, b=b)\n    return c"),
    "kindred function": ("return any(x > b for x in a)", "return all(x > b for x in a)"),
    "kindred method": ("return b.match(a)", "return b.fullmatch(a)"),
    "empty for one": ("return []", "return [[]]"),
    "caught too little": (
        "try:\n        return a[b]\n    except KeyError:\n        return 0",
        "try:\n        return a[b]\n    except (KeyError, IndexError):\n        return 0",
    ),
    "missing insertion": (
        "c = set()\n    for x in a:\n        if x in c:\n            return x\n    return b",
        "c = set()\n    for x in a:\n        if x in c:\n            return x\n        c.add(x)\n    return b",
    ),
    "missing break": (
        "for x in a:\n        if x:\n            b = x\n    return b",
        "for x in a:\n        if x:\n            b = x\n            break\n    return b",
    ),
    "quantifier": (
        'import re\n    return re.match(r"[a-z]+(\\d)", a)',
        'import re\n    return re.match(r"[a-z]*(\\d)", a)',
    ),
    "truth for a None check": ("if a and b > a:\n        return b", "if a is not None and b > a:\n        return b"),
    "branch for a loop": ("if b > a:\n        b -= a\n    return b", "while b > a:\n        b -= a\n    return b"),
    "usual argument": ('return a.split("=")', 'return a.split("=", 1)'),
    "swapped indices": ("return [[a[x][y] for x in b] for y in b]", "return [[a[y][x] for x in b] for y in b]"),
    "condition and number": ("if len(a) == 0:\n        return b", "if len(a) <= 1:\n        return b"),
    "moved out of a loop": (
        "c = []\n    for x in a:\n        b = x\n        c.append(b)\n    return c",
        "c = []\n    for x in a:\n        b = x\n    c.append(b)\n    return c",
    ),
}


@pytest.mark.parametrize(("wrong", "right"), FIXES.values(), ids=FIXES.keys())
def test_the_right_edit_is_among_the_first(wrong, right):
    head = "def f(a, b):\n    "
    assert (head + right + "\n").encode() in results((head + wrong + "\n").encode(), limit=60)
