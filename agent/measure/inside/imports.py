"""Record, in the sandbox, what each Python file of a workspace imports, defines and mentions.

No project code is run. The program's arguments are the folder to walk and the JSON file to write:

    {"files": {path: [imports, names, exported, mentions, dynamic, words]}, "vocabulary": [...], "left_out": n}

- imports: [level, module, bound, lazy] each; `bound` is null for `import module`, else [name, as, attributes] for each
  name that is imported (`*` is one of them). For `import module` the last entry is [attributes] of the module.
- names: top-level names bound by anything but an import.
- exported: the file's `__all__` if that is literal, else null.
- mentions: strings that are dotted names of modules, a runnable package, or names of files.
- dynamic: whether the file has imports that are known only when it runs.
- words: alternating vocabulary index and count, for files that look like tests.

Stdlib only, Python 3.8 and later.
"""

from __future__ import annotations

import ast
import gc
import json
import os
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

SKIPPED = {"node_modules", "venv", "env", "site-packages", "dist-packages", "build", "dist", "__pycache__", "eggs"}
FILES = 30_000
FILE_BYTES = 3_000_000
ALL_BYTES = 400_000_000
WORDS = 3_000
"""Maximum number of words per file, the most frequent first."""
COMMON = 0.5
"""Words in more than this share of the test-like files do not distinguish them."""
FEW = 20
"""With fewer files, all words are kept."""
MENTION = 120
"""Maximum characters of a mention."""

WORD = re.compile(r"[A-Za-z_]\w+", re.A)
CHAIN = re.compile(r"(?<![\w.])([A-Za-z_]\w*)\.([A-Za-z_]\w*(?:\.[A-Za-z_]\w*){0,3})")
QUOTED = re.compile(r"""["']([\w./\-]{3,%d})["']""" % MENTION)
DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
LITERAL_IMPORT = re.compile(r"""\b(?:import_module|__import__|importorskip)\(\s*["']([\w.]+)["']\s*[,)]""")
OTHER_IMPORT = re.compile(
    r"""\b(?:import_module|__import__|iter_modules|walk_packages|module_from_spec)\((?!\s*["'][\w.]+["']\s*[,)])"""
)
IMPORT_LINE = re.compile(r"^([ \t]*)import[ \t]+([\w.]+)(?:[ \t]+as[ \t]+(\w+))?", re.M)
FROM_LINE = re.compile(r"^([ \t]*)from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]*(\([^)]*\)|[^\n#]*)", re.M)
NAME_LINE = re.compile(r"^(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)|^(\w+)[ \t]*(?::[^=\n]+)?=(?!=)", re.M)
TEST_TEXT = re.compile(r"^\s*(?:import|from)\s+(?:pytest|unittest)\b|^\s*def test_", re.M)

BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


class Found:
    """What is recorded about one file."""

    def __init__(self) -> None:
        self.imports: list[tuple[int, str, list[tuple[str, str]] | None, bool, str]] = []
        """Level, module, the names bound from it, whether lazily, and the name the module is bound to."""
        self.names: set[str] = set()
        self.exported: list[str] | None = None
        self.computed = False
        """Whether `__all__` has parts that cannot be read."""

    def add_import(self, module: str, bound: str, lazy: bool) -> None:
        self.imports.append((0, module, None, lazy, bound))

    def add_from(self, level: int, module: str, pairs: list[tuple[str, str]], lazy: bool) -> None:
        self.imports.append((level, module, pairs, lazy, ""))

    def export(self, value: Any) -> None:
        """Add the names that can be read in an expression that sets or extends `__all__`."""
        items = value.elts if isinstance(value, (ast.List, ast.Tuple, ast.Set)) else [value]
        names = [item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str)]
        self.exported = (self.exported or []) + names
        self.computed |= len(names) < len(items)

    def assign(self, targets: list[Any], value: Any) -> None:
        names = [name for target in targets for name in names_in(target)]
        if "__all__" not in names:
            self.names.update(names)
        elif value is not None:
            self.export(value)


def parsed(text: str) -> Found:
    """Parse a source file. Raises SyntaxError or ValueError if that fails."""
    found = Found()
    pending = [(ast.parse(text).body, True, False)]
    while pending:
        body, top, lazy = pending.pop()
        for node in body:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    found.add_import(alias.name, alias.asname or alias.name.split(".")[0], lazy)
            elif isinstance(node, ast.ImportFrom):
                pairs = [(alias.name, alias.asname or alias.name) for alias in node.names]
                found.add_from(node.level, node.module or "", pairs, lazy)
            elif not isinstance(node, (ast.Expr, ast.Return)):
                if top:
                    bind(found, node)
                pending += blocks(node, top, lazy)
    return found


def bind(found: Found, node: Any) -> None:
    """Record what a top-level statement binds."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        found.names.add(node.name)
    elif isinstance(node, ast.Assign):
        found.assign(node.targets, node.value)
    elif isinstance(node, (ast.AnnAssign, ast.AugAssign)):
        found.assign([node.target], node.value)
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        found.names.update(names_in(node.target))


def blocks(node: Any, top: bool, lazy: bool) -> Iterator[tuple[list[Any], bool, bool]]:
    """The nested statements of a statement, with whether they are at top level, and whether they run later or never."""
    later = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    top = top and not later and not isinstance(node, ast.ClassDef)
    for name in BLOCKS:
        inner = getattr(node, name, None)
        if inner:
            typing_only = name == "body" and isinstance(node, ast.If) and named(node.test) == "TYPE_CHECKING"
            yield inner, top, lazy or later or typing_only


def names_in(target: Any) -> Iterator[str]:
    """The variables that an assignment to this binds."""
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, (ast.Tuple, ast.List)):
        for item in target.elts:
            yield from names_in(item)


def named(node: Any) -> str:
    """The last part of a name; "" for other expressions."""
    return str(getattr(node, "id", getattr(node, "attr", "")))


def guessed(text: str) -> Found:
    """Like `parsed`, for text that Python cannot parse."""
    found = Found()
    for indent, module, name in IMPORT_LINE.findall(text):
        found.add_import(module, name or module.split(".")[0], bool(indent))
    for indent, dots, module, names in FROM_LINE.findall(text):
        parts = [part.split() for part in names.strip("() \t").replace("\\", " ").split(",")]
        pairs = [(words[0], words[-1]) for words in parts if words and re.match(r"\w+$|\*$", words[0])]
        found.add_from(len(dots), module, pairs, bool(indent))
    for defined, assigned in NAME_LINE.findall(text):
        found.names.add(defined or assigned)
    return found


def chains(text: str) -> dict[str, set[str]]:
    """For each name, the attributes looked up in it anywhere."""
    uses: dict[str, set[str]] = {}
    for name, rest in set(CHAIN.findall(text)):
        uses.setdefault(name, set()).add(rest)
    return uses


def entry(text: str, tests: bool) -> tuple[list[Any], list[str], Counter[str]]:
    """The output for a file, without its mentions, which are filtered later, and its words."""
    try:
        found = parsed(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        found = guessed(text)
    uses = chains(text)
    imports: list[list[Any]] = []
    for level, module, pairs, lazy, name in found.imports:
        if pairs is None:
            imports.append([level, module, None, int(lazy), name, sorted(uses.get(name, ()))])
        else:
            bound = [[orig, new, sorted(uses.get(new, ())) if new == new.lower() else []] for orig, new in pairs]
            imports.append([level, module, bound, int(lazy)])
    imports += ([0, module, None, 1, "", []] for module in sorted(set(LITERAL_IMPORT.findall(text))))
    dynamic = int(OTHER_IMPORT.search(text) is not None)
    exported = None if found.exported is None or found.computed else sorted(set(found.exported))
    words: Counter[str] = Counter(WORD.findall(text)) if tests else Counter()
    return [imports, sorted(found.names), exported, [], dynamic, []], list(set(QUOTED.findall(text))), words


def walk(root: str) -> Iterator[tuple[str, str]]:
    """The files below a folder, with their relative paths; links are not followed."""
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".")
            and name not in SKIPPED
            and not name.endswith(".egg-info")
            and not os.path.islink(os.path.join(folder, name))
            and not os.path.exists(os.path.join(folder, name, "pyvenv.cfg"))
        )
        for name in sorted(files):
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                yield path, os.path.relpath(path, root).replace(os.sep, "/")


def read(path: str) -> str | None:
    """The text of a file; None if it is too large or unreadable."""
    try:
        if os.path.getsize(path) > FILE_BYTES:
            return None
        with open(path, "rb") as file:
            return file.read().decode("utf-8", "replace").replace("\0", " ").lstrip("\ufeff")
    except OSError:
        return None


def looks_like_tests(path: str, text: str) -> bool:
    """Whether a file looks like a test, so that its words are kept."""
    return "test" in path.lower() or TEST_TEXT.search(text) is not None


def survey(root: str) -> dict[str, Any]:
    """The output for a workspace."""
    files: dict[str, list[Any]] = {}
    quoted: dict[str, list[str]] = {}
    counts: dict[str, Counter[str]] = {}
    names: set[str] = set()
    runnable: set[str] = set()
    firsts: set[str] = set()
    left_out = size = 0
    for file, path in walk(root):
        folder, _, name = path.rpartition("/")
        if name == "__main__.py":
            runnable.add(folder.rsplit("/", 1)[-1])
        elif name != "__init__.py":
            names.add(name)
        if not name.endswith(".py"):
            continue
        text = read(file) if len(files) < FILES and size < ALL_BYTES else None
        if text is None:
            left_out += 1
            continue
        size += len(text)
        files[path], quoted[path], words = entry(text, looks_like_tests(path, text))
        if words:
            counts[path] = words
        firsts.update(path[:-3].split("/"))
    for path, strings in quoted.items():
        files[path][3] = sorted(text for text in strings if mentions(text, firsts, names, runnable))
    return {"files": files, "vocabulary": number(files, counts), "left_out": left_out}


def mentions(text: str, firsts: set[str], names: set[str], runnable: set[str]) -> bool:
    """Whether a string may name a module of the workspace, a package with a `__main__.py`, or a file."""
    if text in runnable or (text.rsplit("/", 1)[-1] in names and "." in text):
        return True
    return DOTTED.fullmatch(text) is not None and text.split(".", 1)[0] in firsts


def number(files: dict[str, list[Any]], counts: dict[str, Counter[str]]) -> list[str]:
    """Replace the words of each file by numbers; return the vocabulary."""
    spread: Counter[str] = Counter()
    for words in counts.values():
        spread.update(words.keys())
    most = COMMON * len(counts) if len(counts) >= FEW else len(counts)
    vocabulary = sorted(word for word, times in spread.items() if times <= most)
    numbers = {word: number for number, word in enumerate(vocabulary)}
    for path, words in counts.items():
        flat = files[path][5]
        for word, times in words.most_common(WORDS):
            if word in numbers:
                flat += (numbers[word], times)
    return vocabulary


def main(root: str, output: str) -> None:
    """Walk a folder and write the output."""
    gc.disable()  # syntax trees are thrown away at once: looking for cycles would take a third of the time
    warnings.simplefilter("ignore")
    sys.setrecursionlimit(5000)
    with open(output, "w") as file:
        json.dump(survey(root), file, separators=(",", ":"))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
