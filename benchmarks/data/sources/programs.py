"""The programs that SWE-bench Pro keeps beside its rows: `run_scripts/ID/run_script.sh` runs the tests of an instance,
and `run_scripts/ID/parser.py` reads their output."""

from __future__ import annotations

from pathlib import Path

from benchmarks.data.sources.columns import Row

FOLDER = "run_scripts"
RUNNER, PARSER = "run_script.sh", "parser.py"
"""The names of the files, and of the columns that hold their text."""


def folder_beside(file: Path) -> Path | None:
    """The folder of programs beside a file of rows, or beside the file's folder as in a clone of the set; else None."""
    near = (file.parent / FOLDER, file.absolute().parent.parent / FOLDER)
    return next((folder for folder in near if folder.is_dir()), None)


def with_programs(row: Row, folder: Path) -> Row | ValueError:
    """The row with columns for the programs that exist for it; an error if they cannot be read."""
    place = folder / Path(str(row.get("instance_id", ""))).name
    files = {name: place / name for name in (RUNNER, PARSER)}
    try:
        return {**row, **{name: file.read_text("utf-8") for name, file in files.items() if file.is_file()}}
    except (OSError, ValueError) as error:
        return ValueError(f"its programs in {place} cannot be read: {error}")
