"""SWE-bench-Live: rows with the commands that build, run the tests and print their log."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.data.instances import Hidden, Instance
from benchmarks.data.sources import columns, images, scripts
from benchmarks.data.sources.columns import Row
from benchmarks.data.sources.swebench import hidden_of, instance_of

_COMMANDS = ("rebuild_cmds", "test_cmds", "print_cmds")
_DEFINED = "def parser"
"""Marks a column that holds a program instead of the name of a parser."""


def live(row: Row) -> Instance:
    """A row of SWE-bench-Live (see its `evaluation/evaluation.py`); the commands run one after the other. A few of its
    images have the repository in a folder inside the testbed: the patch is applied there, and the commands run in the
    testbed."""
    printing = bool(row.get("print_cmds"))
    command = _shown(row) if printing else "; ".join((*_list(row, "rebuild_cmds"), *_list(row, "test_cmds")))
    image = images.image_of(row, images.published(row["instance_id"], owner="starryzhang"))
    place = replace(images.checked_out(image), nested=True)
    return instance_of(row, place, _hidden(row, command), command, language="" if printing else "python")


def _shown(row: Row) -> str:
    """The test command of a solver if the log is printed at the end. It has the exit code of the tests."""
    building, testing, printing = (_list(row, column) for column in _COMMANDS)
    return "; ".join((*building, *testing, "ended=$?", *printing, "(exit $ended)"))


def _hidden(row: Row, command: str) -> Hidden:
    named = columns.first(row, "log_parser", "parser")
    if _DEFINED in named:
        hidden = hidden_of(row, eval_script=_leaving_a_log(row), log_parser="told")
        return replace(hidden, reader=scripts.reader_of(named))
    parser = "parse_log_pytest" if named == "pytest" else named if named.isidentifier() else ""
    by_log = parser and (row.get("print_cmds") or "pytest" not in command)
    script = scripts.eval_script(".", columns.patch(row["test_patch"]), _in_testbed(command)) if by_log else ""
    return hidden_of(row, test_command=command, eval_script=script, log_parser=parser)


def _in_testbed(command: str) -> str:
    return f"cd {images.TESTBED}; {command}"


def _leaving_a_log(row: Row) -> str:
    """The script for a row whose parser is a program."""
    building, testing, printing = (_list(row, column) for column in _COMMANDS)
    before = _in_testbed("; ".join((*building, *(testing if printing else ()))))
    return scripts.kept(".", columns.patch(row["test_patch"]), _in_testbed("; ".join(printing or testing)), before)


def _list(row: Row, column: str) -> list[str]:
    """The commands in a column, which may be null."""
    return list(row.get(column) or [])
