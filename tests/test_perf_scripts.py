"""The scripts that time Ramify beside the usual way: what they make of numbers, and that they run. No test times."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from benchmarks.perf import table
from benchmarks.perf.bytecode import wrong
from benchmarks.perf.repositories import REPOSITORIES
from benchmarks.perf.startup import cpu_seconds
from benchmarks.perf.table import at_least, at_most, less, markdown
from benchmarks.perf.timing import Sample, interleave, ratio

ROOT = Path(__file__).parent.parent
QUICK, SLOW = Sample((0.010, 0.009, 0.030)), Sample((0.2, 0.3, 0.1))


class TestInterleaving:
    def test_every_way_is_taken_once_a_round(self):
        order = []
        ways = {name: lambda name=name: order.append(name) or 1.0 for name in "abc"}
        interleave(ways, 5, Random(1), warm_up=0)
        assert [sorted(order[start : start + 3]) for start in range(0, 15, 3)] == [["a", "b", "c"]] * 5

    def test_the_order_of_the_rounds_differs(self):
        order = []
        ways = {name: lambda name=name: order.append(name) or 1.0 for name in "abc"}
        interleave(ways, 10, Random(1), warm_up=0)
        assert len({tuple(order[start : start + 3]) for start in range(0, 30, 3)}) > 1

    def test_rounds_to_warm_up_do_not_count(self):
        values = iter([9.0, 9.0, 1.0, 2.0, 3.0])
        assert interleave({"a": lambda: next(values)}, 3, Random(1), warm_up=2) == {"a": Sample((1.0, 2.0, 3.0))}


class TestFindings:
    def test_a_ratio_is_one_of_medians(self):
        assert ratio(SLOW, QUICK) == pytest.approx(20)
        assert (QUICK.median, QUICK.least, QUICK.most) == (0.010, 0.009, 0.030)

    def test_a_goal_of_a_ratio_is_met_from_the_ratio_itself_on(self):
        assert less("", QUICK, SLOW, 19.9).met
        assert not less("", QUICK, SLOW, 20.1).met

    def test_a_bound_is_met_at_the_bound(self):
        assert at_most("", "", 1, 100, 100, " KB").met
        assert not at_most("", "", 1, 100.1, 100, " KB").met
        assert at_least("", "", 1, 1.7, 1.7, "x").met
        assert not at_least("", "", 1, 1.69, 1.7, "x").met

    @pytest.mark.parametrize(
        ("value", "cut", "rounded_up"),
        [
            (19.96, "19.9", "20.0"),
            (1.5, "1.50", "1.50"),
            (1.501, "1.50", "1.51"),
            (712.9, "712", "713"),
            (7.0, "7", "7"),
        ],
    )
    def test_a_figure_is_never_rounded_towards_its_goal(self, value, cut, rounded_up):
        assert table.shortened(value) == cut
        assert table.shortened(value, up=True) == rounded_up

    def test_a_missed_goal_stands_out(self):
        missed, met = less("a", QUICK, SLOW, 21), less("b", QUICK, SLOW, 2)
        lines = markdown([missed, met]).splitlines()
        assert len(lines) == 4
        assert len({line.count("|") for line in lines}) == 1
        assert lines[2].endswith("| 20x less | 21x less | **no** |")
        assert lines[3].endswith("| 2x less | yes |")


class TestStaleVerdicts:
    def test_one_that_sees_every_edit_is_never_wrong_and_one_that_sees_none_is_every_other_time(self):
        assert wrong(10, lambda value: value == 1) == 0
        assert wrong(10, lambda value: True) == 5
        assert wrong(10, lambda value: value == 2) == 10


class TestRepositories:
    def test_a_repository_of_our_own_needs_no_package(self):
        assert REPOSITORIES["tiny"].environment == ()

    def test_every_other_is_pinned_with_all_that_it_needs(self):
        fetched = [repository for repository in REPOSITORIES.values() if repository.package]
        assert len({repository.project for repository in fetched}) == 3
        for repository in fetched:
            for requirement in (repository.package, *repository.requirements):
                assert requirement.count("==") == 1


class TestProcessorSeconds:
    def test_those_of_a_commands_children_count(self):
        spin = "import time\nwhile time.process_time() < 0.2: pass"
        parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {spin!r}])"
        assert cpu_seconds([sys.executable, "-c", parent]) > 0.2

    def test_a_command_that_fails_is_no_figure(self):
        with pytest.raises(subprocess.CalledProcessError) as failed:
            cpu_seconds([sys.executable, "-c", "import sys; sys.exit('broken')"])
        assert failed.value.stderr == b"broken\n"


def script(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", f"benchmarks.perf{name}", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500, check=False)


class TestScripts:
    @pytest.mark.parametrize(
        "name", ["", ".fork", ".execute", ".node", ".candidate", ".bytecode", ".workers", ".latency"]
    )
    def test_it_says_what_it_takes(self, name):
        said = script(name, "--help")
        assert said.returncode == 0, said.stderr
        assert "--repositories" in said.stdout

    def test_an_unknown_repository_is_an_error_that_names_the_known_ones(self):
        said = script(".node", "--repositories", "huge")
        assert said.returncode == 1
        assert "no repository 'huge': tiny, small" in said.stderr

    @pytest.mark.docker
    @pytest.mark.usefixtures("engine")
    def test_a_search_is_timed_with_many_workers_and_with_one(self):
        said = script(".latency", "--repositories", "tiny", "-n", "1", "--latency", "0.01", "--workers", "3")
        assert said.returncode == 0, said.stderr
        assert "tiny: 9 candidates by 3 workers" in said.stderr
        assert "| candidates a second, 3 workers beside 1, 0.01 s a proposal (tiny) |" in said.stdout

    @pytest.mark.docker
    def test_a_node_is_timed_on_both_sides_and_nothing_is_left_on_the_engine(self, engine):
        command = [sys.executable, "-m", "benchmarks.perf.node", "--repositories", "tiny", "-n", "1"]
        run = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        said, _ = run.communicate(timeout=500)
        assert run.returncode == 0
        assert "| a node: edit, one test, back (tiny: ours) |" in said
        assert said.count(" ms |") == 2
        made = {"label": f"ramify.pid={run.pid}"}
        left = [*engine.containers.list(all=True, filters=made), *engine.images.list(all=True, filters=made)]
        left += engine.volumes.list(filters=made)
        assert left == []
