"""Find the commands of a nox session by reading the noxfile, without running it.

A noxfile is a program. Only plain constructs are read: strings, lists of strings, the command-line arguments, and
conditions on whether there are any. A command that depends on anything else is not understood.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent.measure.automation.calls import Call, NotUnderstood, ToolSession, runs_tests
from agent.parsing import syntax_tree
from sandboxes import Sandbox

SUFFIX = re.compile(r"-\d[\d.]*$|\(.*\)$")
"""The suffix of a session's name after its function's name: a Python version, parameters."""
RUNS = ("run", "run_always", "run_install")
MOST = 2000
"""Limit for the words of a list and the characters of a joined text."""
NAMES = ("-s", "-e", "--session", "--sessions")
FILES = ("-f", "--noxfile")
VALUED = ("-p", "--python", "--pythons", "--envdir", "--default-venv-backend", "-db", "--force-venv-backend", "-fb")


def sessions(
    box: Sandbox, program: Sequence[str], arguments: Sequence[str], env: Mapping[str, str]
) -> Iterator[ToolSession]:
    """The requested sessions, in order; without names, the file's default sessions.

    Raises:
        NotUnderstood: the command line or the noxfile is too complex.
    """
    names, file, posargs = _parsed_arguments(arguments)
    names = names or [name for name in re.split(r"[,\s]+", env.get("NOXSESSION", "")) if name]
    try:
        module = syntax_tree(box.read(file, max_bytes=1 << 20))
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError) as error:
        raise NotUnderstood(f"{file}: {error}") from error
    functions = _functions(module)
    for name in names or _default_sessions(module) or list(functions):
        function = functions.get(name) or functions.get(SUFFIX.sub("", name))
        if function is None:
            raise NotUnderstood(f"no session {name}")
        interpreter = _Interpreter(function.args.args[0].arg, posargs)
        for statement in module.body:
            interpreter.assign(statement)
        interpreter.walk(function.body)
        yield ToolSession(tuple(interpreter.calls), _folder(box, name))


def _parsed_arguments(arguments: Sequence[str]) -> tuple[list[str], str, list[str]]:
    """The names of sessions, the noxfile, and the words after `--`."""
    words, posargs = list(arguments), list[str]()
    if "--" in words:
        at = words.index("--")
        words, posargs = words[:at], words[at + 1 :]
    names, file = list[str](), "noxfile.py"
    while words:
        option, joined, value = words.pop(0).partition("=")
        if not option.startswith("-"):
            raise NotUnderstood(f"the word {option!r}")
        values = [value] if joined else []
        while option in (*NAMES, *FILES, *VALUED) and words and not words[0].startswith("-"):
            values.append(words.pop(0))
        if option in ("-k", "--keywords", "-t", "--tags"):
            raise NotUnderstood(option)
        if option in NAMES:
            names += values
        elif option in FILES and values:
            file = values[-1]
    return names, file, posargs


def _functions(module: ast.Module) -> dict[str, ast.FunctionDef]:
    """The sessions by name."""
    found = {}
    for statement in module.body:
        if isinstance(statement, ast.FunctionDef) and statement.args.args:
            for decorator in statement.decorator_list:
                called = decorator.func if isinstance(decorator, ast.Call) else decorator
                if ast.unparse(called).rpartition(".")[2] in ("session", "nox_session"):
                    found[_name(decorator) or statement.name] = statement
    return found


def _name(decorator: ast.expr) -> str:
    keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
    named = next((each.value for each in keywords if each.arg == "name"), None)
    return named.value if isinstance(named, ast.Constant) and isinstance(named.value, str) else ""


def _default_sessions(module: ast.Module) -> list[str]:
    """The value of `nox.options.sessions`."""
    for statement in module.body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "nox.options.sessions":
            try:
                return [str(name) for name in ast.literal_eval(statement.value)]
            except (ValueError, TypeError) as error:
                raise NotUnderstood("nox.options.sessions") from error
    return []


def _folder(box: Sandbox, name: str) -> str:
    """The environment of a session, for the first Python if there are several; "" if there is none."""
    called = re.sub(r"[^\w-]+", "-", name).strip("-").lower()
    look = 'for folder in ".nox/$0" ".nox/$0"-[0-9]*; do test -d "$folder/bin" && cd "$folder" && pwd && exit; done'
    found = box.exec(["/bin/sh", "-c", look, called], timeout_s=60).stdout.decode(errors="surrogateescape")
    return found.strip()


@dataclass(slots=True)
class _Interpreter:
    """Reads a function from top to bottom."""

    session: str
    """The name of the session parameter in the function."""
    posargs: list[str]
    values: dict[str, Any] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    directory: str = ""

    def walk(self, statements: Sequence[ast.stmt]) -> None:
        """Record what these statements call."""
        for statement in statements:
            self._execute(statement)

    def _execute(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign(value=ast.Call() as call) | ast.Expr(value=ast.Call() as call):
                self._forget(statement)
                self._call(call)
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
                self.assign(statement)
            case ast.If():
                self._choose(statement)
            case ast.With():
                before = self.directory
                for item in statement.items:
                    if isinstance(item.context_expr, ast.Call):
                        self._call(item.context_expr)
                self.walk(statement.body)
                self.directory = before
            case ast.Try():
                self.walk([*statement.body, *statement.orelse, *statement.finalbody])
            case _:
                if any(self._runs(node) for node in ast.walk(statement)):
                    raise NotUnderstood(ast.unparse(statement)[:80])
                self._forget(statement)

    def _runs(self, node: ast.AST) -> bool:
        match node:
            case ast.Attribute(value=ast.Name(id=self.session), attr=method):
                return method in RUNS
        return False

    def _choose(self, statement: ast.If) -> None:
        """Follow the branch that is taken. If that is unknown, read both; then neither may run tests, and the variables
        they set become unknown."""
        try:
            chosen = self._value(statement.test)
        except NotUnderstood:
            before = len(self.calls)
            self.walk([*statement.body, *statement.orelse])
            if any(runs_tests(call.argv) for call in self.calls[before:]):
                raise
            self._forget(statement)
            return
        self.walk(statement.body if chosen else statement.orelse)

    def _forget(self, statement: ast.stmt) -> None:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self.values.pop(node.id, None)

    def assign(self, statement: ast.stmt) -> None:
        """Record a variable; one whose value is not understood is forgotten."""
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                expression: ast.expr = value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                expression = value
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value):
                expression = ast.BinOp(ast.Name(name, ast.Load()), ast.Add(), value)
            case _:
                self._forget(statement)
                return
        try:
            self.values[name] = self._value(expression)
        except NotUnderstood:
            self.values.pop(name, None)

    def _call(self, call: ast.Call) -> None:
        """Read a session call that runs something or changes directory. If it is not understood, reading stops with an
        error: it might be the one that runs the tests."""
        match call.func:
            case ast.Attribute(value=ast.Name(id=self.session), attr=method):
                pass
            case ast.Attribute(value=ast.Name(id=name), attr="append" | "extend" | "insert"):
                self.values.pop(name, None)
                return
            case _:
                return
        if method in ("chdir", "cd") and call.args:
            self.directory = _text(self._value(call.args[0]))
        elif method in RUNS:
            self._record_run(call)

    def _record_run(self, call: ast.Call) -> None:
        words = [_text(word) for argument in call.args for word in self._spread(argument)]
        expression = next((each.value for each in call.keywords if each.arg == "env"), None)
        env = self._value(expression) if expression is not None else {}
        if not isinstance(env, dict):
            raise NotUnderstood(ast.unparse(call)[:80])
        if words:
            self.calls.append(Call(tuple(words), env, self.directory))

    def _value(self, expression: ast.expr) -> Any:
        """Evaluate an expression without running code of the file.

        Raises:
            NotUnderstood: the expression is not plain.
        """
        match expression:
            case ast.Constant(value=str() | int() | None as constant):
                return constant
            case ast.Name(id=name) if name in self.values:
                return self.values[name]
            case ast.Attribute(value=ast.Name(id=self.session), attr="posargs"):
                return list(self.posargs)
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return _bounded([word for item in items[:MOST] for word in self._spread(item)][: MOST + 1])
            case ast.Dict(keys=keys, values=values):
                pairs = [(key, value) for key, value in zip(keys, values, strict=True) if key is not None]
                if len(pairs) < len(keys):  # `**` of another dictionary
                    raise NotUnderstood(ast.unparse(expression)[:80])
                return {_text(self._value(key)): _text(self._value(value)) for key, value in pairs}
            case ast.BoolOp(op=ast.Or(), values=[first, *others]):
                return self._value(first) or self._value(ast.BoolOp(ast.Or(), others) if others[1:] else others[0])
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self._sum(self._value(left), self._value(right))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self._value(body if self._value(test) else orelse)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return not self._value(operand)
            case ast.JoinedStr(values=parts):
                return _bounded("".join(_text(self._value(part)) for part in parts))
            case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
                return self._value(value)
        raise NotUnderstood(ast.unparse(expression)[:80])

    def _spread(self, item: ast.expr) -> list[Any]:
        if not isinstance(item, ast.Starred):
            return [self._value(item)]
        if isinstance(found := self._value(item.value), list):
            return found
        raise NotUnderstood(ast.unparse(item)[:80])

    def _sum(self, left: Any, right: Any) -> Any:
        if type(left) is type(right) and isinstance(left, str | list):
            return _bounded(left + right)
        raise NotUnderstood("a sum")


def _text(value: Any) -> str:
    if isinstance(value, str | int) and not isinstance(value, bool):
        return str(value)
    raise NotUnderstood(f"a {type(value).__name__} in place of a word")


def _bounded(value: Any) -> Any:
    """Return the value. It must not be longer than any command line: a file could double a list on each line."""
    if len(value) > MOST:
        raise NotUnderstood("a long value")
    return value
