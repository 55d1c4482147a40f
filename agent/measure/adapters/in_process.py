"""Python test programs: Ramify's program starts in place of the framework's, runs it in the same process, and seals the
results.

It starts before the candidate's code, but that code then runs in the same process, as with pytest.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Sequence

from agent.measure.adapters import Invocation
from agent.measure.inside import program_source
from agent.measure.warm.plugins import Limits, RunNames, run_request
from agent.parsing import syntax_tree

PYTHON = r"(?:\S*/)?python[\d.]*(?:\s+-(?:[WX]\s*\S+|[A-Za-z]+))*\s+"
"""A Python with its options, before a script in a command."""
SHARED = ("account.py", "alarm.py", "channel.py", "cutting.py", "failures.py", "scripts.py", "wanted.py")


def with_our_program(
    programs: Sequence[str],
    replaced: Callable[[str, str], str],
    names: RunNames,
    command: str,
    wanted: Sequence[str],
    limits: Limits,
) -> Invocation:
    """Run the command after `replaced` has put Ramify's package in place of the framework's program. The package
    consists of `programs`; the last one is started, with its request in its own source."""
    package, folder = names.plugins[-1], names.folder
    request = run_request(names, wanted, limits, by_path=bool(wanted)) | {"package": package}
    start = f"import json\n\nfrom .{programs[-1]} import main\n\nmain(json.loads({json.dumps(request)!r}))\n"
    files = {"__init__.py": b"", "__main__.py": start.encode()}
    files |= {
        name: without_annotations(program_source(name))
        for name in (*SHARED, *(f"{program}.py" for program in programs))
    }
    own = re.sub(r"(?<!\w)PYTHONPATH=", f"PYTHONPATH={folder}:", replaced(command, package))
    prologue = f"pwd >{folder}/{package}/root\nexport PYTHONPATH={folder}${{PYTHONPATH:+:$PYTHONPATH}}"
    return Invocation(f"{prologue}\n{own}", {f"{folder}/{package}/{name}": text for name, text in files.items()})


def without_annotations(source: bytes) -> bytes:
    """Return a program without its annotations, for Pythons before 3.8."""
    return ast.unparse(ast.fix_missing_locations(_AnnotationRemover().visit(syntax_tree(source)))).encode()


class _AnnotationRemover(ast.NodeTransformer):
    """Removes annotations."""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:  # ast's names
        return None if node.module == "__future__" else node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        return ast.Pass() if node.value is None else ast.Assign([node.target], node.value)
