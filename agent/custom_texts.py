"""Reads the user's own instructions and prompts from the files that the settings name.

Invariant: a run stores the texts, not only the names of the files, and resumes with them even if the files have
changed.
"""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from agent.errors import ConfigError
from agent.prompts import Prompts, names

INSTRUCTIONS_BYTES = 20_000
PROMPT_BYTES = 100_000


def read_instructions(path: Path) -> str:
    """The instructions in a file.

    Raises:
        agent.errors.ConfigError: the file cannot be read, or is too long.
    """
    return _read(path, "instructions", INSTRUCTIONS_BYTES, "cut them to what applies to every repair")


def read_prompts(folder: Path) -> dict[str, str]:
    """The prompts in a directory, by name. Each file has the name of the shipped prompt that it replaces; hidden files
    are ignored.

    Raises:
        agent.errors.ConfigError: the directory is empty; a file has another name, cannot be read, or is not a template.
    """
    try:
        files = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        raise ConfigError(
            f"cannot read the prompts in {folder}: {error.strerror}; name a directory of files NAME.md"
        ) from error
    if not files:
        raise ConfigError(
            f"there are no prompts in {folder}; name each file after the shipped prompt that it replaces, NAME.md"
        )
    shipped = {f"{name}.md": name for name in names()}
    for path in files:
        if path.name not in shipped:
            nearest = get_close_matches(path.name, shipped, 3, cutoff=0)
            raise ConfigError(f"{path}: there is no shipped prompt of that name; the nearest are {', '.join(nearest)}")
    texts = {shipped[path.name]: _read(path, "prompt", PROMPT_BYTES, "make it shorter") for path in files}
    if empty := [path for path in files if not texts[shipped[path.name]].strip()]:
        raise ConfigError(f"the prompt {empty[0]} is empty; write a text into it, or remove the file")
    Prompts(texts, folder).check()
    return texts


def _read(path: Path, what: str, max_bytes: int, remedy: str) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(max_bytes + 1)
            size = max(len(data), path.stat().st_size)
    except OSError as error:
        raise ConfigError(f"cannot read the {what} {path}: {error.strerror}; name a text file in UTF-8") from error
    if len(data) > max_bytes:
        raise ConfigError(f"cannot read the {what} {path}: {size:,} bytes, and the limit is {max_bytes:,}; {remedy}")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"cannot read the {what} {path}: byte {error.start} is not UTF-8; save it as UTF-8"
        ) from error
