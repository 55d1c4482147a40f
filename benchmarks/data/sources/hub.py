"""Sets of the Hugging Face hub, through its own client, with the client's cache, token, endpoint and offline mode
(`HF_HOME`, `HF_TOKEN`, `HF_ENDPOINT`, `HF_HUB_OFFLINE`)."""

from __future__ import annotations

from pathlib import Path

from agent.errors import UsageError
from benchmarks.data.sources.files import SUFFIXES, USUAL, called, data_files, of_split


def dataset_files(repository: str, split: str) -> list[Path]:
    """The files of a split of the set `owner/name`, downloaded if the cache lacks them. Without a `split`, `test` is
    tried first, and the whole set is downloaded only if there is none.

    Raises:
        UsageError: the client is not installed, there is no such set or split, or it cannot be downloaded.
    """
    folder = _snapshot(repository, split or USUAL[0])
    if not split and not called(folder, data_files(folder), USUAL[0]):
        folder = _snapshot(repository, "")
    name = f"{repository}:{split}" if split else repository
    return of_split(folder, data_files(folder), split, name)


def _snapshot(repository: str, word: str) -> Path:
    """Download the data files whose path contains the word, in the set's present state; if the hub cannot be reached,
    the cached state is used."""
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError
    except ModuleNotFoundError as error:
        raise UsageError(
            f"{repository} is a set of the Hugging Face hub, which needs: pip install huggingface-hub pyarrow"
        ) from error
    patterns = [f"*{word}*{suffix}" for suffix in SUFFIXES]
    try:
        return Path(snapshot_download(repository, repo_type="dataset", allow_patterns=patterns))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        raise UsageError(
            f"cannot download the set {repository}: {_first_line(error)}; check that it exists, that HF_TOKEN may read "
            "it and that the hub can be reached, or give a file of it"
        ) from error


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
