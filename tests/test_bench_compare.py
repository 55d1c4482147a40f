"""Two batches side by side: which resolves more at the same cost, and could that be chance?"""

from __future__ import annotations

import csv
import json
from io import StringIO
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from agent.budget import Usage
from agent.errors import UsageError
from benchmarks.batch.batch import Attempt, Batch, Identity
from benchmarks.cli.app import app
from benchmarks.data.instances import Mode
from benchmarks.grading.verdicts import Verdict, VerdictCache, patch_digest
from benchmarks.reports.comparison import compare, equal_limit, mcnemar, read_pairs
from benchmarks.reports.curves import pass_at_k, read_curves
from benchmarks.reports.report import verdicts_file
from tests.instances import bare_instance

Cells = dict[str, tuple[bool | None, int]]
"""Per instance: whether it is resolved (None: not graded), and its test runs."""


def batch(
    out: Path, cells: Cells, model: str = "ramify/a", mode: Mode = "hidden", settings: str = "", seed: int | None = None
) -> Path:
    """A graded batch with these outcomes."""
    made = Batch(out, Identity("set", mode, model, settings, seed))
    cache = VerdictCache(verdicts_file(out / "preds.json"))
    for name, (resolved, runs) in cells.items():
        patch = f"patch of {name} in {out.name}".encode()
        facts = {"measurements": runs, "cost_usd": None}
        made.record(Attempt(name, "done", mode, patch, facts=facts, usage=Usage(model_calls=3 * runs)))
        if resolved is not None:
            verdict = Verdict(name, "resolved" if resolved else "unresolved", patch_digest(patch), mode)
            cache.put(bare_instance(name), patch, verdict)
    made.close()
    cache.close()
    return out


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    first = {"a": (True, 5), "b": (True, 9), "c": (False, 3), "d": (False, 20), "e": (None, 1)}
    second = {"a": (True, 30), "b": (False, 40), "c": (True, 8), "d": (True, 12), "f": (True, 1)}
    return batch(tmp_path / "one", first), batch(tmp_path / "two", second)


def test_only_what_is_graded_in_both_is_compared(two: tuple[Path, Path]) -> None:
    pairs, left_out = read_pairs(*two)
    assert [pair.first.instance_id for pair in pairs] == ["a", "b", "c", "d"]
    assert left_out == 2
    found = compare(pairs)
    assert (found.both, found.only_first, found.only_second, found.neither) == (1, 1, 2, 0)
    assert found.difference == 0.25
    assert found.interval[0] <= 0.25 <= found.interval[1]


def test_at_equal_cost_what_was_dearer_does_not_count(two: tuple[Path, Path]) -> None:
    pairs, _ = read_pairs(*two)
    assert equal_limit(pairs, "measurements") == 20
    found = compare(pairs, "measurements", 20)
    assert (found.both, found.only_first, found.only_second, found.neither) == (0, 2, 2, 0)
    assert equal_limit(pairs, "model_calls") == 60
    assert compare(pairs, "model_calls", 60).only_second == 2


def test_modes_are_never_mixed(tmp_path: Path) -> None:
    one, other = batch(tmp_path / "h", {"a": (True, 1)}), batch(tmp_path / "r", {"a": (True, 1)}, mode="revealed")
    with pytest.raises(UsageError, match=r"hidden tests, .* revealed ones"):
        read_pairs(one, other)
    with pytest.raises(UsageError, match="hidden and revealed"):
        read_curves([one, other], "measurements")


def test_what_cannot_be_compared_is_said(two: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no instance is graded in both"):
        read_pairs(two[0], batch(tmp_path / "x", {"z": (True, 1)}))
    with pytest.raises(UsageError, match="another --unit"):
        equal_limit(read_pairs(*two)[0], "cost_usd")


@pytest.mark.parametrize(("b", "c", "p"), [(0, 0, 1.0), (1, 1, 1.0), (0, 5, 2 / 32), (1, 9, 2 * 11 / 1024)])
def test_mcnemar_is_the_two_sided_binomial_tail(b: int, c: int, p: float) -> None:
    assert mcnemar(b, c) == mcnemar(c, b) == pytest.approx(p)


@given(st.integers(1, 7), st.data())
def test_pass_at_k_is_the_share_of_draws_with_a_success(n: int, data: st.DataObject) -> None:
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    draws = [any(each < c for each in drawn) for drawn in combinations(range(n), k)]
    assert pass_at_k(n, c, k) == pytest.approx(sum(draws) / len(draws))


def test_a_curve_rises_where_an_instance_is_resolved(two: tuple[Path, Path]) -> None:
    (curve,) = read_curves([two[1]], "measurements")
    assert [(p.budget, p.rate) for p in curve.points] == [(1, 0.2), (8, 0.4), (12, 0.6), (30, 0.8), (40, 0.8)]
    assert all(p.low < p.rate < p.high for p in curve.points)


def test_batches_of_one_solver_also_give_the_best_of_k(tmp_path: Path) -> None:
    one = batch(tmp_path / "s1", {"a": (True, 10), "b": (False, 20)})
    other = batch(tmp_path / "s2", {"a": (False, 30), "b": (False, 20)})
    best = read_curves([one, other], "measurements")[-1]
    assert best.name == "ramify/a, best of k batches"
    assert [(p.budget, p.rate) for p in best.points] == [(20, 0.25), (40, 0.5)]


def test_only_batches_with_the_same_settings_give_the_best_of_k(tmp_path: Path) -> None:
    kinds = (("one", "aa", 1), ("two", "aa", 2), ("small", "bb", 1), ("old", "", None))
    made = [batch(tmp_path / name, {"a": (name == "one", 10)}, settings=s, seed=n) for name, s, n in kinds]
    curves = read_curves(made, "measurements")
    assert [curve.name for curve in curves[4:]] == ["ramify/a (settings aa), best of k batches"]
    assert [(p.budget, p.rate) for p in curves[-1].points] == [(10, 0.5), (20, 1.0)]


def test_one_attempt_is_not_counted_as_two(tmp_path: Path) -> None:
    made = [batch(tmp_path / name, {"a": (True, 10)}, settings="aa", seed=7) for name in ("one", "two")]
    with pytest.raises(UsageError, match=r"one and .*two are one attempt: .* seed 7; .* another --seed"):
        read_curves(made, "measurements")


@pytest.mark.slow
def test_the_commands_print_and_draw(two: tuple[Path, Path], tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["compare", *map(str, two), "--json"])
    assert json.loads(done.stdout)["at_equal_cost"]["limit"] == 20
    done = CliRunner().invoke(app, ["compare", *map(str, two)])
    assert "A resolves 2 of 4, B 3" in done.stdout
    assert done.stdout.startswith(f"A: {two[0]}\nB: {two[1]}\n")
    assert "B minus A: +25.0 points" in done.stdout
    files = [tmp_path / f"curve{suffix}" for suffix in (".csv", ".png", ".svg", ".html")]
    argv = ["curve", *map(str, two), *(word for file in files for word in ("--out", str(file)))]
    assert CliRunner().invoke(app, argv).exit_code == 0
    table, png, svg, page = (file.read_bytes() for file in files)
    assert [row["budget"] for row in csv.DictReader(StringIO(table.decode()))][:2] == ["5", "9"]
    assert png.startswith(b"\x89PNG")
    assert svg[svg.index(b"<svg") :].rstrip() in page
    assert b"http" not in page.replace(b"http://www.w3.org", b"").replace(b"http://purl.org", b"").replace(
        b"http://creativecommons.org", b""
    ).replace(b"https://matplotlib.org", b"")
    assert CliRunner().invoke(app, argv).exit_code == 0
    assert [file.read_bytes() for file in files] == [table, png, svg, page]
