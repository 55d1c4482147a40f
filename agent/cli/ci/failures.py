"""Reports to a CI pipeline that a command failed before it had a result."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

import typer

from agent.cli.ci.github import failed, write_outputs
from agent.errors import exit_code_of

_P = ParamSpec("_P")
_R = TypeVar("_R")


def report_failures(command: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorate a command so that an error also writes the exit code to `$GITHUB_OUTPUT` and the reason to
    `--summary-md`."""

    @wraps(command)
    def reporting(*arguments: _P.args, **options: _P.kwargs) -> _R:
        try:
            return command(*arguments, **options)
        except (typer.Exit, typer.Abort):  # not an error: the command ended by itself and has reported its result
            raise
        except Exception as error:
            with suppress(OSError):  # the command's own error matters more
                _report(error, options.get("summary_md"))
            raise

    return reporting


def _report(error: Exception, summary_md: object) -> None:
    if outputs := os.environ.get("GITHUB_OUTPUT"):
        write_outputs(Path(outputs), {"exit_code": exit_code_of(error)})
    if isinstance(summary_md, Path):
        with summary_md.open("a", encoding="utf-8") as file:
            file.write(failed(str(error)))
