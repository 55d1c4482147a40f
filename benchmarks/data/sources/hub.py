"""Sets of the Hugging Face hub, through its own client: the cache, the token, the endpoint and the offline mode are
as it has them (`HF_HOME`, `HF_TOKEN`, `HF_ENDPOINT`, `HF_HUB_OFFLINE`)."""

from __future__ import annotations

from pathlib import Path

from agent.errors import UsageError
from benchmarks.data.sources.files import SUFFIXES, USUAL, called, data_files, of_split

__all__ = ["dataset_files"]


def dataset_files(repository: str, split: str) -> list[Path]:
    """The files of a split of the set `owner/name`, downloaded when the cache lacks them. Without a `split`, `test` is
    looked for, and only where there is none the whole set is had.

    Raises:
        UsageError: the client is not installed, there is no such set or split, or it cannot be had.
    """
    folder = _snapshot(repository, split or USUAL[0])
    if not split and not called(folder, data_files(folder), USUAL[0]):
        folder = _snapshot(repository, "")
    name = f"{repository}:{split}" if split else repository
    return of_split(folder, data_files(folder), split, name)


def _snapshot(repository: str, word: str) -> Path:
    """The set as it is now, or as the cache has it where the hub cannot be asked: its files of rows whose path has the
    word."""
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError
    except ModuleNotFoundError as error:
        raise UsageError(f"{repository} is a set of the Hugging Face hub: pip install 'ramify[bench]'") from error
    patterns = [f"*{word}*{suffix}" for suffix in SUFFIXES]
    try:
        return Path(snapshot_download(repository, repo_type="dataset", allow_patterns=patterns))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        raise UsageError(
            f"cannot have the set {repository}: {_said(error)}; see that it exists, that HF_TOKEN may read it and that "
            "the hub can be reached, or give a file of it"
        ) from error


def _said(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
