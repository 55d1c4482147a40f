"""Eval scripts that we make for rows of SWE-bench's first generation against those that its harness of 4.1.0 made."""

from __future__ import annotations

import json
import subprocess

import pytest

from benchmarks.data.sources import classic
from benchmarks.grading.harness.official import Harness
from tests import rows

pytestmark = pytest.mark.swebench

NEW = (
    "diff --git a/test/e2e/x.js b/test/e2e/x.js\nnew file mode 100644\n--- /dev/null\n+++ b/test/e2e/x.js\n"
    "@@ -0,0 +1 @@\n+b\n"
)
CHANGED = NEW + (
    "diff --git a/client/a b.js b/client/a b.js\n--- a/client/a b.js\n+++ b/client/a b.js\n@@ -1 +1 @@\n-a\n+b\n"
    "diff --git a/packages/__snapshots__/y.js.snap b/packages/__snapshots__/y.js.snap\n"
    "--- a/packages/__snapshots__/y.js.snap\n+++ b/packages/__snapshots__/y.js.snap\n@@ -1 +1 @@\n-a\n+b\n"
    "diff --git a/gone.go b/gone.go\ndeleted file mode 100644\n--- a/gone.go\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"
)
MADE = """
import json, sys
from swebench.harness.constants import FAIL_ONLY_REPOS, MAP_REPO_TO_EXT, MAP_REPO_VERSION_TO_SPECS
from swebench.harness.log_parsers import MAP_REPO_TO_PARSER
from swebench.harness.test_spec.test_spec import make_test_spec
row, made = json.load(sys.stdin), []
for repo, specs in MAP_REPO_VERSION_TO_SPECS.items():
    for version in specs if MAP_REPO_TO_EXT[repo] != "py" else ():
        each = {**row, "repo": repo, "version": version}
        kind = "fail_only" if repo in FAIL_ONLY_REPOS else "pass_and_fail"
        made.append([each, make_test_spec(each).eval_script, [MAP_REPO_TO_PARSER[repo].__name__, kind]])
print(json.dumps(made))
"""


@pytest.mark.parametrize("harness", ["4.1.0"], indirect=True)
@pytest.mark.parametrize("test_patch", [CHANGED, NEW])
def test_every_repository_and_version_is_tested_as_the_official_harness_tests_it(
    harness: Harness, test_patch: str
) -> None:
    row = json.dumps({**rows.CLASSIC_GO, "test_patch": test_patch})
    done = subprocess.run([harness.python, "-c", MADE], input=row, capture_output=True, text=True, check=True)
    made = json.loads(done.stdout)
    assert len(made) > 300
    for each, script, read_by in made:
        assert classic.eval_script(each, each["version"]) == script
        assert list(classic.parser_and_type(each["repo"])) == read_by
