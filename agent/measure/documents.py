"""Reads XML reports of test runners, without the features of XML that a hostile document would use."""

from __future__ import annotations

from xml.etree import ElementTree as ET
from xml.parsers import expat

__all__ = ["root"]


def root(data: bytes) -> ET.Element:
    """The root element of a document without a document type: no test runner writes one, and it could declare entities.

    Raises:
        xml.etree.ElementTree.ParseError, xml.parsers.expat.ExpatError: it is not such a document.
    """
    parser = expat.ParserCreate()

    def refuse(*declared: object) -> None:
        raise expat.ExpatError("it has a document type, which no test runner writes")

    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(data, True)
    except (LookupError, ValueError) as error:
        raise expat.ExpatError(f"it has an encoding that cannot be read: {error}") from error
    return ET.fromstring(data)  # noqa: S314  # with no document type there is no entity to expand
