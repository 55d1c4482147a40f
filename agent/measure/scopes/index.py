"""The index of a workspace: what each Python file imports, defines and mentions, as recorded by `inside.imports`.

It is built without running any project code.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent.counting import counted
from agent.measure.inside import program_source
from agent.parsing import loads, reason
from sandboxes import Sandbox

TIMEOUT_S = 300.0
RUN = """
for python in python3 python .venv/bin/python venv/bin/python
do
    if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 8))' 2>/dev/null
    then exec "$python" -S "$1" . "$2"
    fi
done
exit 127
"""


@dataclass(frozen=True, slots=True)
class Bound:
    """A name that `from module import name as alias` binds."""

    name: str
    """`*` for all names."""
    alias: str
    attributes: tuple[str, ...]
    """Dotted attributes that the file looks up in it, if it may be a module."""


@dataclass(frozen=True, slots=True)
class Import:
    """An import statement of one module, or an equivalent call."""

    level: int
    """The number of leading dots."""
    module: str
    names: tuple[Bound, ...] | None
    """None: the module itself is imported."""
    lazy: bool
    """Whether it runs inside a function, or only type checkers see it."""
    alias: str = ""
    """The name that the module itself is bound to; empty: none."""
    attributes: tuple[str, ...] = ()
    """Dotted attributes that the file looks up in that name."""


@dataclass(frozen=True, slots=True)
class Source:
    """A Python file."""

    imports: tuple[Import, ...] = ()
    names: frozenset[str] = frozenset()
    """Top-level names bound by anything but an import."""
    exported: frozenset[str] | None = None
    """Its `__all__`; None if it is missing or cannot be read."""
    mentions: tuple[str, ...] = ()
    """Strings that name a module, a runnable package, or a file by the end of its path."""
    dynamic: bool = False
    """Whether it has imports that are known only when it runs."""
    words: Mapping[str, int] = field(default_factory=dict)
    """Identifier counts of a file that looks like a test, without identifiers common to most tests."""


@dataclass(frozen=True, eq=False, slots=True)
class Index:
    """The Python files of a workspace by relative, `/`-separated path. Compared by identity."""

    files: Mapping[str, Source] = field(default_factory=dict)
    problem: str = ""
    """Why files are missing, for people; empty if all are there."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Index:
        """Read the output of `inside.imports`. Raises ValueError for anything else."""
        try:
            vocabulary = [str(word) for word in data["vocabulary"]]
            files = {str(path): _source(entry, vocabulary) for path, entry in sorted(data["files"].items())}
            left_out = int(data["left_out"])
        except (KeyError, TypeError, IndexError, AttributeError, OverflowError) as error:
            raise ValueError(f"not an index of imports: {error!r}") from error
        problem = f"{counted(left_out, 'Python file is', 'Python files are')} too large or too many"
        return cls(files, problem if left_out else "")


def read_index(box: Sandbox) -> Index:
    """Index the workspace of a fork. If that fails, the index is empty and says why.

    Raises:
        sandboxes.SandboxError: the sandbox failed.
    """
    folder = f"/tmp/{secrets.token_hex(8)}"  # noqa: S108  # inside the sandbox, where nobody else is
    program, output = f"{folder}/imports.py", f"{folder}/imports.json"
    box.write(program, program_source("imports.py"))
    ran = box.exec(["/bin/sh", "-c", RUN, "sh", program, output], timeout_s=TIMEOUT_S)
    if ran.timed_out:
        return Index(problem=f"reading the imports took longer than {TIMEOUT_S:.0f} s")
    if ran.exit_code:
        error_line = ran.stderr.decode(errors="replace").strip().split("\n")[-1][:200]
        why = "the sandbox has no Python 3.8 or newer" if ran.exit_code == 127 else f"its Python failed: {error_line}"
        return Index(problem=f"the imports could not be read: {why}")
    try:
        return Index.from_json(loads(box.read(output)))
    except (OSError, ValueError) as error:
        return Index(problem=f"the imports could not be read: {reason(error)}")


def _source(entry: Sequence[Any], vocabulary: Sequence[str]) -> Source:
    imports, names, exported, mentions, dynamic, words = entry
    return Source(
        tuple(_import(each) for each in imports),
        frozenset(map(str, names)),
        None if exported is None else frozenset(map(str, exported)),
        tuple(map(str, mentions)),
        bool(dynamic),
        {vocabulary[words[number]]: int(words[number + 1]) for number in range(0, len(words), 2)},
    )


def _import(entry: Sequence[Any]) -> Import:
    level, module, names, lazy, *more = entry
    if names is not None:
        bound = tuple(Bound(str(name), str(alias), tuple(map(str, attributes))) for name, alias, attributes in names)
        return Import(int(level), str(module), bound, bool(lazy))
    alias, attributes = more
    return Import(int(level), str(module), None, bool(lazy), str(alias), tuple(map(str, attributes)))
