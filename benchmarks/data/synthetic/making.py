"""Makes instances, each with a git bundle, from the mutants of a repository that its tests kill."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from itertools import islice
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from agent.counting import counted
from agent.errors import UsageError
from agent.learning.export.licences import licence_of
from agent.policy.mutate.candidates import compiles
from agent.settings import SandboxSettings
from agent.task import Task
from benchmarks.data import clones
from benchmarks.data.instances import InstanceBroken
from benchmarks.data.sources.bundles import ENV, environment_of
from benchmarks.data.synthetic.functions import Function, functions
from benchmarks.data.synthetic.mutants import Mutant, drawn, mutants, repairable
from benchmarks.data.synthetic.sweep import Sweep, Tested
from sandboxes import Provider, Workspace

OTHER = ("test_*.py", "*_test.py", "conftest.py", "setup.py", "noxfile.py", "__main__.py")
FOLDERS = {"test", "tests", "testing", "doc", "docs", "example", "examples", "benchmarks", "scripts", "build"}
ROUNDS = 2
"""Runs of the tests on the unbroken code; a test that does not pass every time is ignored."""
AT_ONCE = 25
"""The number of mutants that are tested together."""
TOLD = 5
"""The largest number of failing tests that a statement names."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How many bugs to make in a repository, and how to run its tests."""

    test_command: str = "python3 -m pytest -q"
    requirements: tuple[str, ...] = ()
    """Packages that the tests need; without any, the sandbox's own Python runs them."""
    count: int = 50
    """The most bugs."""
    a_function: int = 4
    """The largest number of mutants of one function that are tried."""
    seed: int = 0
    timeout_s: float = 10.0
    """The time limit for the tests on one mutant, in seconds; mutants that take longer are left out."""
    sandbox: SandboxSettings = field(default_factory=SandboxSettings)

    def workspace(self, folder: Path) -> Workspace:
        """The workspace in which the tests of the folder can be run."""
        path = {"PATH": f"{ENV}/bin:/usr/local/bin:/usr/bin:/bin"} if self.requirements else {}
        return Workspace(
            path=folder,
            image=self.sandbox.image,
            environment=(*environment_of(self.requirements), *self.sandbox.environment),
            setup=self.sandbox.setup,
            env={"PYTHONHASHSEED": "0", **path, **self.sandbox.env},
        )


@dataclass(frozen=True, slots=True)
class Material:
    """A repository's folder at its present commit, and the files in it that may be broken."""

    name: str
    folder: Path
    files: Mapping[str, bytes] = field(repr=False)

    @classmethod
    def read(cls, repository: Path, place: Path) -> Material:
        """Clone a git repository (or bundle) below `place` and read its files.

        Raises:
            UsageError: it is not a git repository.
        """
        name = repository.resolve().name.removesuffix(".bundle").removesuffix(".git")
        try:
            clones.clone(repository, "", place / name)
        except InstanceBroken as error:
            raise UsageError(f"{repository} is not a git repository: {error}") from error
        files = {path: (place / name / path).read_bytes() for path in _sources(place / name)}
        return cls(name, place / name, files)

    def functions(self) -> list[Function]:
        """All functions of the files; a file that this Python cannot parse has none."""
        all_functions = list[Function]()
        for path, data in self.files.items():
            try:
                all_functions += functions(path, data)
            except (SyntaxError, ValueError):
                continue
        return all_functions


def rows(
    material: Material, recipe: Recipe, provider: Provider, splits: Mapping[tuple[str, str, str], str], out: Path
) -> Iterator[dict[str, Any]]:
    """Rows for mutants of a repository that its tests kill, each with its bundle in `out / "bundles"`. `splits` has the
    split of each function; functions without a split are left alone.

    Raises:
        UsageError: the tests cannot be run, or none passes.
    """
    all_mutants = (mutant for path, data in sorted(material.files.items()) for mutant in mutants(path, data))
    in_splits = [m for m in all_mutants if splits.get((material.name, m.function.path, m.function.name))]
    order = drawn(in_splits, Random(f"{recipe.seed}:{material.name}"), recipe.a_function)
    compiling = (mutant for mutant in order if compiles(mutant.wrong))
    for mutant, failing, passing in islice(_killed(material, recipe, provider, compiling), recipe.count):
        split = splits[material.name, mutant.function.path, mutant.function.name]
        yield row_of(material, recipe, mutant, failing, passing, out) | {"split": split}


def _killed(
    material: Material, recipe: Recipe, provider: Provider, candidates: Iterator[Mutant]
) -> Iterator[tuple[Mutant, list[str], list[str]]]:
    """The mutants that break some tests and leave others passing, with the tests of either kind."""
    base = provider.create(recipe.workspace(material.folder))
    sweep = Sweep(provider, base, recipe.test_command, recipe.timeout_s)
    unbroken = list(sweep([{}] * ROUNDS))
    steady = frozenset.intersection(*(tested.passed for tested in unbroken))
    if not steady:
        why = next((f": {tested.problem}" for tested in unbroken if tested.problem), "")
        raise UsageError(f"{material.name}: no test passes every time with {recipe.test_command!r}{why}")
    for mutant, tested in _swept(sweep, candidates):
        failing, passing = steady - tested.passed, steady & tested.passed
        if not tested.problem and failing and passing:
            yield mutant, sorted(failing), sorted(passing)


def _swept(sweep: Sweep, candidates: Iterator[Mutant]) -> Iterator[tuple[Mutant, Tested]]:
    """Mutants and the outcomes of their tests, computed lazily: at most `AT_ONCE` ahead."""
    while group := list(islice(candidates, AT_ONCE)):
        yield from zip(group, sweep([{m.function.path: m.wrong.decode()} for m in group]), strict=True)


def row_of(
    material: Material, recipe: Recipe, mutant: Mutant, failing: Sequence[str], passing: Sequence[str], out: Path
) -> dict[str, Any]:
    """The row of a bug, whose bundle is written to `out / "bundles"`."""
    name = f"{material.name}-{mutant.id}"
    commit, patch = _bundled(material.folder, mutant, out / "bundles" / f"{name}.bundle")
    licence, _ = licence_of(Task(name, "", Workspace(path=material.folder), recipe.test_command))
    return {
        "instance_id": name,
        "repo": material.name,
        "base_commit": commit,
        "problem_statement": statement(failing),
        "patch": patch.decode("utf-8", "surrogateescape"),
        "test_patch": "",
        "FAIL_TO_PASS": list(failing),
        "PASS_TO_PASS": list(passing),
        "bundle": f"bundles/{name}.bundle",
        "test_cmd": recipe.test_command,
        "requirements": list(recipe.requirements),
        "license": licence,
        "operator": mutant.operator,
        "path": mutant.function.path,
        "function": mutant.function.name,
        "line": mutant.line,
        "code": mutant.function.text,
        "repairable": repairable(mutant),
    }


def statement(failing: Sequence[str]) -> str:
    """The statement of the task for a bug that breaks these tests."""
    tests = "\n".join(f"- {test}" for test in failing[:TOLD])
    return f"{counted(len(failing), 'test fails', 'tests fail')} that should pass, among them:\n\n{tests}\n"


def _bundled(folder: Path, mutant: Mutant, bundle: Path) -> tuple[str, bytes]:
    """Write a bundle of the repository with the bug. Returns its commit and the patch that fixes the bug."""
    with TemporaryDirectory() as place:
        clone = Path(place) / "clone"
        clones.clone(folder, "", clone)
        (clone / mutant.function.path).write_bytes(mutant.wrong)
        commit = bundled(clone, bundle)
        (clone / mutant.function.path).write_bytes(mutant.right)
        return commit, clones.git("diff", "--binary", cwd=clone)


def bundled(clone: Path, bundle: Path) -> str:
    """Make the checked-out files the only commit and write a bundle of it. Returns the commit; the same files give the
    same commit."""
    bundle.parent.mkdir(parents=True, exist_ok=True)
    clones.seal(clone)
    clones.git("branch", "-f", "main", cwd=clone)
    clones.git("bundle", "create", "-q", str(bundle.resolve()), "main", "HEAD", cwd=clone)
    return clones.git("rev-parse", "HEAD", cwd=clone).decode().strip()


def _sources(folder: Path) -> list[str]:
    """The Python files under version control that are neither tests nor scripts. Links are left out, since they may
    lead out of the repository."""
    paths = clones.git("ls-files", "-z", "*.py", cwd=folder).decode().split("\0")
    return [path for path in paths if path and _is_source(Path(path)) and _is_own(folder / path)]


def _is_own(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _is_source(path: Path) -> bool:
    return not (FOLDERS & set(path.parts[:-1]) or any(fnmatch(path.name, pattern) for pattern in OTHER))
