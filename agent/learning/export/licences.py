"""The licence of a repository, if known. A guess is marked as one.

A journal does not keep the text of a licence. A guess reads the file in the workspace's folder now, which may have
changed since the commit that was searched from, or be gone.
"""

from __future__ import annotations

import re
from pathlib import Path

from agent.task import Task

UNKNOWN = "unknown"
READ_BYTES = 4096
_FILES = ("license", "licence", "copying", "unlicense")
_PHRASES = (
    ("Apache-2.0", r"Apache License,? Version 2\.0"),
    ("AGPL-3.0", r"GNU AFFERO GENERAL PUBLIC LICENSE Version 3"),
    ("LGPL-3.0", r"GNU LESSER GENERAL PUBLIC LICENSE Version 3"),
    ("LGPL-2.1", r"GNU LESSER GENERAL PUBLIC LICENSE Version 2\.1"),
    ("GPL-3.0", r"GNU GENERAL PUBLIC LICENSE Version 3"),
    ("GPL-2.0", r"GNU GENERAL PUBLIC LICENSE Version 2"),
    ("MPL-2.0", r"Mozilla Public License,? (Version|v\.?) ?2\.0"),
    ("MIT", r"Permission is hereby granted, free of charge, to any person obtaining a copy"),
    ("ISC", r"Permission to use, copy, modify,? and/or distribute this software"),
    ("BSD-3-Clause", r"Redistribution and use in source and binary forms.*Neither the name"),
    ("BSD-2-Clause", r"Redistribution and use in source and binary forms"),
    ("Unlicense", r"This is free and unencumbered software released into the public domain"),
)


def licence_of(task: Task) -> tuple[str, str]:
    """The SPDX name, or `unknown`, and its source: `task` (its tags), `workspace` (a guess from its present licence
    file), or the empty string."""
    if task.tags.get("license"):
        return task.tags["license"], "task"
    for path in _texts(task.workspace.path):
        words = " ".join(path.read_bytes()[:READ_BYTES].decode(errors="replace").split())
        for name, phrase in _PHRASES:
            if re.search(phrase, words, re.IGNORECASE):
                return name, "workspace"
    return UNKNOWN, ""


def _texts(workspace: Path | None) -> list[Path]:
    if workspace is None or not workspace.is_dir():
        return []
    return sorted(path for path in workspace.iterdir() if path.name.lower().startswith(_FILES) and path.is_file())
