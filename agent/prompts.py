"""Prompts: one file each in `prompts/`, rendered strictly: a missing value is an error.

A run can replace some of them with its own texts. A search runs within `using`, and each thread that it starts inherits
its prompts through `handed_on`, so that the runs of one process can have different prompts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property, partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from agent.errors import ConfigError

if TYPE_CHECKING:
    from jinja2.sandbox import SandboxedEnvironment


_SUFFIX = ".md"


def names() -> tuple[str, ...]:
    """The names of all shipped prompts."""
    return tuple(sorted(f.name.removesuffix(_SUFFIX) for f in files("prompts").iterdir() if f.name.endswith(_SUFFIX)))


class Prompts:
    """All prompts by name: the shipped ones, some of them replaced. Thread-safe."""

    def __init__(self, replaced: Mapping[str, str] | None = None, folder: Path | None = None) -> None:
        """`replaced`: texts by the name of the prompt that they replace. `folder`: the folder that they were read from,
        for error messages."""
        self._replaced = dict(replaced or {})
        self._folder = folder
        self._digests: dict[tuple[str, ...], str] = {}

    def render(self, name: str, **values: object) -> str:
        """Return the text of a prompt.

        Raises:
            agent.errors.ConfigError: a replaced prompt cannot be rendered with these values.
            jinja2.UndefinedError: a value that a shipped prompt uses is missing.
        """
        from jinja2 import TemplateError

        try:
            return self._environment.get_template(name).render(values)
        except (TemplateError, TypeError, ValueError, ArithmeticError) as error:
            if name not in self._replaced:
                raise
            raise ConfigError(f"the prompt {self._location(name)} cannot be rendered: {error}") from error

    def digest(self, *names: str) -> str:
        """Return eight hexadecimal digits that change when the text of any of these prompts does."""
        if names not in self._digests:
            sources = (self._source(name).encode() for name in names)
            self._digests[names] = hashlib.sha256(b"\0".join(sources)).hexdigest()[:8]
        return self._digests[names]

    def check(self) -> None:
        """Check all texts that replace a prompt.

        Raises:
            agent.errors.ConfigError: a text is not a template, or uses a variable that the shipped prompt does not.
        """
        from jinja2 import TemplateError, TemplateSyntaxError, meta

        environment = self._environment
        for name, text in self._replaced.items():
            try:
                environment.compile(text)
                template = environment.parse(text)
            except TemplateSyntaxError as error:
                where = f"the prompt {self._location(name)}, line {error.lineno}"
                raise ConfigError(f"{where}, is not a Jinja template: {error.message}") from error
            except TemplateError as error:
                raise ConfigError(f"the prompt {self._location(name)} is not a Jinja template: {error}") from error
            if any(meta.find_referenced_templates(template)):
                raise ConfigError(
                    f"the prompt {self._location(name)} includes another one; copy its text there instead"
                )
            variables = meta.find_undeclared_variables(environment.parse(_shipped(name)))
            if unknown := meta.find_undeclared_variables(template) - variables - environment.globals.keys():
                has = f"this prompt has {', '.join(sorted(variables))}" if variables else "this prompt has none"
                raise ConfigError(
                    f"the prompt {self._location(name)} uses the unknown variable `{min(unknown)}`; {has}"
                )

    @cached_property
    def _environment(self) -> SandboxedEnvironment:
        from jinja2 import FunctionLoader, StrictUndefined
        from jinja2.sandbox import SandboxedEnvironment

        return SandboxedEnvironment(
            loader=FunctionLoader(self._source),
            undefined=StrictUndefined,
            autoescape=False,  # prompts are read by models, never by a browser
            trim_blocks=True,
            lstrip_blocks=True,
        )

    def _source(self, name: str) -> str:
        return self._replaced.get(name) or _shipped(name)

    def _location(self, name: str) -> str:
        return str(self._folder / f"{name}{_SUFFIX}") if self._folder else repr(name)


SHIPPED = Prompts()
_used: ContextVar[Prompts] = ContextVar("prompts", default=SHIPPED)


def used() -> Prompts:
    """Return the prompts of the run that this thread works on, or the shipped ones."""
    return _used.get()


@contextmanager
def using(prompts: Prompts) -> Iterator[None]:
    """Use these prompts in `render` and `digest` within the block, in this thread."""
    before = _used.set(prompts)
    try:
        yield
    finally:
        _used.reset(before)


def handed_on() -> Callable[[], object]:
    """Return a function that makes another thread use the prompts of this one, for the `initializer` of a pool."""
    return partial(_used.set, used())


def render(name: str, **values: object) -> str:
    """Return the text of a prompt: `Prompts.render` of the prompts in use."""
    return used().render(name, **values)


def digest(*names: str) -> str:
    """Return the digest of some prompts: `Prompts.digest` of the prompts in use."""
    return used().digest(*names)


def _shipped(name: str) -> str:
    return files("prompts").joinpath(name + _SUFFIX).read_text(encoding="utf-8")
