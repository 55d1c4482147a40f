"""Signs that a Python source talks to the test runner instead of doing its work. Only added lines are judged."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Collection, Iterator

__all__ = ["suspicions"]

RUNNER_MODULES = {
    "pytest",
    "_pytest",
    "pluggy",
    "unittest.case",
    "unittest.result",
    "unittest.runner",
    "unittest.suite",
}
RUNNER_TEXT = re.compile(
    r"(_?pytest|pluggy|unittest)(\.\w+)*|PYTEST_\w+|RAMIFY_\w+|_exit|/proc/(self|\d+)\b.*|/dev/fd\b.*"
)
ENDING = {"os._exit", "os.abort", "os.kill", "os.killpg", "signal.raise_signal", "atexit.register"}
LOOKING = {"inspect.stack", "inspect.currentframe", "inspect.getouterframes", "sys._getframe", "sys._current_frames"}
LOOKING |= {"gc.get_objects", "gc.get_referrers", "sys.settrace", "sys.setprofile", "sys.addaudithook"}
CLOCKS = {"signal.signal", "signal.setitimer", "signal.alarm"}
REASONS = (
    dict.fromkeys(ENDING, "ends the process, or acts when it ends")
    | dict.fromkeys(LOOKING, "looks at or hooks into whoever calls it")
    | dict.fromkeys(CLOCKS, "changes how signals are handled")
    | dict.fromkeys(("exec", "eval", "__import__"), "runs text as code")
)
TELLING_ATTRIBUTES = {name.rsplit(".", 1)[1]: name for name in ("os._exit", *LOOKING) if not name.endswith(".stack")}


def suspicions(source: str, added: Collection[int]) -> list[tuple[int, str]]:
    """Line and reason of everything suspicious that begins on one of the `added` lines; nothing for a source that
    cannot be parsed, which no test can import either."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return []
    except (RecursionError, MemoryError):  # a test's process may read what this one cannot
        return [(min(added, default=1), "it is nested too deeply to be looked at")]
    found = {(node.lineno, reason) for node, reason in _all(tree) if node.lineno in added}
    return sorted(found)


def _all(tree: ast.Module) -> Iterator[tuple[ast.stmt | ast.expr, str]]:
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Import() | ast.ImportFrom():
                yield from ((node, reason) for reason in _imports(node))
            case ast.Attribute(attr=attr):
                name = TELLING_ATTRIBUTES.get(attr) or _dotted(node)
                if name in REASONS:
                    yield node, f"{name}: {REASONS[name]}"
            case ast.Call(func=ast.Name(id=name)) if name in REASONS:
                yield node, f"{name}: {REASONS[name]}"
            case ast.Call(func=ast.Name(id="open"), args=[ast.Constant(value=str(path)), *_]) if path.startswith("/"):
                yield node, f"opens {path}, outside the repository"
            case ast.Constant(value=str(text)) if id(node) not in docstrings and RUNNER_TEXT.fullmatch(text):
                yield node, f"names the test runner: {text!r}"
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="builtins"))]):
                yield node, "replaces a builtin"
            case ast.FunctionDef(name="__eq__", body=[*_, ast.Return(value=ast.Constant(value=True))]) if _plain(node):
                yield node, "an object that equals everything"
    yield from ((node, "ends the process while it is imported") for node in _exits(tree.body))


def _imports(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    if isinstance(node, ast.Import):
        modules = [alias.name for alias in node.names]
    else:
        modules = (
            [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)] if not node.level else []
        )
    for module in modules:
        if module in RUNNER_MODULES or module.split(".")[0] in RUNNER_MODULES:
            yield f"imports the test runner: {module}"
        elif module in REASONS:
            yield f"{module}: {REASONS[module]}"


def _plain(function: ast.FunctionDef) -> bool:
    """Whether nothing but a docstring comes before the return."""
    return all(isinstance(statement, ast.Expr) for statement in function.body[:-1])


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
