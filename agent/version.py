"""The installed version."""

import importlib.metadata


def version() -> str:
    """Return the version of the distribution. It is not called `ramify`, since another project has that name."""
    return importlib.metadata.version("ramify-search")
