"""How the guest reaches the Python that runs it."""

from __future__ import annotations

from importlib.util import MAGIC_NUMBER
from pathlib import Path
from zipimport import zipimporter

import pytest

from sandboxes.forking.guest_bundle import package


@pytest.mark.parametrize(("magic", "taken"), [(MAGIC_NUMBER, True), (b"\0\0\r\n", False)])
def test_byte_code_goes_along_and_only_a_python_of_the_same_version_takes_it(
    tmp_path: Path, magic: bytes, taken: bool
) -> None:
    archive = tmp_path / "guest.zip"
    archive.write_bytes(package()[4:].replace(MAGIC_NUMBER + b"\1\0\0\0", magic + b"\1\0\0\0"))
    code = zipimporter(f"{archive}/guest").get_code("server")
    compiled_there = code.co_filename.startswith(str(archive))
    assert compiled_there is not taken
    assert "Server" in code.co_names
