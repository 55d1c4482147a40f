"""Memo: facts that a run finds out once and then reads from its journal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Memo = Callable[[str, Callable[[], Any]], Any]
"""Returns what a run knows under a key, as JSON data. The function finds it out the first time; then it is recorded."""
