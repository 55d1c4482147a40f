"""SWE-bench-Live: rows with commands that build, run the tests and print their log."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.instances import Instance
from benchmarks.sources import columns, images, scripts
from benchmarks.sources.columns import Row
from benchmarks.sources.swebench import TESTBED, hidden_of, instance_of

__all__ = ["live"]

_COMMANDS = ("rebuild_cmds", "test_cmds", "print_cmds")
_DEFINED = "def parser"
"""In a program in place of a parser's name."""


def live(row: Row) -> Instance:
    """A row of SWE-bench-Live (`evaluation/evaluation.py` there); its commands run one after the other. Few of its
    images have the repository in a folder of the testbed."""
    command = "; ".join(command for column in _COMMANDS for command in _list(row, column))
    image = images.image_of(row, images.published(row["instance_id"], owner="starryzhang"))
    named = columns.first(row, "log_parser", "parser")
    if _DEFINED in named:
        hidden = hidden_of(row, eval_script=_leaving_a_log(row), log_parser="told")
        hidden = replace(hidden, reader=scripts.reader_of(named))
    else:
        parser = "parse_log_pytest" if named == "pytest" else named if named.isidentifier() else ""
        hidden = hidden_of(row, test_command=command, log_parser=parser)
    instance = instance_of(row, image, hidden, command, language="" if row.get("print_cmds") else "python")
    place = instance.task.workspace
    lifted = replace(place, setup=(images.LIFTED, *place.setup))
    return replace(instance, task=replace(instance.task, workspace=lifted))


def _leaving_a_log(row: Row) -> str:
    """The script for a row whose parser is a program."""
    building, testing, printing = (_list(row, column) for column in _COMMANDS)
    before = "; ".join((*building, *(testing if printing else ())))
    return scripts.kept(TESTBED, columns.patch(row["test_patch"]), "; ".join(printing or testing), before or "true")


def _list(row: Row, column: str) -> list[str]:
    """Commands of a column; null where there are none."""
    return list(row.get(column) or [])
