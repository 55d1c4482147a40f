"""SWE-bench Pro: rows with requirements and interfaces that belong to the statement, and a checkout at /app.

For each instance, the set's repository (not its rows) has a program that runs the tests and one that reads their log.
With these, an instance is graded like in the set's own harness (`swe_bench_pro_eval.py`).
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace
from shlex import join, quote

from benchmarks.data.instances import Hidden, Instance, Reader
from benchmarks.data.sources import columns, images
from benchmarks.data.sources.columns import Row
from benchmarks.data.sources.programs import PARSER, RUNNER
from benchmarks.data.sources.swebench import COMMANDS, hidden_of, instance_of
from sandboxes import Workspace

_LANGUAGES = {"js": "javascript", "ts": "typescript"}
_MOUNT = "/app"
_PLACE = "/workspace"
_SCRIPT = """#!/bin/bash
cd {mount}
git config --global --add safe.directory '*'
git reset -q --hard {base}
git checkout -q {base}
git apply {place}/patch.diff > /dev/null 2>&1 || echo 'the patch does not apply'
{tests}
printf %s {runner} | base64 -d > {place}/run_script.sh
bash {place}/run_script.sh {files} > {place}/stdout.log 2> {place}/stderr.log
exit 0
"""
_READ = """cd {place}
printf %s {parser} | base64 -d > parser.py
python=$(command -v python || command -v python3)
$python parser.py stdout.log stderr.log output.json > /dev/null 2>&1 && cat output.json
"""
_SECTIONS = (("requirements", "Requirements"), ("interface", "New interfaces introduced"))


def pro(row: Row) -> Instance:
    """A row of SWE-bench Pro, whose lists are in columns with lower-case names. Without the programs of the instance,
    Python tests are run by pytest, and grading in other languages is refused."""
    language = row["repo_language"].lower()
    language = _LANGUAGES.get(language, language)
    upper = {"FAIL_TO_PASS": row["fail_to_pass"], "PASS_TO_PASS": row["pass_to_pass"]}
    tested = columns.test_ids(row["selected_test_files_to_run"])
    command = COMMANDS.get(language, "npm test")
    on_tests, unread = (f"{command} {join(tested)}", "") if language == "python" else ("", command)
    hidden = replace(hidden_of({**row, **upper}, test_command=on_tests, eval_script=unread), row=row)
    image = images.image_of(row, f"docker.io/jefzda/sweap-images:{row['dockerhub_tag']}")
    if row.get(RUNNER) and row.get(PARSER):
        hidden = _by_programs(row, hidden, image, tested)
    place = images.checked_out(image, mount=_MOUNT)
    return instance_of({**row, "problem_statement": _statement(row)}, place, hidden, command, language=language)


def _by_programs(row: Row, hidden: Hidden, image: str, tested: tuple[str, ...]) -> Hidden:
    """Set up grading like in the set's harness: the last command in `before_repo_set_cmd` adds the hidden tests."""
    script = _SCRIPT.format(
        mount=_MOUNT,
        place=_PLACE,
        base=quote(row["base_commit"]),
        tests=row["before_repo_set_cmd"].strip().split("\n")[-1],
        runner=b64encode(row[RUNNER].encode()).decode(),
        files=quote(",".join(tested)),
    )
    reading = _READ.format(place=_PLACE, parser=b64encode(row[PARSER].encode()).decode())
    return replace(
        hidden,
        test_command="",
        eval_script=script,
        patch_file=f"{_PLACE}/patch.diff",
        text_only=True,
        log_parser="told",
        reader=Reader(reading, (f"{_PLACE}/stdout.log", f"{_PLACE}/stderr.log")),
        workspace=Workspace(image=image, mount=_MOUNT),
    )


def _statement(row: Row) -> str:
    """The issue, and what the tests require beyond it."""
    more = [f"{title}:\n{row[column]}" for column, title in _SECTIONS if row.get(column)]
    return "\n\n".join([row["problem_statement"], *more])
