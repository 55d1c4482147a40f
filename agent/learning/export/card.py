"""The dataset card: its README.md, made from the manifest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

from agent.counting import counted
from agent.learning.export.columns import LIST

ANSWERS_OFF = ("sft", "sft-masked", "retro", "revision")
"""Formats in which some answers may have the loss off."""


def card(manifest: Mapping[str, Any]) -> str:
    """The text of the card, with front matter that names the files of each split."""
    return "\n".join([*_front(manifest), *_body(manifest)]) + "\n"


def _front(manifest: Mapping[str, Any]) -> Iterator[str]:
    """The files of the splits and the types of the columns. The configuration's name depends on the rows: by it and the
    folder's name alone, `datasets` recognizes what it has cached."""
    files = [
        file for file in manifest["files"] if file["name"].endswith(".jsonl") and ".provenance." not in file["name"]
    ]
    yield "---"
    if files:
        digest = sha256("".join(file["name"] + file["sha256"] for file in files).encode())
        name = f"{manifest['format']}-{digest.hexdigest()[:12]}"
        yield from ("configs:", f"- config_name: {name}", "  data_files:")
        for file in files:
            yield from (f"  - split: {file['name'].split('.')[0]}", f"    path: {file['name']}")
        yield from ("dataset_info:", f"- config_name: {name}", "  features:")
        for column, kind in manifest["columns"].items():
            yield from (f"  - name: {column}", f"    {_feature(kind)}")
    yield from ("---", "")


def _feature(kind: str) -> str:
    """The type of a column in front matter."""
    return f"list: {kind.removeprefix(LIST)}" if kind.startswith(LIST) else f"dtype: {kind or 'string'}"


def _body(manifest: Mapping[str, Any]) -> Iterator[str]:
    yield f"# `{manifest['format']}` rows from {counted(len(manifest['runs']), 'search', 'searches')}"
    yield ""
    rows = counted(manifest["rows"], "row")
    yield f"{rows}, made by `ramify export`. `manifest.json` has the SHA-256 of each file and journal."
    yield "`provenance` in a row says which run, node, policy and licence it comes from. Where its `license_source` is"
    yield "`workspace`, the licence is a guess from the file that was in the workspace at the time of the export."
    yield "Load with `datasets.load_dataset(FOLDER)`: it reads the types of the columns from this card; given a single"
    yield "file of lines, it guesses them from the first rows. For rows in memory use"
    yield '`Dataset.from_list(rows, on_mixed_types="use_json")`; otherwise tool calls get arguments that nobody gave.'
    if manifest["options"]:
        yield from _table("Options", "option", manifest["options"])
    for key, title in (("split", "Splits"), ("repository", "Repositories"), ("license", "Licences")):
        yield from _table(title, key, manifest["counts"].get(key, {}))
    for key, title in (("policy", "Policies"), ("model", "Models")):
        yield from _table(title, key, manifest["counts"].get(key, {}))
    if len(manifest["counts"].get("policy", {})) > 1:
        yield from ("", "Rows of several policies are mixed here.")
    yield from _table("Not written", "reason", manifest["refused"])
    yield from _filters(manifest)
    yield from _table("Messages", "what", manifest["messages"])
    if manifest["format"] in ANSWERS_OFF:
        yield from (
            "",
            'The loss is off for answers with `"train": false`. `ramify train sft` sees to that; a chat template',
        )
        yield "that ignores it trains on them, too."
    yield from ("", "## Known biases", "", "A search continues from good states, so good subtrees have more leaves;")
    yield "easy tasks have more solved paths. All rows of a repository are in one split, by a hash of its name."


def _filters(manifest: Mapping[str, Any]) -> Iterator[str]:
    """The checks that the rows passed."""
    excluding, near = manifest["excluding"], manifest["near"]
    yield from ("", "## Filters", "")
    yield f"- benchmarks kept out: {f'of files with the SHA-256 {excluding}' if excluding else 'none was named'}"
    yield f"- licences let pass: {', '.join(manifest['licenses_allowed']) or 'all'}"
    yield f"- copies left out: exact ones{f', and of other tasks those alike by {near} or more' if near else ''}"
    yield "- rows in which secrets, e-mail addresses, public addresses of machines or users' names in paths were"
    yield f"  replaced: {manifest['scrubbed']}"


def _table(title: str, column: str, values: Mapping[str, Any]) -> Iterator[str]:
    if values:
        yield from ("", f"## {title}", "", f"| {column} | |", "|---|---|")
        for name, value in values.items():
            yield f"| {str(name).replace('|', '/')} | {value} |"
