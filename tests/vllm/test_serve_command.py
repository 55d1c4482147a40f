"""`ramify serve`, `ramify doctor --model` and a search, one after the other, as a person types them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agent.cli.app import app
from tests.environments import free_port
from tests.projects import commit
from tests.vllm.conftest import CONTEXT, NAME
from tests.vllm.test_serving import ANSWERS, FILES

pytestmark = [pytest.mark.vllm, pytest.mark.namespace, pytest.mark.timeout(900)]

SETTINGS = """
model.base_url = "{url}"
model.temperature = 1.0
model.body.max_tokens = 400
model.body.logprobs = true
model.body.structured_outputs.choice = {choice}
sandbox.kind = "namespace"
"""


@contextmanager
def serving(checkpoint: Path, python: Path, log: Path) -> Iterator[str]:
    """The address of a server that `ramify serve` started; it ends with the command."""
    argv = [sys.executable, "-m", "agent", "serve", checkpoint, "--cpu", "--python", python]
    argv += ["--port", str(free_port()), "--max-model-len", str(CONTEXT)]
    with log.open("wb") as output, subprocess.Popen(argv, stderr=output) as process:
        try:
            yield _address(process, log)
        finally:
            process.terminate()
            process.wait()


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    """What it says when it is up."""
    while process.poll() is None:
        if found := re.search(r"^up: .*model\.base_url=(\S+)$", log.read_text(errors="replace"), re.MULTILINE):
            return found[1]
        time.sleep(0.5)
    pytest.fail(f"ramify serve ended with {process.returncode}:\n{log.read_text()[-4000:]}")


def test_a_model_is_served_examined_and_asked(
    checkpoint: Path, vllm_python: Path, namespaces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The weights are random: asked for a call of a tool, the model makes none, and a search confines its answers."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    repo, model = commit(tmp_path / "repo", FILES), f"openai/{NAME}"
    with serving(checkpoint, vllm_python, tmp_path / "log") as url:
        examined = CliRunner().invoke(app, ["doctor", "--model", model, "--base-url", url])
        settings = tmp_path / "settings.toml"
        settings.write_text(SETTINGS.format(url=url, choice=json.dumps(ANSWERS)))
        argv = ["solve", "--issue", "add and subtract are swapped", "--repo", str(repo), "--policy", model, "--json"]
        argv += [
            "--goal-failing",
            "--search",
            "mcts",
            "--max-nodes",
            "40",
            "--out",
            str(tmp_path / "run"),
            "-c",
            str(settings),
        ]
        solved = CliRunner().invoke(app, argv)
    findings = [line.split()[:2] for line in examined.output.splitlines() if not line.startswith(" ")]
    assert findings == [
        ["ok", "server"], ["no", "tools"], ["ok", "several"], ["ok", "logprobs"], ["ok", "scores"], ["ok", "prefixes"]
    ]  # fmt: skip
    assert examined.exit_code == 0
    assert solved.exit_code == 0, solved.output
    assert json.loads(solved.stdout)["status"] == "solved"
    exported = CliRunner().invoke(
        app, ["export", str(tmp_path / "run"), "--format", "kto", "--out", str(tmp_path / "rows")]
    )
    assert exported.exit_code == 0, exported.output
    told = [json.loads(line)["provenance"] for line in (tmp_path / "rows" / "train.jsonl").open()]
    assert all(len(each["logprobs"][0]) > 0 and each["models"] == [model] for each in told)
