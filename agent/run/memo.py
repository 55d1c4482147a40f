"""Memo: facts that a run finds out once and reads from its journal after that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Memo = Callable[[str, Callable[[], Any]], Any]
"""What a run knows under a key, as JSON has it; found by the function the first time, and recorded."""
