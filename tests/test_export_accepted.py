"""Patches that were accepted: the nearest of several counts."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import UsageError
from agent.learning.export.accepted import AcceptedPatches, change_of, similarity

texts = st.lists(st.text("ab =+()", max_size=9), max_size=5)


def patch(lines, path="calc.py"):
    head = f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1,{len(lines)} @@\n-old\n"
    return head + "".join(f"+{line}\n" for line in lines)


def accepted(folder, *patches):
    file = folder / "accepted.jsonl"
    file.write_text("".join(json.dumps({"instance_id": "t", "patch": each}) + "\n" for each in patches))
    return AcceptedPatches.read(file)


def test_any_of_several_accepted_patches_counts_as_right(tmp_path):
    found = accepted(tmp_path, patch(["return a + b"]), patch(["return sum((a, b))"]))
    assert found.nearest("t", patch(["return sum((a, b))"]).encode()) == 1.0
    assert found.nearest("t", patch(["return a + b"]).encode()) == 1.0
    assert found.nearest("t", patch(["return a - b"]).encode()) < 1.0


def test_what_a_patch_does_to_tests_does_not_count(tmp_path):
    found = accepted(tmp_path, patch(["return a + b"]))
    both = patch(["return a + b"]) + patch(["assert add(1, 1) == 2"], "tests/test_calc.py")
    assert found.nearest("t", both.encode()) == 1.0


@given(texts, texts)
def test_a_similarity_is_a_share_and_whole_for_the_same_change(one, other):
    first, second = (change_of(patch(lines).encode()) for lines in (one, other))
    assert 0 <= similarity(first, second) <= 1
    assert similarity(first, first) == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "accepted.jsonl:1: not JSON"),
        ('{"instance_id": "t"}', "accepted.jsonl:1: a row needs an instance_id and a patch"),
        ("[]", "accepted.jsonl:1: a row needs"),
        ("\n", "has no rows"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_its_line(tmp_path, text, says):
    (tmp_path / "accepted.jsonl").write_text(text)
    with pytest.raises(UsageError, match=says):
        AcceptedPatches.read(tmp_path / "accepted.jsonl")


def test_a_task_without_an_accepted_patch_is_named(tmp_path):
    with pytest.raises(UsageError, match="none for the task 'other'"):
        accepted(tmp_path, patch(["x"])).nearest("other", b"")
