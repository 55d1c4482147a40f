"""Source changes: the part of a patch that changes the program."""

from __future__ import annotations

import pytest

from agent.solver.same_change import program, source_change


def is_test(path: str) -> bool:
    return path.startswith("tests/")


def section(path: str, text: str = "+x = 2", *, new: bool = False, mode: bool = False) -> bytes:
    """The change of one file, as git writes it."""
    before = "/dev/null" if new else f"a/{path}"
    head = f"diff --git a/{path} b/{path}\n" + ("new file mode 100644\n" if new else "")
    return (head if mode else f"{head}--- {before}\n+++ b/{path}\n@@ -1 +1 @@\n{text}\n").encode()


def test_tests_are_left_out():
    assert source_change(section("m.py") + section("tests/test_m.py"), is_test) == section("m.py")


def test_two_patches_that_change_nothing_but_tests_are_not_the_same_change():
    one, other = section("tests/test_a.py"), section("tests/test_b.py")
    assert [source_change(each, is_test) for each in (one, other)] == [one, other]


def test_a_new_file_at_the_top_that_nothing_names_is_a_scratch_file():
    assert source_change(section("m.py") + section("try_it.py", "+import m", new=True), is_test) == section("m.py")


def test_a_new_file_that_the_program_uses_is_part_of_the_change():
    patch = section("m.py", "+from helpers import f") + section("helpers.py", "+def f(): ...", new=True)
    assert source_change(patch, is_test) == patch


def test_a_new_file_in_a_folder_and_a_file_that_only_changes_its_mode_are_part_of_the_change():
    patch = section("run.sh", mode=True) + section("package/new.py", new=True)
    assert source_change(patch, is_test) == patch


def test_the_text_of_a_file_does_not_begin_another():
    patch = section("m.py", '+"diff --git a/tests/x b/tests/x"')
    assert source_change(patch, is_test) == patch


class TestTheProgramOfAChange:
    """`program`: what a source change makes of the files that it changes."""

    @pytest.mark.parametrize("after", ["x = 2\n", "x = 2  # two\n", "# two\n\nx = (2)\n"])
    def test_is_the_same_whatever_the_comments_and_the_layout(self, after):
        assert self.made({"m.py": after}) == self.made({"m.py": "x = 2"})

    @pytest.mark.parametrize("after", ["x = 3\n", "x = '2'\n", '"""Two."""\nx = 2\n'])
    def test_is_another_where_the_code_or_a_docstring_is(self, after):
        assert self.made({"m.py": after}) != self.made({"m.py": "x = 2"})

    def test_is_another_in_another_file(self):
        assert self.made({"m.py": "x = 2"}) != self.made({"n.py": "x = 2"})

    @pytest.mark.parametrize("name", ["m.c", "broken.py", "gone.py"])
    def test_is_the_change_itself_of_a_file_that_is_no_python_or_is_gone(self, name):
        files = {} if name == "gone.py" else {name: "x = = 2"}
        one, other = (self.made(files, section(name, text)) for text in ("+x = = 2", "+x  =  = 2"))
        assert one != other

    @staticmethod
    def made(files, source=None):
        def read(path):
            if path not in files:
                raise FileNotFoundError(path)
            return files[path].encode()

        return program(b"".join(map(section, files)) if source is None else source, read)
