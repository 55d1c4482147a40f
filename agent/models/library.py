"""Import litellm lazily, because it takes seconds."""

from __future__ import annotations

import os
from typing import Any


def load() -> Any:
    """Import litellm, without its download of a price list and its prints."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import litellm

    litellm.suppress_debug_info = True
    litellm.disable_streaming_logging = True
    return litellm
