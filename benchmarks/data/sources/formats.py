"""Recognises the set that a row comes from, by its columns alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.data.instances import Instance
from benchmarks.data.sources.columns import Row
from benchmarks.data.sources.live import live
from benchmarks.data.sources.multi import multi
from benchmarks.data.sources.pro import pro
from benchmarks.data.sources.r2e import r2e
from benchmarks.data.sources.rebench import rebench, rebench_2
from benchmarks.data.sources.swebench import gym, swebench, swebench_5
from benchmarks.data.sources.swesmith import smith


@dataclass(frozen=True, slots=True)
class Format:
    """The format of a set's rows."""

    name: str
    read: Callable[[Row], Instance]
    marks: tuple[str, ...]
    """Columns that identify the format: no later entry of `FORMATS` has all of them."""
    needs: tuple[str, ...]
    """The other columns that are needed to make an instance."""
    lacks: tuple[str, ...] = ()
    """Columns that rows of this format do not have."""
    lists: tuple[str, ...] = ()
    """Columns that are lists in this format, and text in a later one."""

    def fits(self, row: Row) -> bool:
        """Whether the row has this format, complete or not."""
        has_lists = all(isinstance(row.get(column), list | tuple) for column in self.lists)
        return has_lists and not self.missing(row, self.marks) and not any(_has(row, column) for column in self.lacks)

    def missing(self, row: Row, columns: tuple[str, ...]) -> list[str]:
        """The columns that the row lacks."""
        return [column for column in columns if not _has(row, column)]


def _has(row: Row, column: str) -> bool:
    """Whether a row has a value in a column. If rows have different columns, a table has null for the missing ones."""
    return row.get(column) is not None


_LISTS = ("FAIL_TO_PASS", "PASS_TO_PASS")
_COMMON = ("instance_id", "problem_statement", "repo", "patch", "test_patch", *_LISTS)

FORMATS = (
    Format("SWE-bench 5", swebench_5, ("eval_script",), (*_COMMON, "image", "log_parser", "eval_type")),
    Format(
        "Multi-SWE-bench",
        multi,
        ("org", "number", "fix_patch"),
        ("repo", "base", "title", "body", "test_patch", "f2p_tests", "p2p_tests"),
    ),
    Format(
        "R2E-Gym",
        r2e,
        ("expected_output_json",),
        ("repo_name", "commit_hash", "problem_statement", "parsed_commit_content", "relevant_files"),
    ),
    Format(
        "SWE-bench Pro",
        pro,
        ("selected_test_files_to_run",),
        (
            "instance_id",
            "problem_statement",
            "repo",
            "patch",
            "test_patch",
            "fail_to_pass",
            "pass_to_pass",
            "dockerhub_tag",
            "repo_language",
        ),
    ),
    Format("SWE-rebench-V2", rebench_2, ("install_config", "language"), (*_COMMON, "image_name")),
    Format("SWE-rebench", rebench, ("install_config",), _COMMON),
    Format("SWE-bench-Live", live, ("test_cmds",), _COMMON),
    Format(
        "SWE-smith",
        smith,
        ("image_name",),
        ("instance_id", "problem_statement", "repo", "patch", *_LISTS),
        lacks=("test_patch",),
    ),
    Format(
        "SWE-Gym", gym, _LISTS, _COMMON, lacks=("environment_setup_commit", "image_assets"), lists=("FAIL_TO_PASS",)
    ),
    Format("SWE-bench", swebench, _LISTS, _COMMON),
)
"""Every format, the more specific ones first."""


def format_of(row: Row) -> Format:
    """The format of a row.

    Raises:
        ValueError: no format fits, or the row lacks a column; the message names the missing columns.
    """
    for form in FORMATS:
        if form.fits(row):
            if missing := form.missing(row, form.needs):
                raise ValueError(f"it looks like {form.name} but has no {', '.join(missing)}")
            return form
    nearest = min(FORMATS, key=lambda form: len(form.missing(row, (*form.marks, *form.needs))))
    missing = nearest.missing(row, (*nearest.marks, *nearest.needs))
    raise ValueError(
        f"its columns ({', '.join(sorted(row)) or 'none'}) fit no known set; the nearest is {nearest.name}, for "
        f"which it lacks {', '.join(missing)}"
    )
