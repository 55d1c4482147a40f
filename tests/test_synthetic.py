"""Synthetic bugs: real code broken on purpose, where its own tests notice it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from agent.errors import UsageError
from agent.settings import SandboxSettings
from benchmarks.data import clones
from benchmarks.data.sources import open_source
from benchmarks.data.synthetic.functions import Families, functions
from benchmarks.data.synthetic.making import Material, Recipe
from benchmarks.data.synthetic.mutants import drawn, mutants, repairable
from benchmarks.data.synthetic.splitting import Splitting
from benchmarks.data.synthetic.sweep import Sweep
from benchmarks.data.synthetic.writing import synthesize, table
from benchmarks.perf.combined import combined, pairs
from sandboxes import Provider, Workspace
from tests.projects import commit, git

SHOP = '''"""A shop."""


def total(prices, discount=0):
    """What a basket costs."""
    if not prices:
        return 0
    result = sum(prices)
    result -= discount
    return max(result, 0)


def cheapest(prices, limit):
    fitting = [price for price in prices if price <= limit]
    first = fitting[1:]
    return len(first), clamp(limit, 1)


def clamp(value, low):
    return value if value > low and low != 7 else low
'''
TESTS = """from shop import cheapest, clamp, total


def test_total():
    assert total([3, 4], 2) == 5
    assert total([1], 5) == 0


def test_cheapest():
    assert cheapest([1, 2, 3], 2) == (1, 2)


def test_nothing():
    assert total([]) == 0
"""
PLAIN = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
"""The plugins of development are slow."""
SOUND = "def test_sound():\n    assert True\n"


def made(operator: str) -> list[bytes]:
    """The files that an operator makes of the shop."""
    return [mutant.wrong for mutant in mutants("shop.py", SHOP.encode()) if mutant.operator == operator]


@pytest.mark.parametrize(
    ("operator", "wrong"),
    [
        ("comparison", "price < limit"),
        ("arithmetic", "result += discount"),
        ("condition", "    if prices:"),
        ("number", "fitting[2:]"),
        ("name", "sum(discount)"),
        ("twin", "min(result, 0)"),
        ("arguments", "max(0, result)"),
        ("arguments", "clamp(limit)"),
        ("bound", "fitting[:]"),
        ("operand", "if value > low else low"),
        ("call", "result = prices\n"),
        ("statement", "    result = sum(prices)\n    return max"),
        ("guard", '    """What a basket costs."""\n    result = sum'),
    ],
)
def test_each_operator_breaks_code_in_its_own_way(operator: str, wrong: str) -> None:
    assert any(wrong.encode() in each for each in made(operator))


def test_no_mutant_is_made_twice_and_each_lies_in_one_function() -> None:
    found = list(mutants("shop.py", SHOP.encode()))
    assert len({mutant.wrong for mutant in found}) == len(found)
    for mutant in found:
        before, after = mutant.right.splitlines(), mutant.wrong.splitlines()
        first, tail = mutant.function.first, len(before) - mutant.function.last
        assert before[:first] == after[:first]
        assert before[len(before) - tail :] == after[len(after) - tail :]


def test_drawing_takes_operators_in_turn_and_so_many_of_a_function() -> None:
    found = list(mutants("shop.py", SHOP.encode()))
    order = drawn(found, Random(1), a_function=3)
    assert len(order) == 9
    assert len({mutant.operator for mutant in order}) > 3
    assert order == drawn(found, Random(1), a_function=3) != drawn(found, Random(2), a_function=3)


def test_what_one_edit_of_mutate_gives_back_is_called_within_reach() -> None:
    found = {mutant.wrong: mutant for mutant in mutants("shop.py", SHOP.encode())}
    near = found[SHOP.replace("price <= limit", "price < limit").encode()]
    far = found[SHOP.replace("    if not prices:\n        return 0\n", "").encode()]
    assert repairable(near)
    assert not repairable(far)


class TestFamilies:
    LONG = (
        "x = f(a, b)\nfor i in range(x):\n    if i % 3 == 0:\n        y = g(i, x)\n        total += y * 2\nreturn total"
    )

    def test_near_copies_are_one_family_through_a_chain(self) -> None:
        texts = [self.LONG, self.LONG.replace("* 2", "* 3"), "return 1", self.LONG.replace("* 2", "* 3") + " + 1"]
        families = Families(texts, near=0.8)
        names = [families.of(number) for number in range(4)]
        assert names[0] == names[1] == names[3] != names[2]

    def test_short_functions_are_one_family_only_if_they_are_the_same(self) -> None:
        families = Families(["return 1", "return 2", "return 1"])
        assert families.of(0) == families.of(2) != families.of(1)

    def test_comments_layout_and_documentation_do_not_count(self) -> None:
        one = b"def f(a):\n    'Says something.'\n    return a+1\n"
        other = b"class C:\n    def f( a ):  # quick\n        return a + 1\n"
        texts = [next(functions("x.py", data)).text for data in (one, other)]
        assert texts[0] == texts[1]


class TestSplitting:
    def material(self, argument: str = "a") -> dict[str, list[object]]:
        copied = b"def f(a):\n    return sorted(a)[0]\n"
        own = b"".join(b"def g%d(a):\n    return a + %d\n\n\n" % (n, n) for n in range(40))
        theirs = copied.replace(b"(a)", b"(%s)" % argument.encode())
        return {"one": [*functions("m.py", copied + own)], "two": [*functions("n.py", theirs)]}

    @pytest.mark.parametrize("argument", ["a", "rows"])
    def test_a_copy_of_a_held_out_repository_is_on_neither_side_whatever_its_variables_are_called(
        self, argument: str
    ) -> None:
        splits = Splitting(frozenset({"two"})).of(self.material(argument))
        assert splits["two", "n.py", "f"] == "repositories"
        assert splits["one", "m.py", "f"] == ""

    def test_functions_of_one_name_on_different_sides_are_on_neither(self) -> None:
        pair = "class C%d:\n    @property\n    def x(self):\n        return self.a%d\n\n"
        pair += "    @x.setter\n    def x(self, value):\n        self.b%d = value\n\n\n"
        found = [*functions("m.py", "".join(pair % (n, n, n) for n in range(20)).encode())]
        splits = Splitting(lines=50).of({"one": found})
        apart = Splitting(lines=50).of({"one": [replace(each, name=f"{n}") for n, each in enumerate(found)]})
        for n in range(20):
            sides = {apart["one", "m.py", f"{2 * n + m}"] for m in range(2)}
            assert splits["one", "m.py", f"C{n}.x"] == (sides.pop() if len(sides) == 1 else "")
        assert "" in splits.values()

    def test_the_share_of_held_out_functions_is_about_what_is_asked_for(self) -> None:
        splits = Splitting(lines=50).of(self.material())
        assert 10 < sum(split == "lines" for split in splits.values()) < 32

    def test_more_material_moves_nothing(self) -> None:
        splits = Splitting(lines=50).of(self.material())
        more = self.material() | {"three": [*functions("o.py", b"def h():\n    return 0\n")]}
        assert splits.items() <= Splitting(lines=50).of(more).items()


BOX = SandboxSettings(kind="namespace", env=PLAIN)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    files = {"shop.py": SHOP, "test_shop.py": TESTS, "LICENSE": "Permission is hereby granted"}
    return commit(tmp_path_factory.mktemp("material") / "shop", files)


def test_a_link_that_leads_out_of_a_repository_is_not_broken(tmp_path: Path) -> None:
    (tmp_path / "theirs.py").write_text(SHOP)
    repo = commit(tmp_path / "shop", {"shop.py": SHOP})
    (repo / "link.py").symlink_to(tmp_path / "theirs.py")
    git(repo, "add", "link.py")
    git(repo, "commit", "-qm", "link")
    assert list(Material.read(repo, tmp_path / "place").files) == ["shop.py"]


def test_bugs_of_the_folder_that_one_is_in_are_named_after_it(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shop)
    assert Material.read(Path(), tmp_path).name == "shop"


@pytest.fixture(scope="module")
def out(shop: Path, namespaces: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "bugs"
    synthesize([shop], Recipe(count=2, a_function=2, sandbox=BOX), Splitting(lines=0), folder)
    return folder


class TestMaking:
    @pytest.mark.slow
    def test_every_bug_fails_some_tests_and_passes_some(self, out: Path) -> None:
        rows = [json.loads(line) for line in (out / "train.jsonl").read_text().splitlines()]
        assert len(rows) == 2
        for row in rows:
            assert row["FAIL_TO_PASS"]
            assert row["PASS_TO_PASS"]
            assert not set(row["FAIL_TO_PASS"]) & set(row["PASS_TO_PASS"])

    def test_the_folder_is_a_source_whose_patch_gives_the_repository_back(self, out: Path, tmp_path: Path) -> None:
        source = open_source(str(out / "train.jsonl"), tmp_path, reveal=True)
        instance = next(iter(source.instances()))
        assert instance.task.goal_tests == instance.hidden.fail_to_pass
        source.prepare(instance)
        folder = instance.task.workspace.path
        assert folder is not None
        assert (folder / "shop.py").read_text() != SHOP
        clones.apply(folder, instance.hidden.patch)
        assert (folder / "shop.py").read_text() == SHOP

    def test_without_requirements_bugs_are_run_with_the_python_that_they_were_made_with(
        self, out: Path, tmp_path: Path
    ) -> None:
        instance = next(iter(open_source(str(out / "train.jsonl"), tmp_path).instances()))
        assert not {"PATH", "VIRTUAL_ENV"} & instance.task.workspace.env.keys()

    def test_the_statement_names_tests_and_no_place(self, out: Path) -> None:
        row = json.loads((out / "train.jsonl").read_text().splitlines()[0])
        assert row["FAIL_TO_PASS"][0] in row["problem_statement"]
        assert "shop.py:" not in row["problem_statement"].replace("test_shop.py:", "")

    def test_the_same_seed_makes_the_same_bytes(self, shop: Path, out: Path, tmp_path: Path) -> None:
        again = synthesize([shop], Recipe(count=1, a_function=2, sandbox=BOX), Splitting(lines=0), tmp_path / "again")
        first = [json.loads(line) for line in (out / "train.jsonl").read_text().splitlines()][:1]
        assert again == first

    def test_the_table_counts_each_kind(self) -> None:
        rows = [{"operator": "guard", "repairable": False}, {"operator": "number", "repairable": True}]
        assert table(rows).splitlines()[1:] == [
            "guard            1                         0",
            "number           1                         1",
            "all              2                         1",
        ]

    @pytest.mark.slow
    def test_a_repository_that_cannot_be_used_costs_nothing_of_those_before(
        self, shop: Path, out: Path, tmp_path: Path
    ) -> None:
        broken = commit(tmp_path / "broken", {"m.py": SHOP, "test_m.py": "import nothing_that_there_is\n"})
        recipe = Recipe(count=1, a_function=2, sandbox=BOX)
        with pytest.raises(UsageError, match="broken: no test passes every time"):
            synthesize([shop, broken], recipe, Splitting(lines=0), tmp_path / "made")
        assert (tmp_path / "made" / "train.jsonl").read_text() == (out / "train.jsonl").read_text().splitlines(True)[0]

    def test_a_name_that_is_to_be_held_out_has_to_exist(self, shop: Path, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="--hold-out 'shpo' is not one of the repositories: shop"):
            synthesize([shop], Recipe(), Splitting(frozenset({"shpo"})), tmp_path / "x")


class TestCombining:
    @pytest.mark.parametrize(
        ("other", "suit"),
        [
            ({}, True),
            ({"repairable": False}, False),
            ({"repo": "library"}, False),
            ({"function": "f"}, False),
            ({"FAIL_TO_PASS": ["g", "f"]}, False),
        ],
    )
    def test_bugs_suit_each_other_if_their_repairs_can_be_told_apart(
        self, other: dict[str, object], suit: bool
    ) -> None:
        one = {"repo": "shop", "path": "shop.py", "function": "f", "repairable": True, "FAIL_TO_PASS": ["f"]}
        rows = [one, one | {"function": "g", "FAIL_TO_PASS": ["g"]} | other]
        assert len(list(pairs(rows, Random(0)))) == suit

    def test_a_task_has_both_bugs_and_its_patch_repairs_both(self, out: Path, tmp_path: Path) -> None:
        rows = [json.loads(line) for line in (out / "train.jsonl").read_text().splitlines()]
        task = combined(*rows, out, tmp_path)
        assert task is not None
        assert set(task["FAIL_TO_PASS"]) == set(rows[0]["FAIL_TO_PASS"]) | set(rows[1]["FAIL_TO_PASS"])
        (tmp_path / "tasks.jsonl").write_text(json.dumps(task))
        source = open_source(str(tmp_path / "tasks.jsonl"), tmp_path / "source")
        instance = next(iter(source.instances()))
        source.prepare(instance)
        folder = instance.task.workspace.path
        assert folder is not None
        for row in rows:
            clones.apply(folder, row["patch"].encode())
        assert (folder / "shop.py").read_text() == SHOP


@pytest.fixture(scope="module")
def sweep(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Sweep:
    files = {
        "loop.py": "def f():\n    return 1\n",
        "test_loop.py": "from loop import f\n\ndef test_f():\n    assert f()\n",
    }
    folder = commit(tmp_path_factory.mktemp("sweep") / "loop", files | {"test_sound.py": SOUND})
    return Sweep(provider, provider.create(Workspace(path=folder, env=PLAIN)), "python3 -m pytest -q")


class TestASweep:
    @pytest.mark.slow
    def test_tells_passing_failing_endless_and_broken_versions_apart(self, sweep: Sweep) -> None:
        right = "def f():\n    return 1\n"
        texts = [right, right.replace("1", "0"), right.replace("return 1", "while 1: pass"), "def f(:\n", right]
        found = list(Sweep(sweep.provider, sweep.base, sweep.test_command, 1.5)([{"loop.py": text} for text in texts]))
        failed = [[test for test, end in each.outcomes.items() if end == "failed"] for each in found]
        assert failed == [[], ["test_loop.py::test_f"], [], [], []]
        assert [bool(each.problem) for each in found] == [False, False, True, True, False]
        assert found[2].problem == "timeout"
        assert found[4].passed == {"test_loop.py::test_f", "test_sound.py::test_sound"}

    def test_sets_the_variables_of_the_command(self, provider: Provider, tmp_path: Path) -> None:
        files = {"src/one.py": "ONE = 1\n", "test_one.py": "from one import ONE\n\ndef test_one():\n    assert ONE\n"}
        base = provider.create(Workspace(path=commit(tmp_path / "one", files), env=PLAIN))
        (found,) = Sweep(provider, base, "PYTHONPATH=src python3 -m pytest -q")([{}])
        assert found.passed == {"test_one.py::test_one"}

    def test_takes_commands_that_run_pytest_and_no_others(self, sweep: Sweep) -> None:
        with pytest.raises(UsageError, match="'make test' does not run pytest"):
            list(Sweep(sweep.provider, sweep.base, "make test")([{}]))
