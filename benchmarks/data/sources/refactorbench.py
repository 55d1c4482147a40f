"""RefactorBench: refactorings of large repositories, each stated at three levels of detail and checked by a program.

The folder is a clone of github.com/microsoft/RefactorBench (`problems/LEVEL_problems`, `tests` and
`scripts/LEVEL_mapping.py`) with the repositories to refactor added in `repositories`. There is no reference solution.
"""

from __future__ import annotations

import ast
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agent.errors import UsageError
from agent.parsing import syntax_tree
from agent.task import Task
from benchmarks.data import clones
from benchmarks.data.instances import Hidden, Instance, InstanceBroken
from benchmarks.data.sources import columns
from sandboxes import Workspace
from sandboxes.git.diff import Difference, Side, patch

LEVELS = ("descriptive", "base", "lazy")
"""The levels, from the most detailed instruction to the shortest."""
_CHECKER = "_checker/test_checker.py"
"""Checkers open files as `../PATH`, so they run in a folder just below the repository's root."""


@dataclass(frozen=True, slots=True)
class RefactorBench:
    """The tasks of a level, in the order of its mapping."""

    folder: Path
    work: Path
    """The folder in which checkouts are made, each in its own folder."""
    level: str = LEVELS[0]
    reveal: bool = False

    @staticmethod
    def fits(folder: Path) -> bool:
        """Whether the folder is laid out like RefactorBench."""
        return (folder / "problems").is_dir() and (folder / "tests").is_dir()

    def instances(self) -> Iterator[Instance]:
        """The instances. Raises UsageError if the level, its mapping or a file that the mapping names does not exist, a
        file is outside the folder, or an id occurs twice."""
        if self.level not in LEVELS:
            raise UsageError(f"{self.folder} has no level {self.level!r}: choose one of {', '.join(LEVELS)}")
        mapping = self.folder / "scripts" / f"{self.level}_mapping.py"
        try:
            pairs = _mapping(mapping)
            seen: set[str] = set()
            for pair in pairs.items():
                checker, problem = (columns.path_inside(self.folder, f"scripts/{name}") for name in pair)
                if problem.stem in seen:
                    raise ValueError(f"{problem.stem} occurs twice")
                seen.add(problem.stem)
                yield self._instance(checker, problem)
        except (OSError, ValueError, SyntaxError) as error:
            raise UsageError(f"cannot read {mapping}, or what it names: {error}") from error

    def prepare(self, instance: Instance) -> None:
        """Copy the repository and reduce it to one commit, which with `reveal` has the checker in it."""
        source = self.folder / "repositories" / instance.repo
        if not source.is_dir():
            raise InstanceBroken(f"{source} does not exist; put the repository that {instance.id} is about there")
        target = self.work / instance.id
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        clones.create(target)
        if self.reveal:
            clones.reveal(target, instance.hidden.test_patch)

    def _instance(self, checker: Path, problem: Path) -> Instance:
        program = checker.read_bytes()
        name = problem.stem
        task = Task(
            id=name,
            statement=problem.read_text("utf-8").strip(),
            workspace=Workspace(path=self.work / name, mount="/workspace"),
            test_command=f"cd {Path(_CHECKER).parent} && python3 -m pytest -q -p no:cacheprovider -c /dev/null "
            f"--rootdir=.. {Path(_CHECKER).name}",
            protected_paths=(_CHECKER,) if self.reveal else (),
            tags={"level": self.level},
        )
        added = patch([Difference(_CHECKER, None, Side("f", 0o644, program))])
        hidden = Hidden(fail_to_pass=(_CHECKER,), pass_to_pass=(), patch=b"", test_patch=added)
        return Instance(task, hidden, "revealed" if self.reveal else "hidden", repo=checker.parent.name)


def _mapping(file: Path) -> dict[str, str]:
    """The problem that each checker checks: the first dict of texts that the file assigns. The file is parsed, not
    run."""
    for node in syntax_tree(file.read_bytes()).body:
        if isinstance(node, ast.Assign):
            value = ast.literal_eval(node.value)
            if isinstance(value, dict) and all(isinstance(text, str) for pair in value.items() for text in pair):
                return value
    raise ValueError(f"{file} assigns no dict of checkers and problems")
