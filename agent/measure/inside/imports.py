"""The program that notes, in the sandbox, what each Python file of a workspace imports, defines and mentions.

Nothing of the project is run. It is called with the folder to walk and the file to write, in JSON:

    {"files": {path: [imports, names, exported, mentions, dynamic, words]}, "vocabulary": [...], "left_out": n}

- imports: [level, module, bound, lazy] each; `bound` is null for `import module`, else [name, as, attributes] for each
  name that is imported (`*` is one of them). For `import module` the last entry is [attributes] of the module.
- names: what the file binds at top level by other means than an import.
- exported: its `__all__` as far as that is literal, or null.
- mentions: strings in it that are dotted names of modules or names of other files.
- dynamic: it imports what only its run will tell.
- words: index in the vocabulary and count in turn, of files that look like tests.

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
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

SKIPPED = {"node_modules", "venv", "env", "site-packages", "dist-packages", "build", "dist", "__pycache__", "eggs"}
FILES = 30_000
FILE_BYTES = 3_000_000
ALL_BYTES = 400_000_000
WORDS = 3_000
"""The most words of one file, the most frequent first."""
COMMON = 0.5
"""A word of a larger part of the files that look like tests tells none of them apart."""
FEW = 20
"""Among fewer files all words are kept."""
MENTION = 120
"""The most characters of a mention."""

WORD = re.compile(r"[A-Za-z_]\w+", re.A)
CHAIN = re.compile(r"(?<![\w.])([A-Za-z_]\w*)\.([A-Za-z_]\w*(?:\.[A-Za-z_]\w*){0,3})")
QUOTED = re.compile(r"""["']([\w./\-]{3,%d})["']""" % MENTION)
DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
LITERAL_IMPORT = re.compile(r"""\b(?:import_module|__import__|importorskip)\(\s*["']([\w.]+)["']""")
OTHER_IMPORT = re.compile(
    r"""\b(?:import_module|__import__|iter_modules|walk_packages|module_from_spec)\((?!\s*["'])"""
)
IMPORT_LINE = re.compile(r"^([ \t]*)import[ \t]+([\w.]+)(?:[ \t]+as[ \t]+(\w+))?", re.M)
FROM_LINE = re.compile(r"^([ \t]*)from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]*(\([^)]*\)|[^\n#]*)", re.M)
NAME_LINE = re.compile(r"^(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)|^(\w+)[ \t]*(?::[^=\n]+)?=(?!=)", re.M)
TEST_TEXT = re.compile(r"^\s*(?:import|from)\s+(?:pytest|unittest)\b|^\s*def test_", re.M)

BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


class Found:
    """What is noted of one file."""

    def __init__(self) -> None:
        self.imports = []  # type: List[Tuple[int, str, Optional[List[Tuple[str, str]]], bool, str]]
        self.names = set()  # type: Set[str]
        self.exported = None  # type: Optional[List[str]]

    def add_import(self, module: str, bound: str, lazy: bool) -> None:
        self.imports.append((0, module, None, lazy, bound))

    def add_from(self, level: int, module: str, pairs: List[Tuple[str, str]], lazy: bool) -> None:
        self.imports.append((level, module, pairs, lazy, ""))

    def export(self, value: Any) -> None:
        """Add what can be read of an expression that `__all__` is, or is extended by."""
        literal = [
            item.value for item in ast.walk(value) if isinstance(item, ast.Constant) and isinstance(item.value, str)
        ]
        whole = isinstance(value, (ast.List, ast.Tuple, ast.Set)) and len(literal) == len(value.elts)
        if whole:
            self.exported = (self.exported or []) + literal
        else:
            self.names.add("__all__")


def parsed(text: str) -> Found:
    """What the statements say. Raises SyntaxError or ValueError where there are none to read."""
    found, computed = Found(), False
    pending = [(ast.parse(text).body, True, False)]  # type: List[Tuple[List[Any], bool, bool]]
    while pending:
        body, top, lazy = pending.pop()
        for node in body:
            kind = type(node)
            if kind is ast.Expr or kind is ast.Return:
                continue
            if kind is ast.Import:
                for alias in node.names:
                    found.add_import(alias.name, alias.asname or alias.name.split(".")[0], lazy)
            elif kind is ast.ImportFrom:
                pairs = [(alias.name, alias.asname or alias.name) for alias in node.names]
                found.add_from(node.level, node.module or "", pairs, lazy)
            elif kind is ast.FunctionDef or kind is ast.AsyncFunctionDef:
                if top:
                    found.names.add(node.name)
                pending.append((node.body, False, True))
            elif kind is ast.ClassDef:
                if top:
                    found.names.add(node.name)
                pending.append((node.body, False, lazy))
            elif kind is ast.Assign or kind is ast.AnnAssign or kind is ast.AugAssign:
                if top:
                    computed |= assigned(found, node)
            elif top and kind is ast.For:
                found.names.update(names_in(node.target))
                pending.extend((getattr(node, block), top, lazy) for block in BLOCKS if getattr(node, block, None))
            else:
                guarded = lazy or (kind is ast.If and typing_only(node.test))
                for block in BLOCKS:
                    inner = getattr(node, block, None)
                    if inner:
                        pending.append((inner, top, guarded if block == "body" else lazy))
    if computed:
        found.exported = None
    return found


def assigned(found: Found, node: Any) -> bool:
    """Note what is bound; whether `__all__` gets what cannot be read."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    names = [name for target in targets for name in names_in(target)]
    if "__all__" not in names:
        found.names.update(names)
        return False
    if node.value is not None:
        found.export(node.value)
    return "__all__" in found.names


def names_in(target: Any) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, (ast.Tuple, ast.List)):
        for item in target.elts:
            yield from names_in(item)


def typing_only(test: Any) -> bool:
    return getattr(test, "id", getattr(test, "attr", "")) == "TYPE_CHECKING"


def guessed(text: str) -> Found:
    """As `parsed`, of what Python cannot read."""
    found = Found()
    for indent, module, name in IMPORT_LINE.findall(text):
        found.add_import(module, name or module.split(".")[0], bool(indent))
    for indent, dots, module, names in FROM_LINE.findall(text):
        parts = [part.split() for part in names.strip("() \t").replace("\\", " ").split(",")]
        pairs = [(words[0], words[-1]) for words in parts if words and re.match(r"\w+$|\*$", words[0])]
        found.add_from(len(dots), module, pairs, bool(indent))
    for one, other in NAME_LINE.findall(text):
        found.names.add(one or other)
    return found


def chains(text: str) -> Dict[str, Set[str]]:
    """Per name, the attributes that are looked up in it anywhere."""
    uses = {}  # type: Dict[str, Set[str]]
    for name, rest in set(CHAIN.findall(text)):
        uses.setdefault(name, set()).add(rest)
    return uses


def entry(text: str, tests: bool) -> Tuple[List[Any], List[str], "Counter[str]"]:
    """What is written of a file but for its mentions, which are not sifted yet, and its words."""
    try:
        found = parsed(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        found = guessed(text)
    uses = chains(text)
    imports = []  # type: List[List[Any]]
    for level, module, pairs, lazy, name in found.imports:
        if pairs is None:
            imports.append([level, module, None, int(lazy), name, sorted(uses.get(name, ()))])
        else:
            bound = [[orig, new, sorted(uses.get(new, ())) if new == new.lower() else []] for orig, new in pairs]
            imports.append([level, module, bound, int(lazy)])
    for module in set(LITERAL_IMPORT.findall(text)):
        imports.append([0, module, None, 1, "", []])
    dynamic = int(OTHER_IMPORT.search(text) is not None)
    exported = None if found.exported is None else sorted(set(found.exported))
    words = Counter(WORD.findall(text)) if tests else Counter()  # type: Counter[str]
    return [imports, sorted(found.names), exported, [], dynamic, []], list(set(QUOTED.findall(text))), words


def walk(root: str) -> Iterator[Tuple[str, str]]:
    """The files below a folder, with their paths from there; no link is followed."""
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


def read(path: str) -> Optional[str]:
    try:
        if os.path.getsize(path) > FILE_BYTES:
            return None
        with open(path, "rb") as file:
            return file.read().decode("utf-8", "replace").replace("\0", " ").lstrip("\ufeff")
    except OSError:
        return None


def looks_like_tests(path: str, text: str) -> bool:
    return "test" in path.lower() or TEST_TEXT.search(text) is not None


def survey(root: str) -> Dict[str, Any]:
    """What is to be written of a workspace."""
    files = {}  # type: Dict[str, List[Any]]
    quoted = {}  # type: Dict[str, List[str]]
    counts = {}  # type: Dict[str, Counter[str]]
    others, firsts = set(), set()  # type: Set[str], Set[str]
    left_out = size = 0
    for place, path in walk(root):
        if not path.endswith(".py"):
            others.add(path.rsplit("/", 1)[-1])
            continue
        text = read(place) if len(files) < FILES and size < ALL_BYTES else None
        if text is None:
            left_out += 1
            continue
        size += len(text)
        files[path], quoted[path], words = entry(text, looks_like_tests(path, text))
        if words:
            counts[path] = words
        firsts.update(path[:-3].split("/"))
    for path, strings in quoted.items():
        files[path][3] = sorted(text for text in strings if mentions(text, firsts, others))
    return {"files": files, "vocabulary": number(files, counts), "left_out": left_out}


def mentions(text: str, firsts: Set[str], others: Set[str]) -> bool:
    """Whether a string may name a module of the workspace, or another file of it."""
    if text.rsplit("/", 1)[-1] in others:
        return True
    return DOTTED.fullmatch(text) is not None and text.split(".", 1)[0] in firsts


def number(files: Dict[str, List[Any]], counts: Dict[str, "Counter[str]"]) -> List[str]:
    """Write the words of each file as numbers; returns what they stand for."""
    spread = Counter()  # type: Counter[str]
    for words in counts.values():
        spread.update(words.keys())
    most = COMMON * len(counts) if len(counts) >= FEW else len(counts)
    vocabulary = sorted(word for word, times in spread.items() if times <= most)
    numbers = {word: place for place, word in enumerate(vocabulary)}
    for path, words in counts.items():
        flat = files[path][5]
        for word, times in words.most_common(WORDS):
            if word in numbers:
                flat += (numbers[word], times)
    return vocabulary


def main(root: str, output: str) -> None:
    gc.disable()  # trees are thrown away as they come: looking for cycles takes a third of the time
    warnings.simplefilter("ignore")
    sys.setrecursionlimit(5000)
    with open(output, "w") as file:
        json.dump(survey(root), file, separators=(",", ":"))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
