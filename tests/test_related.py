"""Which test files a change can reach, the nearest first."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.measure.inside import program_source
from agent.measure.inside.imports import survey
from agent.measure.scopes.changed import FileChange, file_change
from agent.measure.scopes.index import Index, read_index
from agent.measure.scopes.reach import BESIDE
from agent.measure.scopes.related import related
from sandboxes import Workspace


def index_of(place: Path, files: dict[str, str]) -> Index:
    for path, text in files.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(text)
    return Index.from_json(json.loads(json.dumps(survey(str(place)))))


def all_tests(index: Index) -> list[str]:
    return [path for path in index.files if path.rsplit("/", 1)[-1].startswith("test")]


@pytest.fixture
def near(tmp_path):
    """The related test files, for a tree of files and the change of one: what it was, what it is."""

    def near(files, path, before=None, after="changed = 1\n"):
        index = index_of(tmp_path, files)
        before = files.get(path) if before is None else before
        return related(index, {path: file_change(path, before, after)}, all_tests(index))

    return near


def names(found):
    return [each.file for each in found]


HUB = {
    "pkg/__init__.py": "from .a import *\nfrom .b import second\nfrom pkg.deep import third as other\n",
    "pkg/a.py": "__all__ = ['first']\ndef first():\n    return 1\ndef hidden():\n    return 2\n",
    "pkg/b.py": "def second():\n    return 2\n",
    "pkg/deep/__init__.py": "from .inner import third\n",
    "pkg/deep/inner.py": "def third():\n    return 3\n",
    "tests/test_one.py": "from pkg import first\n",
    "tests/test_two.py": "from pkg import second\n",
    "tests/test_three.py": "import pkg\npkg.other()\n",
    "tests/test_none.py": "import json\n",
}


class TestImports:
    def test_a_change_reaches_the_tests_that_import_the_file(self, near):
        files = {"a.py": "x = 1\n", "b.py": "y = 1\n", "test_p.py": "import a\n", "test_q.py": "import b\n"}
        (only,) = near(files, "a.py")
        assert (only.file, only.steps) == ("test_p.py", 1.0)

    def test_and_those_that_import_it_over_other_files_further_off(self, near):
        files = {
            "low.py": "x = 1\n",
            "middle.py": "from low import x\n",
            "high.py": "import middle\n",
            "test_h.py": "import high\n",
            "test_l.py": "import low\n",
            "test_m.py": "import middle\n",
        }
        found = near(files, "low.py")
        assert names(found) == ["test_l.py", "test_m.py", "test_h.py"]
        assert [each.steps for each in found] == [1.0, 2.0, 3.0]

    @pytest.mark.parametrize(
        ("path", "nearest"),
        [
            ("pkg/a.py", "tests/test_one.py"),
            ("pkg/b.py", "tests/test_two.py"),
            ("pkg/deep/inner.py", "tests/test_three.py"),
        ],
    )
    def test_a_name_is_followed_through_the_packages_that_pass_it_on(self, near, path, nearest):
        found = near(HUB, path)
        assert found[0].file == nearest
        assert found[0].steps < BESIDE
        assert found[1].distance > found[0].distance + 1

    def test_what_a_package_runs_when_it_is_imported_is_reached_too_and_nothing_else(self, near):
        assert set(names(near(HUB, "pkg/b.py"))) == {f"tests/test_{name}.py" for name in ("one", "two", "three")}

    def test_relative_imports_are_followed(self, near):
        files = {
            "pkg/__init__.py": "",
            "pkg/low.py": "x = 1\n",
            "pkg/sub/__init__.py": "",
            "pkg/sub/mod.py": "from .. import low\nfrom ..low import x\n",
            "pkg/sub/tests/__init__.py": "",
            "pkg/sub/tests/test_it.py": "from ..mod import x\nfrom . import helper\n",
            "pkg/sub/tests/helper.py": "y = 1\n",
        }
        assert near(files, "pkg/low.py")[0].steps < BESIDE
        assert near(files, "pkg/sub/tests/helper.py")[0].steps < BESIDE

    def test_packages_without_an_init_file_are_packages(self, near):
        files = {
            "src/company/tool/core.py": "def run():\n    return 1\n",
            "tests/test_a.py": "from company.tool import core\n",
            "tests/test_b.py": "import company.tool.core as it\nit.run()\n",
            "tests/test_c.py": "from company.tool.core import run\n",
        }
        found = near(files, "src/company/tool/core.py")
        assert sorted(names(found)) == ["tests/test_a.py", "tests/test_b.py", "tests/test_c.py"]
        assert all(each.steps < BESIDE for each in found)

    def test_the_workspace_may_hold_several_projects(self, near):
        files = {
            "packages/one/src/one/__init__.py": "",
            "packages/one/src/one/core.py": "x = 1\n",
            "packages/two/tests/test_two.py": "from one.core import x\n",
        }
        assert names(near(files, "packages/one/src/one/core.py")) == ["packages/two/tests/test_two.py"]

    @pytest.mark.parametrize(
        "text",
        [
            "def test_it():\n    from low import x\n",
            "import importlib\nlow = importlib.import_module('low')\n",
            "low = __import__('low')\n",
            "import pytest\nlow = pytest.importorskip('low')\n",
            "try:\n    import low\nexcept ImportError:\n    low = None\n",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import low\n",
            "with open('x'):\n    import low as l\n",
        ],
    )
    def test_imports_count_wherever_they_stand(self, near, text):
        assert names(near({"low.py": "x = 1\n", "test_it.py": text}, "low.py")) == ["test_it.py"]

    def test_of_a_module_that_is_no_file_the_package_is_reached(self, near):
        files = {"pkg/sub/__init__.py": "from .low import x\n", "pkg/sub/low.py": "x = 1\n"}
        assert names(near(files | {"test_it.py": "import pkg.sub._speedups\n"}, "pkg/sub/low.py")) == ["test_it.py"]

    def test_a_module_that_a_string_names_is_reached(self, near):
        files = {
            "pkg/__init__.py": "",
            "pkg/backend.py": "class Backend:\n    pass\n",
            "test_it.py": "BACKEND = 'pkg.backend.Backend'\n",
            "test_other.py": "BACKEND = 'other.backend.Thing'\n",
        }
        assert names(near(files, "pkg/backend.py")) == ["test_it.py"]

    @pytest.mark.parametrize("argument", ["-m', 'pkg", "-m', 'pkg.cli", "pkg/cli.py", "./pkg/cli.py"])
    def test_a_program_that_a_test_runs_is_reached(self, near, argument):
        files = {
            "pkg/__init__.py": "",
            "pkg/__main__.py": "from pkg.cli import main\n",
            "pkg/cli.py": "def main(): pass\n",
            "test_it.py": f"import subprocess\nsubprocess.run(['python', '{argument}'])\n",
            "test_other.py": "import subprocess\nsubprocess.run(['python', 'other'])\n",
        }
        assert near(files, "pkg/cli.py")[0].file == "test_it.py"

    def test_what_only_a_run_will_tell_may_be_anything_beside(self, near):
        files = {
            "pkg/__init__.py": "",
            "pkg/load.py": "import importlib\ndef load(name):\n    return importlib.import_module('pkg.' + name)\n",
            "pkg/plugin.py": "x = 1\n",
            "test_it.py": "from pkg.load import load\n",
        }
        assert names(near(files, "pkg/plugin.py")) == ["test_it.py"]

    def test_what_python_cannot_read_is_read_line_by_line(self, near):
        broken = "from low import (x,\n    y)\nimport os\nprint 'old'\ndef test_it(:\n"
        assert names(near({"low.py": "x = y = 1\n", "test_it.py": broken}, "low.py")) == ["test_it.py"]

    def test_imports_in_a_circle_come_to_an_end(self, near):
        files = {
            "pkg/__init__.py": "from .a import *\nfrom pkg import a, thing\n",
            "pkg/a.py": "from pkg import *\nfrom .b import x\nfrom pkg import ghost\n",
            "pkg/b.py": "from .a import x\nfrom . import b\nimport pkg.b\n",
            "test_it.py": "from pkg import x, ghost\nimport pkg\npkg.a.b.a.x\n",
        }
        assert names(near(files, "pkg/b.py")) == ["test_it.py"]

    def test_a_file_of_the_project_is_not_taken_for_one_of_pythons_own(self, near):
        files = {"tools/json.py": "x = 1\n", "tests/__init__.py": "", "tests/test_it.py": "import json\n"}
        assert near(files, "tools/json.py") == []


class TestOrder:
    def test_a_test_that_is_changed_itself_comes_first(self, near):
        files = {"a.py": "x = 1\n", "test_a.py": "import a\n", "test_b.py": "import a\n"}
        index_change = near(files, "test_b.py")
        assert (index_change[0].file, index_change[0].distance) == ("test_b.py", 0.0)

    def test_then_the_one_that_is_named_after_the_file(self, near):
        files = {"pkg/__init__.py": "", "pkg/shape.py": "x = 1\n"}
        files |= {f"tests/test_{name}.py": "from pkg.shape import x\n" for name in ("aaa", "shape", "zzz")}
        found = near(files, "pkg/shape.py")
        assert found[0].file == "tests/test_shape.py"

    def test_tests_that_import_what_is_changed_come_before_those_that_import_its_neighbour(self, near):
        before = (
            "def one(): pass\n\ndef two():\n    return 2\n\ndef both(): return _help()\n\ndef _help(): return two()\n"
        )
        files = {"a.py": before}
        files |= {f"test_{x}.py": f"from a import {name}\n" for x, name in (("p", "one"), ("q", "both"), ("r", "two"))}
        found = near(files, "a.py", before, before.replace("return 2", "return 3"))
        assert names(found) == ["test_r.py", "test_q.py", "test_p.py"]

    def test_of_tests_as_near_the_one_that_talks_of_the_change_comes_first(self, near):
        before = "class Queue:\n    def next_due(self):\n        return 1\n"
        files = {"pkg/__init__.py": "", "pkg/q.py": before}
        uses = {"a": "other", "b": "next_due", "c": "another"}
        files |= {f"tests/test_{x}.py": f"from pkg.q import Queue\nQueue().{name}()\n" for x, name in uses.items()}
        found = near(files, "pkg/q.py", before, before.replace("1", "2"))
        assert found[0].file == "tests/test_b.py"

    def test_labels_of_applications_are_names(self, near):
        files = {"django/__init__.py": "", "django/contrib/__init__.py": "", "django/utils.py": "x = 1\n"}
        for app in ("auth", "sites", "flatpages"):
            files |= {
                f"django/contrib/{app}/__init__.py": "",
                f"django/contrib/{app}/models.py": "class A:\n    pass\n",
            }
            files |= {
                f"tests/{app}_tests/__init__.py": "",
                f"tests/{app}_tests/models.py": "from django.utils import x\n",
                f"tests/{app}_tests/tests.py": "from .models import x\nfrom django.contrib.auth.models import A\n",
            }
        found = near(files, "django/contrib/auth/models.py")
        assert found[0].file == "tests/auth_tests/tests.py"
        assert set(names(found)) == {f"tests/{app}_tests/tests.py" for app in ("auth", "sites", "flatpages")}

    def test_tests_beside_the_source_come_in_the_order_of_their_names(self, near):
        files = {"sym/__init__.py": "from .a.b import f\nfrom .c.d import g\n"}
        for folder, name in (("a", "b"), ("c", "d")):
            files |= {f"sym/{folder}/__init__.py": "", f"sym/{folder}/{name}.py": "def f(): pass\ndef g(): pass\n"}
            files |= {f"sym/{folder}/tests/test_{x}.py": "from sym import f, g\n" for x in (name, "x")}
        found = names(near(files, "sym/a/b.py"))
        assert found[:2] == ["sym/a/tests/test_b.py", "sym/a/tests/test_x.py"]
        assert len(found) == 4

    def test_a_test_of_the_same_name_elsewhere_comes_after_the_one_in_the_right_place(self, near):
        files = {"p/__init__.py": "", "p/one/utils.py": "x = 1\n", "p/two/utils.py": "y = 1\n"}
        files |= {f"tests/{each}/test_utils.py": "import p.one.utils\n" for each in ("one", "two")}
        assert names(near(files, "p/one/utils.py")) == ["tests/one/test_utils.py", "tests/two/test_utils.py"]


DATA = {
    "pkg/__init__.py": "",
    "pkg/data/units.json": "{}",
    "pkg/load.py": "def load():\n    return open('data/units.json')\n",
    "tests/test_load.py": "from pkg.load import load\n",
    "tests/test_direct.py": "NAME = 'units.json'\n",
    "tests/test_other.py": "import pkg\nNAME = 'other/units.json'\n",
}


class TestOtherFiles:
    def test_a_data_file_reaches_those_that_have_its_name_in_a_string(self, near):
        found = near(DATA, "pkg/data/units.json", "{}", "[]")
        assert names(found) == ["tests/test_direct.py", "tests/test_load.py", "tests/test_other.py"]
        assert [each.steps for each in found][:2] == [1.0, 2.0]

    def test_a_data_file_among_tests_reaches_the_tests_around_it(self, near):
        files = {"a/tests/data/x.txt": "", "a/tests/test_it.py": "import json\n", "b/tests/test_it.py": "import json\n"}
        assert names(near(files, "a/tests/data/x.txt", "", "more")) == ["a/tests/test_it.py"]

    def test_a_conftest_reaches_all_tests_below_it(self, near):
        files = {"a/conftest.py": "x = 1\n", "a/test_a.py": "", "a/b/test_b.py": "", "c/test_c.py": ""}
        assert names(near(files, "a/conftest.py")) == ["a/test_a.py", "a/b/test_b.py"]

    @pytest.mark.parametrize(
        "path", ["conftest.py", "setup.py", "pyproject.toml", "pkg/__init__.py", "src/pkg/__init__.py"]
    )
    def test_what_decides_how_everything_is_run_reaches_everything(self, near, path):
        files = {path: "x = 1\n", "pkg/a.py": "", "test_a.py": "import pkg.a\n", "other/test_b.py": "import json\n"}
        assert set(names(near(files, path))) == {"test_a.py", "other/test_b.py"}

    def test_a_new_file_reaches_the_test_that_is_named_after_it(self, near):
        files = {"pkg/__init__.py": "", "tests/test_fresh.py": "import json\n", "tests/test_old.py": "import json\n"}
        assert names(near(files, "pkg/fresh.py", None, "x = 1\n")) == ["tests/test_fresh.py"]


class TestWhatIsChanged:
    TEXT = (
        "import os\n\nLIMIT = 3\n\n\nclass A:\n    def m(self):\n        return LIMIT  # about it\n\n\n"
        "def f():\n    return A().m()\n"
    )

    def changed(self, old, new):
        assert old in self.TEXT
        return file_change("a.py", self.TEXT, self.TEXT.replace(old, new))

    def test_a_method_is_named_with_its_class(self):
        assert self.changed("return LIMIT", "return 1 + LIMIT").names == {"A.m"}

    def test_who_uses_it_in_the_file_is_told(self):
        changed = self.changed("return LIMIT", "return 1 + LIMIT")
        assert changed.users == {"f": 1}
        assert changed.touched == {"A": 0, "f": 1}

    def test_a_variable_at_top_level_has_users_too(self):
        changed = self.changed("LIMIT = 3", "LIMIT = 4")
        assert (changed.names, changed.touched) == ({"LIMIT"}, {"LIMIT": 0, "A": 1, "f": 2})

    def test_words_are_those_of_code(self):
        assert self.changed("return LIMIT", "return limitless + LIMIT").words == {"LIMIT", "limitless"}

    def test_what_runs_on_import_may_change_anything(self):
        assert self.changed("import os", "import sys").touched is None
        assert file_change("a.py", None, self.TEXT).touched is None
        assert file_change("a.py", self.TEXT, "def (").touched is None

    def test_a_comment_at_top_level_does_not(self):
        assert self.changed("LIMIT = 3", "# so many\nLIMIT = 3").touched == {}


PARTS = st.sampled_from(["a", "b", "c"])
MODULES = st.lists(PARTS, min_size=1, max_size=3).map(lambda parts: "/".join(["pkg", *parts]) + "_.py")


@st.composite
def trees(draw):
    """Files that import one another at will, in packages with and without init files, and tests of some."""
    paths = draw(st.lists(MODULES, min_size=2, max_size=8, unique=True))
    folders = sorted({path.rsplit("/", number)[0] for path in paths for number in (1, 2) if path.count("/") >= number})
    inits = [f"{folder}/__init__.py" for folder in folders if draw(st.booleans())]
    dotted = [path.removesuffix(".py").replace("/", ".") for path in paths]
    lines = st.sampled_from([f"import {name}" for name in dotted] + [f"from {name} import *" for name in dotted])
    lines |= st.sampled_from(["from . import *", "from .a import *", "import pkg", "from pkg import a"])
    texts = st.lists(lines, max_size=4).map(lambda chosen: "\n".join([*chosen, "x = 1", ""]))
    files = {path: draw(texts) for path in [*inits, *paths]}
    files |= {f"tests/test_{number}.py": draw(texts) for number in range(draw(st.integers(1, 4)))}
    return files, draw(st.sampled_from(paths))


def surveyed(files: dict[str, str]) -> dict:
    """As the program in the sandbox writes it, without the disk."""
    from agent.measure.inside.imports import entry, number

    entries, counts = {}, {}
    for path, text in files.items():
        entries[path], _, counts[path] = entry(text, path.startswith("tests/"))
    return {"files": entries, "vocabulary": number(entries, counts), "left_out": 0}


class TestLaws:
    @given(trees())
    def test_a_test_that_imports_the_file_is_always_in_the_list(self, tree):
        files, path = tree
        files["tests/test_direct.py"] = f"import {path.removesuffix('.py').replace('/', '.')}\n"
        index = Index.from_json(surveyed(files))
        found = related(index, {path: FileChange()}, all_tests(index))
        assert "tests/test_direct.py" in names(found)
        assert len(set(names(found))) == len(found)

    @given(trees(), st.randoms())
    def test_the_order_of_the_files_does_not_matter(self, tree, rng):
        files, path = tree
        one = Index.from_json(surveyed(files))
        order = list(files)
        rng.shuffle(order)
        other = Index.from_json(surveyed({each: files[each] for each in order}))
        tests = all_tests(other)
        rng.shuffle(tests)
        assert related(one, {path: FileChange()}, sorted(tests)) == related(other, {path: FileChange()}, tests)

    @given(trees(), st.sampled_from(["docs/aaa.py", "docs/zzz.py", "tools/one/mmm.py"]))
    def test_a_file_that_has_nothing_to_do_with_it_changes_nothing_whatever_its_name(self, tree, name):
        files, path = tree
        one, other = (Index.from_json(surveyed(each)) for each in (files, files | {name: "import json\n"}))
        assert related(one, {path: FileChange()}, all_tests(one)) == related(
            other, {path: FileChange()}, all_tests(one)
        )


class TestReading:
    @pytest.mark.parametrize("data", [{}, {"files": 1}, {"files": {"a": [1]}, "vocabulary": [], "left_out": 0}])
    def test_what_is_no_index_is_refused(self, data):
        with pytest.raises(ValueError, match=r"not an index|unpack"):
            Index.from_json(data)

    def test_environments_and_what_is_built_are_left_out(self, tmp_path):
        files = {f"{folder}/a.py": "" for folder in (".git", "node_modules", "build", "x/site-packages", "own")}
        assert set(index_of(tmp_path, files | {"own/pyvenv.cfg": "", "kept/b.py": ""}).files) == {"kept/b.py"}

    def test_links_are_not_followed(self, tmp_path):
        (tmp_path / "loop").symlink_to(tmp_path)
        assert set(index_of(tmp_path, {"a.py": ""}).files) == {"a.py"}

    def test_bytes_that_are_no_text_do_no_harm(self, tmp_path):
        (tmp_path / "a.py").write_bytes(b"\xff\xfe\x00import b\n")
        (tmp_path / "c.py").write_bytes(b"# coding: latin-1\nimport b\nx = '\xe4'\n")
        index = index_of(tmp_path, {"b.py": ""})
        assert [each.module for each in index.files["c.py"].imports] == ["b"]

    @pytest.mark.skipif(not sys.platform.startswith("linux"), reason="as in a sandbox")
    def test_the_program_stands_alone(self, tmp_path):
        (tmp_path / "program.py").write_bytes(program_source("imports.py"))
        (tmp_path / "a.py").write_text("import os\n")
        subprocess.run([sys.executable, "-I", "program.py", ".", "out"], cwd=tmp_path, check=True)
        assert "a.py" in Index.from_json(json.loads((tmp_path / "out").read_text())).files


@pytest.fixture(scope="module")
def base(provider, tmp_path_factory):
    place = tmp_path_factory.mktemp("project")
    for path, text in HUB.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(text)
    return provider.create(Workspace(path=place))


class TestInASandbox:
    def test_the_index_is_that_of_the_workspace(self, box):
        index = read_index(box)
        assert index.problem == ""
        assert set(index.files) == set(HUB)
        found = related(index, {"pkg/b.py": file_change("pkg/b.py", HUB["pkg/b.py"], "")}, all_tests(index))
        assert found[0].file == "tests/test_two.py"

    def test_without_a_python_it_is_empty_and_says_why(self, box):
        box.write("bin/sh-only", b"")
        for name in ("python3", "python"):
            box.write(f".fake/{name}", b"#!/bin/sh\nexit 1\n", executable=True)
        hidden = _Without(box)
        index = read_index(hidden)
        assert (dict(index.files), "no Python 3.8" in index.problem) == ({}, True)


class _Without:
    """A fork in which no Python works."""

    def __init__(self, box):
        self._box = box

    def __getattr__(self, name):
        return getattr(self._box, name)

    def exec(self, argv, *, timeout_s):
        return self._box.exec(argv, timeout_s=timeout_s, env={"PATH": f"{self._box.workdir}/.fake:/bin"})
