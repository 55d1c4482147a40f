"""JavaScript: node's own runner, jest and vitest, with Ramify's reporter, which seals the results.

The reporter is loaded through NODE_OPTIONS, so it works for `npm test` too. It reads its request and deletes it before
the runner loads the candidate's first file; an earlier build step could read the request. The seal protects the report,
not the runner: tests share a process with the tested code, which could change `assert`, send the runner messages from a
worker, or break out of jest's sandbox. A patch that shows signs of that is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import partial

from agent.measure.adapters import PROC, Adapter, Invocation, read_sealed
from agent.measure.inside import program_source
from agent.measure.warm.plugins import Limits, RunNames

TESTS = (
    *("*.test.*", "*.spec.*", "*-test.*", "*_test.*", "test.js", "test.mjs", "test.cjs", "*.snap"),
    *(f"{place}{name}/*" for name in ("test", "tests", "__tests__", "__mocks__") for place in ("", "*/")),
)
CONFIG_FILES = (
    "jest.config.*",
    "jest.setup.*",
    "vitest.*",
    "vite.config.*",
    "babel.config.*",
    ".babelrc*",
    ".npmrc",
    ".mocharc*",
)
MANIFESTS = ("package.json", "package-lock.json", "yarn.lock", "pnpm-lock.yaml", "tsconfig*.json")
CONFIG_LINES = re.compile(
    r'\s*"((pre|post)?test[^"]*|jest|vitest|mocha|scripts|type|imports|exports|overrides|workspaces)"\s*:'
)
TRICKS = re.compile(
    r"\bprocess\.(reallyExit|send|binding|_linkedBinding)|NODE_OPTIONS|NODE_TEST|require\.cache"
    r"|['\"](node:)?(v8|inspector)\b|node:test|['\"](vitest|@?jest)\b"
    r"|\b(global|globalThis)\.(assert|describe|expect|it|test)\b|\bassert\b['\")]*(\.\w+)+\s*=[^=]"
    rf"|{PROC}"
)
BUILT = ("node_modules/*", "*/node_modules/*")


def invocation(
    names: RunNames, command: str, wanted: Sequence[str], limits: Limits, *, program: str, options: str
) -> Invocation:
    """Run the command with the reporter in NODE_OPTIONS. Options that the command itself sets there are kept."""
    folder = names.folder
    ours = options.format(program=f"{folder}/{program}")
    request = {"report": names.report, "nonce": names.nonce, "options": ours}
    files = {f"{folder}/{name}": program_source(name) for name in ("channel.cjs", program)}
    files[f"{folder}/request.json"] = json.dumps(request).encode()
    own = re.sub(r"(?<!\w)NODE_OPTIONS=", f'NODE_OPTIONS="{ours} "', command)
    return Invocation(f'export NODE_OPTIONS="{ours} ${{NODE_OPTIONS-}}"\n{own}', files)


def _adapter(name: str, command: str, named: str, options: str) -> Adapter:
    return Adapter(
        name=name,
        command=command,
        named=re.compile(named),
        invocation=partial(invocation, program=f"{name}.cjs", options=options),
        read=read_sealed,
        tests=TESTS,
        config_files=CONFIG_FILES,
        manifests=MANIFESTS,
        config_lines=CONFIG_LINES,
        built=BUILT,
        tricks=TRICKS,
    )


NODE = _adapter(
    "node",
    "node --test",
    r"\bnode\b.*\s--test\b",
    "--require={program} --test-reporter={program} --test-reporter-destination=stderr",
)
JEST = _adapter("jest", "npx jest", r"\bjest\b", "--require={program}")
VITEST = _adapter("vitest", "npx vitest run", r"\bvitest\b", "--require={program}")
