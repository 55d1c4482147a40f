"""Patches that are applied on this machine, for places without a git."""

from __future__ import annotations

import pytest

from sandboxes import SandboxError
from sandboxes.git.diff import Difference, Side, applied

EDIT = b"""diff --git a/NAME b/NAME
--- a/NAME
+++ b/NAME
@@ -1 +1 @@
-old
+new
"""


def before(path):
    return Side("f", 0o644, b"old\n")


def test_a_patch_is_applied_to_what_was_there():
    made = [Difference("src/a.py", before("src/a.py"), Side("f", 0o644, b"new\n"))]
    assert applied(EDIT.replace(b"NAME", b"src/a.py"), before) == made


@pytest.mark.parametrize("name", [b"../outside", b"src/../../outside", b"a/.."])
def test_a_patch_that_leads_out_of_the_workspace_is_refused_before_anything_is_read(name):
    with pytest.raises(SandboxError, match="not in the workspace"):
        applied(EDIT.replace(b"NAME", name), lambda path: pytest.fail(f"{path} was read"))


def test_a_patch_that_does_not_apply_is_refused():
    with pytest.raises(SandboxError):
        applied(EDIT.replace(b"NAME", b"a.py"), lambda path: Side("f", 0o644, b"other\n"))
