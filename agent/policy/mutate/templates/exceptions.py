"""Exceptions: a handler that catches more, or a related exception class instead."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from agent.policy.mutate.site import Site, Variant

_KIN = {
    "KeyError": ("IndexError", "LookupError", "AttributeError", "TypeError", "ValueError"),
    "IndexError": ("KeyError", "LookupError", "TypeError"),
    "ValueError": ("TypeError", "OverflowError", "KeyError", "AttributeError"),
    "TypeError": ("ValueError", "AttributeError", "KeyError"),
    "AttributeError": ("TypeError", "KeyError", "ValueError"),
    "OSError": ("ValueError", "UnicodeError"),
    "IOError": ("OSError", "ValueError"),
    "ImportError": ("AttributeError", "ValueError"),
    "ZeroDivisionError": ("OverflowError", "ValueError", "TypeError"),
    "OverflowError": ("ValueError", "OSError"),
    "UnicodeDecodeError": ("UnicodeError", "ValueError"),
}


def another_exception(site: Site) -> Iterator[Variant]:
    """`except A` to `except (A, B)`; `raise A` to `raise B`."""
    match site.node:
        case cst.ExceptHandler(type=cst.BaseExpression() as caught):
            classes = [element.value for element in caught.elements] if isinstance(caught, cst.Tuple) else [caught]
            names = [site.code(name) for name in classes]
            more = [kin for name in names for kin in _KIN.get(name, ("ValueError", "TypeError", "AttributeError"))]
            for rank, other in enumerate(o for o in dict.fromkeys(more) if o not in names):
                text = f"({', '.join((*names, other))})"
                yield site.variant(text, f"catch {other} too", 0.3 / (1 + rank), caught)
            yield site.variant("Exception", "catch Exception", 0.05, caught)
        case cst.Raise(exc=cst.Call(func=cst.Name(value=name) as func)) | cst.Raise(exc=cst.Name(value=name) as func):
            for rank, other in enumerate(_KIN.get(name, ())):
                yield site.variant(other, f"raise {other}", 0.12 / (1 + rank), func)
