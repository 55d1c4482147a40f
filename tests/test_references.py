"""How far a refactoring has come: the files that it changed, and the places that still use names it took away."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agent.actions import Observation, Submit
from agent.engine.feedback import Feedback
from agent.evaluate.references import tracked
from agent.measure import Outcome, SuiteReport
from sandboxes import Change, Provider, Snapshot, Workspace
from tests.projects import commit
from tests.test_actions import Suite

pytestmark = pytest.mark.namespace
BEFORE = {
    "shop/prices.py": "TAX = 2\n\n\ndef total(items):\n    return sum(items) + TAX\n\n\nclass Till:\n"
    "    def clear(self):\n        pass\n\n    def ring(self):\n        return total([])\n",
    "shop/cart.py": "from .prices import Till, total\n\n__all__ = ['pay', 'total']\n\n\ndef pay(items):\n"
    "    return total(items)\n\n\ndef other(till: Till):\n    return till.ring()\n",
    "shop/own.py": "def count(total):\n    return total + 1\n",
    "shop/phone.py": "class Phone:\n    def ring(self, times=1):\n        return Phone().ring(times=2)\n",
    "shop/__init__.py": "",
}


def left(provider: Provider, folder: Path, **changes: str | None) -> tuple[list[str], list[str]]:
    """The changed files, and the places, after these changes to the files of the shop; None removes one."""
    base = provider.create(Workspace(commit(folder, BEFORE)))
    with provider.at(base) as box:
        for name, text in changes.items():
            path = f"shop/{name}.py"
            box.remove(path) if text is None else box.write(path, text.encode())
        found = tracked(provider, base, box.snapshot())
    return list(found.changed), [
        f"{site.path}:{site.line}: {site.name}{'' if site.sure else '?'}" for site in found.sites
    ]


def renamed(text: str, names: Mapping[str, str]) -> str:
    for old, new in names.items():
        text = text.replace(old, new)
    return text


PRICES, CART = BEFORE["shop/prices.py"], BEFORE["shop/cart.py"]


def test_a_renamed_function_leaves_its_imports_and_uses(provider: Provider, tmp_path: Path) -> None:
    changed, places = left(provider, tmp_path / "repo", prices=renamed(PRICES, {"def total": "def amount"}))
    assert changed == ["shop/prices.py"]
    sure = ["shop/cart.py:1: total", "shop/cart.py:7: total", "shop/prices.py:13: total"]
    assert places == [*sure, "shop/cart.py:3: total?"], "and not the parameter of `count`"


def test_nothing_is_left_when_all_places_are_updated(provider: Provider, tmp_path: Path) -> None:
    new = {"total": "amount"}
    changed, places = left(provider, tmp_path / "repo", prices=renamed(PRICES, new), cart=renamed(CART, new))
    assert (changed, places) == (["shop/cart.py", "shop/prices.py"], [])


def test_a_method_is_found_by_its_name_but_for_those_of_other_classes_and_of_built_in_types(
    provider: Provider, tmp_path: Path
) -> None:
    prices = renamed(PRICES, {"def ring": "def open", "def clear": "def wipe"})
    assert left(provider, tmp_path / "repo", prices=prices)[1] == ["shop/cart.py:11: till.ring?"]


def test_what_was_moved_is_out_of_date_only_where_it_is_imported_from_its_old_place(
    provider: Provider, tmp_path: Path
) -> None:
    head, tail = PRICES.split("class Till")
    prices = renamed(tail, {":\n    def clear": "class Till:\n    def clear"})
    assert left(provider, tmp_path / "repo", prices=prices, sums=head)[1] == ["shop/cart.py:1: total"]


def test_a_removed_module_is_out_of_date_where_it_is_imported(provider: Provider, tmp_path: Path) -> None:
    assert left(provider, tmp_path / "repo", prices=None, money=PRICES)[1] == ["shop/cart.py:1: .prices"]


def test_a_parameter_is_left_where_it_is_given_by_its_name(provider: Provider, tmp_path: Path) -> None:
    phone = BEFORE["shop/phone.py"].replace("times=1", "count=1")
    assert left(provider, tmp_path / "repo", phone=phone)[1] == ["shop/phone.py:3: times"]


def test_a_source_that_cannot_be_parsed_takes_no_name_away(provider: Provider, tmp_path: Path) -> None:
    assert left(provider, tmp_path / "repo", prices="def total(\n") == (["shop/prices.py"], [])


def test_a_state_is_searched_once_in_an_answer_that_tests_and_submits(provider: Provider, tmp_path: Path) -> None:
    class Counted:
        """The provider, which counts how often two states are compared."""

        compared = 0

        def changes(self, base: Snapshot, state: Snapshot) -> tuple[Change, ...]:
            self.compared += 1
            return provider.changes(base, state)

        def __getattr__(self, name: str) -> Any:
            return getattr(provider, name)

    base = provider.create(Workspace(commit(tmp_path / "repo", BEFORE)))
    with provider.at(base) as box:
        box.write("shop/prices.py", renamed(PRICES, {"def total": "def amount"}).encode())
        state = box.snapshot()
    suite, counted = Suite(SuiteReport({"t.py::a": Outcome.PASSED})), Counted()
    given: Any = (suite.task, counted, base, suite.report, suite, lambda usage: None, ())
    review = Feedback(*given, track=True)
    assert "shop/cart.py:7: total" in review.tested(state, ()).text
    assert "shop/cart.py:7: total" in review.submitted(state, Submit()).text
    assert counted.compared == 1


def test_run_tests_shows_those_hunks_of_the_change_that_the_model_has_not_seen(
    provider: Provider, tmp_path: Path
) -> None:
    base = provider.create(Workspace(commit(tmp_path / "repo", BEFORE)))
    with provider.at(base) as box:
        box.write("shop/prices.py", PRICES.replace("TAX = 2", "TAX = 3").replace("total([])", "total([0])").encode())
        box.write("shop/own.py", b"def count(total):\n    return total + 2\n")
        state = box.snapshot()
    suite = Suite(SuiteReport({"t.py::a": Outcome.PASSED}))
    given: Any = (suite.task, provider, base, suite.report, suite, lambda usage: None, ())
    seen = [Observation("The file now begins with\nTAX = 3"), Observation("+    return total + 2")]
    shown = Feedback(*given).tested(state, (), seen).text
    assert "+        return total([0])" in shown
    assert not any(line in shown for line in ("+TAX = 3", "shop/own.py"))
    everything = [*seen, Observation("        return total([0])")]
    assert "What you have not seen" not in Feedback(*given).tested(state, (), everything).text
