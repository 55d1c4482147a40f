"""Signs that a Python source ends its process. If a command's exit code is the only test result, that would forge it.

Only added lines are checked, and only by names.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Collection, Iterator

from agent.parsing import syntax_tree

ENDING = {"os._exit", "os.abort", "os.kill", "os.killpg", "signal.raise_signal", "atexit.register"}
ENDS = "ends the process, or acts when it ends"


def suspicions(source: str, added: Collection[int]) -> list[tuple[int, str]]:
    """Line and reason of everything suspicious that begins on one of the `added` lines; empty for a source that cannot
    be parsed, because no test can import it either."""
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = syntax_tree(source)
    except (SyntaxError, ValueError):
        return []
    except (RecursionError, MemoryError):  # the test process may be able to parse it
        return [(min(added, default=1), "it is nested too deeply to be looked at")]
    return sorted({(node.lineno, reason) for node, reason in _all(tree) if node.lineno in added})


def _all(tree: ast.Module) -> Iterator[tuple[ast.stmt | ast.expr, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module), level=0):
                names = (f"{module}.{alias.name}" for alias in node.names)
                yield from ((node, f"{name}: {ENDS}") for name in names if name in ENDING)
            case ast.Attribute(attr="_exit"):
                yield node, f"os._exit: {ENDS}"
            case ast.Attribute() if _dotted(node) in ENDING:
                yield node, f"{_dotted(node)}: {ENDS}"
    yield from ((node, "ends the process while it is imported") for node in _exits(tree.body))


def _exits(body: list[ast.stmt]) -> Iterator[ast.stmt | ast.expr]:
    """Calls that end the process, in code that runs when the module is imported."""
    for statement in body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)) or _is_main(statement):
            continue
        blocks = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
        blocks += [handler.body for handler in getattr(statement, "handlers", [])]
        if any(blocks):
            for block in blocks:
                yield from _exits(block)
        elif any(_ends(node) for node in ast.walk(statement)):
            yield statement


def _ends(node: ast.AST) -> bool:
    return (isinstance(node, ast.Name) and node.id in ("SystemExit", "exit", "quit")) or (
        isinstance(node, ast.Attribute) and _dotted(node) == "sys.exit"
    )


def _is_main(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and "__main__" in ast.dump(statement.test)


def _dotted(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attr):
            return f"{_dotted(value)}.{attr}"
    return "?"
