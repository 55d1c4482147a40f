"""Prompts: one file each in `prompts/`, rendered so that a value that is missing is an error."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["digest", "names", "render"]

_SUFFIX = ".md"


def names() -> tuple[str, ...]:
    """Every prompt there is."""
    return tuple(sorted(f.name.removesuffix(_SUFFIX) for f in files("prompts").iterdir() if f.name.endswith(_SUFFIX)))


def render(name: str, **values: object) -> str:
    """A prompt's text.

    Raises:
        jinja2.UndefinedError: the prompt uses a value that is not given.
    """
    return _environment().get_template(name + _SUFFIX).render(values)


@cache
def digest(*wanted: str) -> str:
    """Eight hexadecimal digits that change when the text of one of these prompts does."""
    sources = (files("prompts").joinpath(name + _SUFFIX).read_bytes() for name in wanted)
    return hashlib.sha256(b"\0".join(sources)).hexdigest()[:8]


@cache
def _environment() -> Environment:
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: files("prompts").joinpath(name).read_text(encoding="utf-8")),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701  # what is rendered is read by a model, never by a browser
        trim_blocks=True,
        lstrip_blocks=True,
    )
