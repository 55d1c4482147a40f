"""The comparison of trees with and without what tests printed, with real models that learn for two steps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent.models import directly
from benchmarks.flywheel import printed
from benchmarks.flywheel.printed import Scoring

pytestmark = [pytest.mark.train, pytest.mark.timeout(900)]

SIZES = {"functions": 6, "mutants": 8, "held-out-functions": 4, "held-out-mutants": 4, "plain-functions": 8}
STEPS = {"warm-up-steps": 2, "steps": 2, "seeds": 2, "width": 30, "workers": 2, "model-width": 32}
PROMPT = "<L1>def part_1(<V1>, <V2>):\n<L2>    <V3> = <V1> + 4\n<L3>    return <V3>\n<fix>\n"
TEXTS = ("<L2>    <V3> = <V1> + 5\n", "<L2><end>", "<L3>    return <V1>\n")


@pytest.fixture(scope="module")
def options(python: Path, namespaces: Path) -> list[str]:
    sizes = [part for name, size in (SIZES | STEPS).items() for part in (f"--{name}", str(size))]
    box = ["-c", "sandbox.kind=namespace", "-c", 'sandbox.env={PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"}']
    return [*sizes, *box, "--cpu", "--train-python", str(python)]


@pytest.fixture(scope="module")
def out(options: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("printed") / "out"
    assert printed.main(["--out", str(folder), *options]) == 0
    return folder


def test_each_model_goes_on_from_the_same_one_and_is_asked_on_the_same_bugs(out: Path) -> None:
    scores = json.loads((out / "scores.json").read_text())
    learned = {name: len(seeds) for name, seeds in scores.items() if name not in printed.UNTRAINED}
    assert learned == {printed.BEFORE: 1, **dict.fromkeys([*printed.ROWS, printed.JOINED], 2)}
    assert len({frozenset(played) for seeds in scores.values() for played in seeds}) == 1
    orders = [json.loads(path.read_text()) for path in out.glob("seed-*/*/order.json")]
    assert [(order["model"], order["max_steps"]) for order in orders] == [(str(out / "base" / "model"), 2)] * 6


def test_begun_again_nothing_is_trained_or_asked_again(
    out: Path, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    made = {path: path.stat().st_mtime_ns for path in out.glob("**/*.json*") if path.name != "scores.json"}
    assert printed.main(["--out", str(out), *options]) == 0
    assert "leaks: 0" in capsys.readouterr().out
    assert all(path.stat().st_mtime_ns == then for path, then in made.items() if "seed" in str(path))


def test_texts_are_scored_by_the_tokens_that_they_add_to_the_prompt(out: Path, python: Path) -> None:
    def scored(prompt: str, *texts: str) -> tuple[float, ...]:
        return directly(scoring, [{"role": "user", "content": prompt}], texts=texts).logprobs

    with Scoring(python, out / "base" / "model") as scoring:
        together = scored(PROMPT, *TEXTS)
        assert together == pytest.approx([scored(PROMPT, text)[0] for text in TEXTS], abs=1e-3)
        first = scored(PROMPT, TEXTS[0])[0]
        assert scored(PROMPT, TEXTS[0] + "<end>")[0] == pytest.approx(
            first + scored(PROMPT + TEXTS[0], "<end>")[0], abs=1e-3
        )
    assert all(value < 0 for value in together)
