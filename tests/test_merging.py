"""Three-way merges by git: what goes together is put together, byte for byte; what does not is named."""

from __future__ import annotations

import subprocess

import pytest

from sandboxes.forking.merge import merge
from sandboxes.git.diff import Difference, Side

LINES = b"".join(b"line %d\n" % n for n in range(20))


def file(content, mode=0o644):
    return Side("f", mode, content)


def changed(old, new, path="a.txt"):
    return Difference(path, old, new)


def edited(old, new):
    return file(LINES.replace(old, new))


BASE = file(LINES)
TOP, BOTTOM = edited(b"line 1\n", b"first\n"), edited(b"line 18\n", b"last\n")


def after(patch, folder, files):
    """The files, with the patch applied."""
    for path, side in files.items():
        (folder / path).write_bytes(side.content)
    if patch:
        subprocess.run(["git", "apply", "-p1", "-"], cwd=folder, input=patch, check=True)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_edits_of_two_places_of_a_file_go_together(tmp_path):
    done = merge([changed(BASE, TOP)], [changed(BASE, BOTTOM)])
    assert done.conflicts == ()
    both = LINES.replace(b"line 1\n", b"first\n").replace(b"line 18\n", b"last\n")
    assert after(done.patch, tmp_path, {"a.txt": TOP}) == {"a.txt": both}


def test_the_same_edit_on_both_sides_adds_nothing():
    assert merge([changed(BASE, TOP)], [changed(BASE, TOP)]).patch == b""


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ((BASE, TOP), (BASE, edited(b"line 1\n", b"premier\n"))),
        ((BASE, None), (BASE, TOP)),
        ((None, TOP), (None, BOTTOM)),
        ((file(b"\0a"), file(b"\0b")), (file(b"\0a"), file(b"\0c"))),
        ((None, Side("l", 0o777, b"here")), (None, Side("l", 0o777, b"there"))),
    ],
    ids=["one line", "removed and edited", "added twice", "binary", "links"],
)
def test_what_does_not_go_together_is_named_and_changes_nothing(ours, theirs):
    beside = changed(None, file(b"new"), "b.txt")
    done = merge([changed(*ours)], [changed(*theirs), beside])
    assert (done.patch, done.conflicts) == (b"", ("a.txt",))


def test_files_that_one_side_adds_removes_or_makes_executable_are_brought_over(tmp_path):
    theirs = [
        changed(BASE, None),
        changed(None, file(b"\0\xff new"), "b.bin"),
        changed(file(b"#!/bin/sh\n"), file(b"#!/bin/sh\n", 0o755), "c.sh"),
    ]
    done = merge([changed(None, TOP, "d.txt")], theirs)
    files = {"a.txt": BASE, "c.sh": file(b"#!/bin/sh\n"), "d.txt": TOP}
    assert after(done.patch, tmp_path, files) == {"b.bin": b"\0\xff new", "c.sh": b"#!/bin/sh\n", "d.txt": TOP.content}
    assert (tmp_path / "c.sh").stat().st_mode & 0o100


def test_an_edit_follows_a_file_that_the_other_side_renamed(tmp_path):
    done = merge([changed(BASE, None), changed(None, TOP, "renamed.txt")], [changed(BASE, BOTTOM)])
    assert done.conflicts == ()
    both = LINES.replace(b"line 1\n", b"first\n").replace(b"line 18\n", b"last\n")
    assert after(done.patch, tmp_path, {"renamed.txt": TOP}) == {"renamed.txt": both}


def test_a_path_that_is_no_text_is_named_as_it_is():
    odd = "\udcff \n.txt"
    done = merge([changed(BASE, TOP, odd)], [changed(BASE, None, odd)])
    assert done.conflicts == (odd,)
