"""SWE-bench: rows of both generations (Full, Lite, Verified, Multilingual, Multimodal), and the similar SWE-Gym.

Rows of the first generation have text in all columns and do not tell how they are tested; rows of the fifth have an
image, a script and the name of its log parser.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from shlex import join
from typing import cast

from agent.task import Task
from benchmarks.data import harness_assets
from benchmarks.data.instances import EvalType, Hidden, Instance
from benchmarks.data.sources import changes, classic, columns, images, scripts
from benchmarks.data.sources.columns import Row
from sandboxes import Workspace

PYTEST = "python -m pytest -q -p no:cacheprovider"
COMMANDS = {
    "python": PYTEST,
    "go": "go test ./...",
    "rust": "cargo test",
    "javascript": "npm test",
    "typescript": "npm test",
}
"""The usual test command of each language, which a solver gets if a row has none."""
_OTHERS = {
    "django/django": ("./tests/runtests.py --verbosity 2 --settings=test_sqlite --parallel 1", "parse_log_django"),
    "sympy/sympy": ("bin/test -C --verbose", "parse_log_sympy"),
}
"""The command and the log parser of the repositories of the first generation that are not tested by pytest (SWE-bench,
`harness/constants/python.py`)."""
_DATA = (".json", ".png", ".csv", ".txt", ".md", ".jpg", ".jpeg", ".pkl", ".yml", ".yaml", ".toml")
"""Suffixes of files in a test patch that are not tests (SWE-bench, `NON_TEST_EXTS`)."""
_OF_INSTANCE: Mapping[str, Mapping[str, str]] = {
    "parse_log_immutable_js": {"2005": "parse_log_jest_json", "2006": "parse_log_jest"},
    "parse_log_jekyll": {
        **dict.fromkeys(("8047", "8167", "9141"), "parse_log_minitest"),
        **dict.fromkeys(("8761", "8771"), "parse_log_cucumber"),
    },
    "parse_log_lighthouse": {
        **dict.fromkeys(("9.5", "10.0", "10.2"), "mocha-suites"),
        **dict.fromkeys(("0", "1", "2"), "mocha-json-raw"),
        "": "parse_log_carbon",
    },
    "parse_log_next": {"1.27": "cypress", "": "karma-next"},
}
"""Parsers that stand for others: by the version, its first part, or the number of the instance. The empty key is the
default (5.0.2, `harness/log_parsers`)."""
_TAGS = ("repo", "version", "difficulty")
_ENDINGS = {
    "py": "python", "go": "go", "rs": "rust", "java": "java", "rb": "ruby", "php": "php", "c": "c", "cc": "c++",
    "cpp": "c++", "js": "javascript", "jsx": "javascript", "mjs": "javascript", "ts": "typescript", "tsx": "typescript",
}  # fmt: skip
_CHANGED = re.compile(r"^\+\+\+ b/.*\.(\w+)$", re.MULTILINE)


def swebench(row: Row) -> Instance:
    """A row of the first generation."""
    language = "javascript" if row.get("image_assets") else _language(row["test_patch"]) or "python"
    return _classic(row, images.image_of(row, images.published(row["instance_id"])), language)


def gym(row: Row) -> Instance:
    """A row of SWE-Gym: like SWE-bench's, but with lists and its own images. All of SWE-Gym is Python, so a row in
    another language is one of SWE-bench that happens to have lists."""
    if _language(row["test_patch"]) not in ("", "python"):
        return swebench(row)
    image = images.image_of(row, images.published(row["instance_id"], owner="xingyaoww", joint="_s_"))
    return _classic(row, image, "python")


def swebench_5(row: Row) -> Instance:
    """A row of the fifth generation, which has the script that grades it."""
    if row["eval_type"] not in ("pass_and_fail", "fail_only"):
        raise ValueError(f"the eval_type {row['eval_type']!r} is neither pass_and_fail nor fail_only")
    hidden = hidden_of(
        row,
        eval_script=row["eval_script"],
        eval_type=cast("EvalType", row["eval_type"]),
        log_parser=parser_of(row["log_parser"], row),
    )
    language = _language(row["test_patch"])
    command, _ = _OTHERS.get(row["repo"], (COMMANDS.get(language, PYTEST), ""))
    return instance_of(row, images.checked_out(images.qualified(row["image"])), hidden, command, language=language)


def _as_in_4(row: Row, command: str) -> Hidden:
    """How the harness of 4.1.0 grades a row."""
    script = classic.eval_script(row, columns.first(row, "version"))
    parser, kind = classic.parser_and_type(row["repo"])
    parser = parser_of(parser, row) if script else ""
    return hidden_of(row, eval_script=script or command, eval_type=cast("EvalType", kind), log_parser=parser)


def parser_of(name: str, row: Row) -> str:
    """The actual parser for a row, given the name of a parser that can stand for others."""
    others = _OF_INSTANCE.get(name, {})
    version = columns.first(row, "version")
    keys = (version, version.partition(".")[0], row["instance_id"].rpartition("-")[2], "")
    return next((others[key] for key in keys if key in others), name)


def _classic(row: Row, image: str, language: str) -> Instance:
    """An instance of the first generation. Rows in other languages than Python are graded as by the harness of 4.1.0;
    if that does not know their version, grading is refused."""
    place = images.checked_out(image)
    if language != "python":
        command = COMMANDS.get(language, PYTEST)
        return instance_of(row, place, _as_in_4(row, command), command, language=language)
    command, log_parser = _OTHERS.get(row["repo"], (PYTEST, ""))
    tested = [path for path in changes.kept(columns.patch(row["test_patch"])) if not path.endswith(_DATA)]
    hidden = hidden_of(row, test_command=f"{command} {join(_labels(row['repo'], tested))}", log_parser=log_parser)
    return instance_of(row, place, hidden, command, language=language)


def hidden_of(
    row: Row,
    *,
    test_command: str = "",
    eval_script: str = "",
    eval_type: EvalType = "pass_and_fail",
    log_parser: str = "",
    mount: str = images.TESTBED,
) -> Hidden:
    """The hidden part of an instance, from SWE-bench's columns. If a log parser is named and the tests are not run by
    pytest, the grading is done by an eval script."""
    test_patch = columns.patch(row["test_patch"])
    if log_parser and test_command and not eval_script and "pytest" not in test_command:
        eval_script = scripts.eval_script(mount, test_patch, test_command)
    return Hidden(
        fail_to_pass=columns.test_ids(row["FAIL_TO_PASS"]),
        pass_to_pass=columns.test_ids(row["PASS_TO_PASS"]),
        patch=columns.patch(row["patch"]),
        test_patch=test_patch,
        test_command=test_command,
        eval_script=eval_script,
        assets=tuple(harness_assets.declared(row)),
        eval_type=eval_type,
        log_parser=log_parser,
        row=row,
    )


def instance_of(row: Row, place: Workspace, hidden: Hidden, command: str, *, language: str = "") -> Instance:
    """An instance whose checkout is in a workspace, from SWE-bench's columns."""
    task = Task(
        id=columns.instance_name(row["instance_id"]),
        statement=row["problem_statement"],
        workspace=place,
        test_command=command,
        base=columns.first(row, "base_commit"),
        tags={key: str(row[key]) for key in _TAGS if row.get(key)},
    )
    return Instance(
        task,
        hidden,
        repo=columns.first(row, "repo"),
        version=columns.first(row, "version"),
        language=columns.first(row, "language").lower() or language,
    )


def _language(test_patch: str) -> str:
    """The language of the files in a test patch: Python if any file is, as files in other languages may be data; else
    that of most files; empty if unknown."""
    languages = [_ENDINGS[ending] for ending in _CHANGED.findall(test_patch) if ending in _ENDINGS]
    return "python" if "python" in languages else max(languages, key=languages.count, default="")


def pytest_on(tests: tuple[str, ...]) -> str:
    """The command that runs the files of these tests."""
    files = sorted({test.partition("::")[0] for test in tests})
    return f"{PYTEST} {join(files)}"


def _labels(repo: str, paths: list[str]) -> list[str]:
    """The files as the repository's runner names them: for Django, as modules relative to its folder of tests."""
    if repo != "django/django":
        return paths
    inside = [PurePosixPath(path.removeprefix("tests/")).with_suffix("") for path in paths]
    return [".".join(path.parts) for path in inside]
