"""Measures how many of the tests that a change breaks are in the test files that are ranked nearest to it.

    python -m benchmarks.perf.scope_recall mutants click==8.2.1 jinja2==3.1.6:trio --count 25
    python -m benchmarks.perf.scope_recall fixes INSTANCES.jsonl
    python -m benchmarks.perf.scope_recall ranks REPOSITORY BASE CHANGED TEST_FILE...

`mutants` breaks a published package in `--count` places, one at a time, and runs all of its tests each time. `fixes`
runs nothing: what the known fix of an instance repairs, its reverse breaks. `ranks` prints the ranks of some test files
for the difference between two commits.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import venv
from argparse import ArgumentParser, Namespace
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from posixpath import basename
from random import Random
from time import perf_counter
from xml.etree import ElementTree as ET

from agent.errors import UsageError
from agent.measure.diffs import parse
from agent.measure.ids import file_of
from agent.measure.inside.imports import survey
from agent.measure.scopes.changed import FileChange, file_change
from agent.measure.scopes.index import Index
from agent.measure.scopes.related import RelatedTest, related
from benchmarks.data import clones
from benchmarks.data.sources.bundles import Bundles
from benchmarks.data.synthetic.mutants import Mutant, drawn, mutants
from benchmarks.perf.repositories import Repository, checkout
from benchmarks.perf.table import table

TEST_NAMES = ("test_*.py", "*_test.py", "tests.py")
PARTS = (5, 10, 25, 50, 100)
"""Percentages of the tests of a suite."""
RUN_S = 300
"""The limit for a run of an unbroken suite; for a broken one it is SLOWER times the unbroken time, plus SPARE_S."""
SLOWER, SPARE_S = 3, 10
_PYTEST = ("pytest==8.3.5", "pytest-timeout==2.3.1")
_DJANGO_ID = re.compile(r"\w+ \(([\w.]+)\)")


@dataclass(frozen=True, slots=True)
class Case:
    """A change, what it breaks, and the ranked test files."""

    name: str
    near: Sequence[RelatedTest]
    broken: Mapping[str, int]
    """The number of broken tests by file."""
    sizes: Mapping[str, float]
    """The weight of each test file: its number of tests, or their seconds."""

    def inside(self, percent: float) -> int:
        """The number of broken tests in the nearest files that make up this part of the suite, at least one file."""
        limit, size, count = percent / 100 * sum(self.sizes.values()), 0.0, 0
        for near in self.near:
            if size >= limit:
                break
            size += self.sizes.get(near.file, 0.0)
            count += self.broken.get(near.file, 0)
        return count

    def misses(self) -> list[str]:
        """The files with broken tests that are not ranked."""
        return sorted(self.broken.keys() - {near.file for near in self.near})


@dataclass(slots=True)
class Tally:
    """The cases of one project."""

    project: str
    cases: list[Case] = field(default_factory=list)

    def row(self) -> list[str]:
        """A row of the table: for each part of the suite, the share of the broken tests that it has and, in brackets,
        the share of the changes of which it has at least one broken test."""
        broken = sum(sum(case.broken.values()) for case in self.cases)
        cells = [self.project, str(len(self.cases)), str(broken)]
        for percent in (*PARTS, 1e9):
            counts = [case.inside(percent) for case in self.cases]
            hits = sum(count > 0 for count in counts)
            cells.append(f"{sum(counts) / max(1, broken):.1%} ({hits / max(1, len(counts)):.0%})")
        listed = sum(sum(case.sizes.get(near.file, 0.0) for near in case.near) for case in self.cases)
        cells.append(f"{listed / max(1e-9, sum(sum(case.sizes.values()) for case in self.cases)):.0%}")
        return cells

    def report(self) -> None:
        """Print the misses and the far ones."""
        for case in self.cases:
            for file in case.misses():
                print(f"    {case.name}: {case.broken[file]} broken in {file}, which is not in the list")
            if not case.inside(25):
                first = next((place for place, near in enumerate(case.near, 1) if near.file in case.broken), 0)
                print(f"    {case.name}: the first of {sorted(case.broken)[:3]} is {first} of {len(case.near)}")


HEADINGS = ("project", "changes", "broken tests", *(f"{part} %" for part in PARTS), "all related", "related tests")


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a suite."""

    passed: frozenset[tuple[str, str]]
    """File and test."""
    seconds: Mapping[str, float]
    """By file."""


def tally_mutants(given: Namespace) -> Iterator[Tally]:
    """A tally for each package."""
    with tempfile.TemporaryDirectory() as place:
        for argument in given.packages:
            package, _, more = argument.partition(":")
            repository = Repository(package.partition("==")[0], package, "", "", "")
            folder = Path(place, repository.name)
            subprocess.run(["cp", "-r", checkout(repository, Path(place), print), folder], check=True)
            python = environment(Path(place, f"{repository.name}-env"), more.split(",") if more else [])
            yield tally_package(repository.name, folder, python, given)


def tally_package(name: str, folder: Path, python: Path, given: Namespace) -> Tally:
    """Break a package in several places and run its tests."""
    began = perf_counter()
    runs = [run for _ in range(2) if (run := run_suite(folder, python, given.tests))]
    limit_s = SPARE_S + SLOWER * (perf_counter() - began) / 2
    stable = frozenset[tuple[str, str]].intersection(*(run.passed for run in runs)) if len(runs) == 2 else frozenset()
    sizes = runs[0].seconds if given.by_time else Counter(file for file, _ in stable)
    index = Index.from_json(survey(str(folder)))
    tally = Tally(name)
    print(f"{name}: {len(stable)} tests in {len(sizes)} files, runs of up to {limit_s:.0f} s", flush=True)
    for mutant in found_mutants(folder, index, sizes, Random(given.seed)) if sizes else ():
        if len(tally.cases) == given.count:
            break
        target = folder / mutant.function.path
        target.write_bytes(mutant.wrong)
        failed = broken_by(folder, python, given.tests, stable, limit_s)
        target.write_bytes(mutant.right)
        if failed:
            broken = Counter(file for file, _ in failed)
            change = file_change(mutant.function.path, mutant.right.decode(), mutant.wrong.decode())
            near = related(index, {mutant.function.path: change}, sizes)
            title = f"{mutant.function.path}:{mutant.line} {mutant.function.name}"
            tally.cases.append(Case(title, near, broken, sizes))
    return tally


def broken_by(
    folder: Path, python: Path, tests: str, stable: frozenset[tuple[str, str]], limit_s: float
) -> frozenset[tuple[str, str]]:
    """The tests that fail now and in a second run, as some fail occasionally on a busy machine. Nothing for a change
    that makes the suite take too long, which tells nothing about single tests."""
    failed = stable
    for _ in range(2):
        run = run_suite(folder, python, tests, limit_s) if failed else None
        if run is None:
            return frozenset()
        failed -= run.passed
    return failed


def found_mutants(folder: Path, index: Index, tests: Collection[str], rng: Random) -> Iterator[Mutant]:
    """Mutants of the package's own files, in random order with the files in turn."""
    packages = {path.removeprefix("src/").split("/")[0] for path in index.files if path.endswith("/__init__.py")}
    packages -= {"tests", "test", "docs", "doc", "examples", "bench"}
    sources = [path for path in index.files if path.removeprefix("src/").split("/")[0] in packages]
    sources = sorted(path for path in sources if path not in tests and not re.search(r"(^|/)tests?/", path))
    waiting: dict[str, list[Mutant]] = {}
    for _ in range(20):
        for path in rng.sample(sources, len(sources)):
            if path not in waiting:
                waiting[path] = drawn(list(mutants(path, (folder / path).read_bytes())), rng, 1)
            if waiting[path]:
                yield waiting[path].pop(0)


def environment(place: Path, requirements: Sequence[str]) -> Path:
    """Make a virtual environment. Returns its Python."""
    venv.create(place, with_pip=True)
    python = place / "bin" / "python"
    subprocess.run([str(python), "-m", "pip", "install", "-q", *_PYTEST, *requirements], check=True)
    return python


def run_suite(folder: Path, python: Path, tests: str, limit_s: float = RUN_S) -> Run | None:
    """Run all tests of a checkout and read pytest's report; None if that took too long."""
    with tempfile.TemporaryDirectory() as place:
        report = Path(place, "report.xml")
        options = ["-q", "-p", "no:cacheprovider", "-o", "addopts=", "-o", "junit_family=xunit1"]
        options += ["-o", "filterwarnings=default", "--timeout=20", f"--junitxml={report}", *tests.split()]
        env = os.environ | {"PYTHONPATH": f"{folder}/src:{folder}", "PYTHONDONTWRITEBYTECODE": "1", "CI": "1"}
        try:
            command = [str(python), "-m", "pytest", *options]
            subprocess.run(command, cwd=folder, env=env, capture_output=True, timeout=limit_s, check=False)
        except subprocess.TimeoutExpired:
            return None
        return read_report(report) if report.exists() else Run(frozenset(), {})


def read_report(report: Path) -> Run:
    """The tests that passed, and the seconds that each file took."""
    passed, seconds = set[tuple[str, str]](), defaultdict[str, float](float)
    for test in ET.parse(report).getroot().iter("testcase"):
        file = test.get("file")
        if file is None:
            continue
        seconds[file] += float(test.get("time", "0"))
        if not len(test):
            passed.add((file, f"{test.get('classname')}::{test.get('name')}"))
    return Run(frozenset(passed), dict(seconds))


def tally_fixes(given: Namespace) -> Iterator[Tally]:
    """A tally for each repository, of the known fixes of its instances."""
    with tempfile.TemporaryDirectory() as place:
        source = Bundles(given.source, Path(place), reveal=True)
        tallies: dict[str, Tally] = {}
        for instance in source.instances():
            if given.only and not re.search(given.only, instance.id):
                continue
            source.prepare(instance)
            folder = instance.task.workspace.path
            assert folder is not None
            name = instance.repo or instance.id
            case = fixed_case(instance.id, folder, instance.hidden.patch, instance.hidden.fail_to_pass)
            tallies.setdefault(name, Tally(name)).cases.append(case)
            places = {near.file: number for number, near in enumerate(case.near, 1)}
            ranks = [f"{file} {places.get(file, 'not in the list')}" for file in sorted(case.broken)]
            print(f"{instance.id}: {', '.join(ranks)} of {len(case.sizes)}", flush=True)
        yield from tallies.values()


def fixed_case(name: str, folder: Path, patch: bytes, repaired: Iterable[str]) -> Case:
    """The case of the reverse of a known fix; `repaired` are the tests that it repairs."""
    paths = [file.path for file in parse(patch)]
    before = {path: read_text(folder / path) for path in paths}
    index = Index.from_json(survey(str(folder)))
    subprocess.run(["git", "apply", "-"], cwd=folder, input=patch, check=True)
    changed = {path: file_change(path, before[path], read_text(folder / path)) for path in paths}
    files = test_files(index)
    broken = Counter(test_file(test, files) for test in repaired)
    return Case(name, related(index, changed, files), broken, dict.fromkeys(files, 1.0))


def test_files(index: Index) -> list[str]:
    """All files with names of test files."""
    return [path for path in index.files if any(fnmatch(basename(path), pattern) for pattern in TEST_NAMES)]


def test_file(test: str, files: Collection[str]) -> str:
    """The file of a test, by its id from pytest or Django."""
    django = _DJANGO_ID.match(test)
    if not django:
        return file_of(test)
    parts = django[1].split(".")
    for end in range(len(parts), 0, -1):
        path = f"tests/{'/'.join(parts[:end])}.py"
        if path in files:
            return path
    raise UsageError(f"no test file of {test}")


def read_text(path: Path) -> str | None:
    return path.read_text(errors="replace") if path.exists() else None


def ranks(given: Namespace) -> Iterator[Tally]:
    """Print the ranks of some test files."""
    git = ["git", "-C", str(given.repository)]
    names = subprocess.run([*git, "diff", "--name-only", given.base, given.changed], capture_output=True, check=True)
    changed = {
        path: file_change(path, committed(git, given.base, path), committed(git, given.changed, path))
        for path in names.stdout.decode().split("\n")
        if path
    }
    began = perf_counter()
    index = Index.from_json(survey(str(given.repository)))
    files = test_files(index)
    related(index, {}, files)
    print(f"indexed {len(index.files)} files, {len(files)} of them tests, in {perf_counter() - began:.1f} s")
    began = perf_counter()
    near = related(index, changed, files)
    print(f"{len(near)} related in {perf_counter() - began:.2f} s")
    print_ranks(near, given.tests, changed)
    yield from ()


def print_ranks(near: Sequence[RelatedTest], wanted: Sequence[str], changed: Mapping[str, FileChange]) -> None:
    places = {each.file: number for number, each in enumerate(near)}
    for path, change in changed.items():
        print(f"{path}: {', '.join(sorted(change.names))}")
    for each in near[:10]:
        print(f"    {each.distance:6.2f} {each.file}: {each.steps} steps")
    for file in wanted:
        place = places.get(file)
        print(f"{file}: " + ("not in the list" if place is None else f"{place + 1}, {near[place]}"))


def committed(git: Sequence[str], commit: str, path: str) -> str | None:
    shown = subprocess.run([*git, "show", f"{commit}:{path}"], capture_output=True, check=False)
    return shown.stdout.decode(errors="replace") if shown.returncode == 0 else None


def main() -> None:
    """Print the misses and a table."""
    parser = ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    ways = parser.add_subparsers(required=True)
    way = ways.add_parser("mutants", help="of published packages, PACKAGE==VERSION[:REQUIREMENT,...]")
    way.add_argument("packages", nargs="+")
    way.add_argument("--count", type=int, default=25)
    way.add_argument("--seed", type=int, default=0)
    way.add_argument("--tests", default="", help="further arguments for pytest")
    way.add_argument("--by-time", action="store_true", help="weigh test files by their time, not their tests")
    way.set_defaults(way=tally_mutants)
    way = ways.add_parser("fixes", help="the known fixes of a file of instances with bundles")
    way.add_argument("source", type=Path)
    way.add_argument("--only", default="", help="a pattern of instances")
    way.set_defaults(way=tally_fixes)
    way = ways.add_parser("ranks", help="the ranks of some test files")
    way.add_argument("repository", type=Path)
    way.add_argument("base")
    way.add_argument("changed")
    way.add_argument("tests", nargs="*")
    way.set_defaults(way=ranks)
    given = parser.parse_args()
    try:
        tallies = list(given.way(given))
    except (UsageError, clones.GitRefused) as error:
        sys.exit(str(error))
    for tally in tallies:
        tally.report()
    if tallies:
        print(table(HEADINGS, (tally.row() for tally in tallies)))


if __name__ == "__main__":
    main()
