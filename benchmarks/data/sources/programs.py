"""Programs that a set keeps beside its rows: `run_scripts/ID/run_script.sh` runs the tests of an instance of SWE-bench
Pro, and `parser.py` there reads what they print."""

from __future__ import annotations

from pathlib import Path

from benchmarks.data.sources.columns import Row

__all__ = ["PARSER", "RUNNER", "folder_beside", "with_programs"]

FOLDER = "run_scripts"
RUNNER, PARSER = "run_script.sh", "parser.py"
"""Names of files, and of the columns that they become."""


def folder_beside(file: Path) -> Path | None:
    """The folder of programs beside a file of rows or beside its folder, as in a clone of the set's repository."""
    near = (file.parent / FOLDER, file.absolute().parent.parent / FOLDER)
    return next((folder for folder in near if folder.is_dir()), None)


def with_programs(row: Row, folder: Path) -> Row | ValueError:
    """The row, with columns for the programs that are there for it; why there are none, where they cannot be read."""
    place = folder / Path(str(row.get("instance_id", ""))).name
    files = {name: place / name for name in (RUNNER, PARSER)}
    try:
        return {**row, **{name: file.read_text("utf-8") for name, file in files.items() if file.is_file()}}
    except (OSError, ValueError) as error:
        return ValueError(f"its programs in {place} cannot be read: {error}")
