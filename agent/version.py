"""The version that is installed."""

import importlib.metadata


def version() -> str:
    """The version of the distribution, which is not called `ramify`: that name is another project's."""
    return importlib.metadata.version("ramify-search")
