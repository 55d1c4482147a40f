"""Altered copies of test files, in which every test should fail whatever code it tests.

Invariant: in the copy, an honest test fails in its added last statement. A test that passes there gets its result from
somewhere other than its statements. If a test states an expected value, the copy has a decoy in its place, which must
make the assertion fail. The functions are pure: sources in, sources out.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from typing import cast

from agent.measure.inside import program_source
from agent.measure.inside.equality import other
from agent.parsing import expression_tree, python, syntax_tree

DOCUMENTS = (".md", ".rst", ".txt")
"""Files whose examples form one test."""

END = "the end of the test"
"""The message of a copied test's last statement, after the marker."""
SIGNS: dict[type[ast.cmpop], str] = {ast.Eq: "==", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.In: "=="}
"""The operator that the left side of a comparison is tried with."""
CALLS = {"assertLess": "<", "assertLessEqual": "<=", "assertGreater": ">", "assertGreaterEqual": ">="}
"""unittest methods that compare other than by equality."""
EQUALITY = re.compile(r"assert(?!Not|Less|Greater)\w*Equals?")
RAISING = re.compile(r"pytest\.raises|self\.assertRaises(Regex)?")
"""Calls that open a block which has to raise an exception."""
MOST = 2_000
"""Maximum characters of a decoy: it takes long to report how longer texts differ."""
Function = ast.FunctionDef | ast.AsyncFunctionDef


def altered(
    path: str, source: str, tests: Collection[str], marker: str, words: str, changed: Collection[str]
) -> str | None:
    """Return the copy, in which each function named in `tests` ends by failing with the marker, and each assertion is
    checked (see `agent.measure.inside.equality` for `words` and `changed`); None if there is no such function.
    """
    if path.endswith(DOCUMENTS):
        return f"{source}\n\n>>> raise AssertionError({marker + END!r})\n"
    tree = python(source)
    if tree is None or not any(function.name in tests for function in _functions(tree)):
        return None
    name = f"_{marker.strip()}"
    inside, around = _texts(tree, source, tests)
    copied = _Copied(name, {function: _words(text) for function, text in inside.items()}, marker)
    tree = cast("ast.Module", copied.visit(tree))
    arguments = (marker, sorted(_words(around + words) - {"__eq__"}), sorted(changed))
    prologue = f"{name} = __import__('types').ModuleType({name!r})\nexec({_program()!r}, {name}.__dict__)\n"
    _insert(tree.body, syntax_tree(f"{prologue}{name} = {name}.Assertions{arguments!r}").body)
    return ast.unparse(ast.fix_missing_locations(tree))


def failing(path: str, source: str, tests: Collection[str], marker: str) -> str | None:
    """Return a copy in which these tests do nothing but fail with the marker, and mocks replace imports that fail."""
    if path.endswith(DOCUMENTS):
        return f">>> raise AssertionError({marker!r})\n\n{source}"
    tree = python(source)
    if tree is None:
        return None
    for function in _functions(tree):
        if function.name in tests:
            _insert(function.body, [_failure(marker)])
    tree.body = [
        _optional(each) if isinstance(each, (ast.Import, ast.ImportFrom)) and not _is_future(each) else each
        for each in tree.body
    ]
    return ast.unparse(ast.fix_missing_locations(tree))


class _Copied(ast.NodeTransformer):
    """Turns a tree into its copy, in place."""

    def __init__(self, name: str, words: Mapping[Function, Collection[str]], marker: str) -> None:
        self.name, self.words, self.marker = name, words, marker
        self.expected: frozenset[str] = frozenset()

    def _function(self, node: Function) -> ast.AST:
        outer, self.expected = self.expected, _expected(node)
        parameters = self.expected & _parametrised(node)
        self.generic_visit(node)
        self.expected = outer
        begin: list[ast.stmt] = [
            ast.Assign([ast.Name(each, ast.Store())], self.call("swap", each)) for each in sorted(parameters)
        ]
        if node in self.words:
            _Ending(self.marker).generic_visit(node)
            node.body.append(_failure(f"{self.marker}{END}"))
            words = sorted(self.words[node])
            used = [word for word in words if word in vars(builtins)]
            begin.append(ast.Expr(self.call("enter", _literal(words), _literal(used))))
        _insert(node.body, begin)
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = _function  # noqa: N815  # ast's names

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        match node.targets:
            case [ast.Name(id=name)] if name in self.expected and (decoy := _decoy(node.value)):
                node.value = self.call("swap", decoy)
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        decoyed: ast.stmt = node
        match node.test:
            case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]) as test:
                test.left, test.comparators[0], decoyed = self._decoyed(left, right, node)
        node.test = cast("ast.expr", _Compared(self).visit(node.test))
        return decoyed

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        """Alter a call whose name says that it asserts something about its first two arguments."""
        decoyed: ast.stmt = node
        match node.value:
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=[left, right, *more]) as call if (
                name.startswith("assert") and not any(isinstance(each, ast.Starred) for each in (left, right))
            ):
                if EQUALITY.fullmatch(name):
                    left, right, decoyed = self._decoyed(left, right, node, call.func)
                first = CALLS.get(name, "==")
                sign = "in" if name == "assertIn" else first
                call.args = [self.seen(left, first), self.seen(right, sign), *more]
        return decoyed

    def visit_With(self, node: ast.With) -> ast.AST | list[ast.stmt]:
        """Put an empty block, which does not raise, before a block that has to."""
        self.generic_visit(node)
        match node.items:
            case [ast.withitem(context_expr=ast.Call(func=raising) as call)] if RAISING.fullmatch(ast.unparse(raising)):
                if not any(isinstance(each, ast.NamedExpr) for each in ast.walk(call)):
                    return [self._failing(ast.With([ast.withitem(call)], [ast.Pass()]), self.name), node]
        return node

    def _decoyed(
        self, left: ast.expr, right: ast.expr, statement: ast.stmt, *method: ast.expr
    ) -> tuple[ast.expr, ast.expr, ast.stmt]:
        """The two sides of an equality assertion and the assertion itself, with a decoy where possible."""
        if (decoy := _decoy(right)) is not None:
            return left, decoy, self._failing(statement, self.name, *method)
        if (decoy := _decoy(left)) is not None:
            return decoy, right, self._failing(statement, self.name, *method)
        names = [each.id for each in (left, right) if isinstance(each, ast.Name) and each.id in self.expected]
        return left, right, self._failing(statement, names[-1], *method) if names else statement

    def _failing(self, statement: ast.stmt, *how: ast.expr | str) -> ast.stmt:
        return ast.With([ast.withitem(self.call("failing", *how))], [statement])

    def seen(self, value: ast.expr, sign: str | None) -> ast.expr:
        """The value, passed through `see`; literals need no check."""
        try:
            ast.literal_eval(value)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return value if sign is None else self.call("see", value, ast.Constant(sign))
        return value

    def call(self, method: str, *values: ast.expr | str) -> ast.Call:
        """Return a call of a method of `agent.measure.inside.equality.Assertions`; a string argument is a name."""
        arguments = [ast.Name(each, ast.Load()) if isinstance(each, str) else each for each in values]
        return ast.Call(ast.Attribute(ast.Name(self.name, ast.Load()), method, ast.Load()), arguments, [])


class _Compared(ast.NodeTransformer):
    """Passes the values that an expression compares through `see`."""

    def __init__(self, copied: _Copied) -> None:
        self.copied = copied

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        node.left = self.copied.seen(node.left, SIGNS.get(type(node.ops[0])))
        signs = ["in" if isinstance(each, ast.In) else SIGNS.get(type(each)) for each in node.ops]
        node.comparators = [self.copied.seen(each, sign) for each, sign in zip(node.comparators, signs, strict=True)]
        return node


class _Ending(ast.NodeTransformer):
    """Makes a function fail where it would return."""

    def __init__(self, marker: str) -> None:
        self.marker = marker

    def visit(self, node: ast.AST) -> ast.AST | list[ast.stmt]:
        """Skip nested definitions, which have returns of their own."""
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            return node
        if isinstance(node, ast.Return):
            kept = [ast.Expr(node.value)] if node.value else []
            return [*kept, _failure(f"{self.marker}{END}")]
        return self.generic_visit(node)


def _functions(tree: ast.Module) -> Iterator[Function]:
    """All functions except those inside others."""
    todo: list[ast.stmt] = list(tree.body)
    while todo:
        match todo.pop():
            case ast.FunctionDef() | ast.AsyncFunctionDef() as function:
                yield function
            case ast.ClassDef(body=body) | ast.If(body=body) | ast.Try(body=body) | ast.With(body=body):
                todo += body


def _decoy(value: ast.expr) -> ast.expr | None:
    """The decoy for a literal value; None if the expression is not a literal or has no decoy."""
    try:
        known = ast.literal_eval(value)
        new = other(known)
        return None if new == known or len(repr(new)) > MOST else _literal(new)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _literal(value: object) -> ast.expr:
    return expression_tree(repr(value))


def _texts(tree: ast.Module, source: str, tests: Collection[str]) -> tuple[dict[Function, str], str]:
    """The text of each of these tests, and the text around all tests without imports."""
    lines = source.split("\n")
    inside, gone = dict[Function, str](), set[int]()
    for statement in (*_functions(tree), *tree.body):
        decorators = getattr(statement, "decorator_list", [])
        begin, end = min(each.lineno for each in (statement, *decorators)) - 1, statement.end_lineno
        if isinstance(statement, Function) and statement.name in tests:
            inside[statement] = "\n".join(lines[begin:end])
        if isinstance(statement, (ast.Import, ast.ImportFrom)) or getattr(statement, "name", "").startswith("test"):
            gone.update(range(begin, end or begin))
    return inside, "\n".join(line for number, line in enumerate(lines) if number not in gone)


def _words(text: str) -> set[str]:
    return set(re.findall(r"[^\W\d]\w*", text))


def _expected(function: Function) -> frozenset[str]:
    """The names that a function uses only in comparisons."""
    uses, compared, assigned = Counter[str](), Counter[str](), Counter[str]()
    for node in ast.walk(function):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                uses[name] += 1
            case ast.Name(id=name) | ast.Global(names=[name, *_]) | ast.Nonlocal(names=[name, *_]):
                assigned[name] += 1
            case ast.Assert(test=ast.Compare(left=left, ops=[ast.Eq()], comparators=[right])):
                compared.update(each.id for each in (left, right) if isinstance(each, ast.Name))
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr=attr), args=[left, right, *_])):
                if EQUALITY.fullmatch(attr):
                    compared.update(each.id for each in (left, right) if isinstance(each, ast.Name))
    parameters = {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}
    return frozenset(
        name for name, n in compared.items() if uses[name] == n and assigned[name] == (name not in parameters)
    )


def _parametrised(function: Function) -> frozenset[str]:
    """The parameters of a function that its decorators name."""
    nodes = (node for decorator in function.decorator_list for node in ast.walk(decorator))
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    parameters = {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}
    return frozenset(re.findall(r"\w+", " ".join(texts))) & parameters


def _insert(body: list[ast.stmt], statements: list[ast.stmt]) -> None:
    """Insert statements after the docstring and `__future__` imports."""
    index = 0
    while index < len(body) and (_is_docstring(body[index], index) or _is_future(body[index])):
        index += 1
    body[index:index] = statements


def _is_docstring(statement: ast.stmt, index: int) -> bool:
    return not index and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _is_future(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


def _failure(message: str) -> ast.stmt:
    return syntax_tree(f"assert False, {message!r}").body[0]


def _optional(statement: ast.Import | ast.ImportFrom) -> ast.stmt:
    """Return the import, with mocks for its names in case it fails."""
    names = [each.asname or each.name.split(".")[0] for each in statement.names if each.name != "*"]
    stand_in = "".join(f"\n    {name} = __import__('unittest.mock').mock.MagicMock()" for name in names) or "\n    pass"
    tried = cast("ast.Try", syntax_tree(f"try:\n    pass\nexcept ImportError:{stand_in}").body[0])
    tried.body = [statement]
    return tried


@cache
def _program() -> str:
    return program_source("equality.py").decode()
