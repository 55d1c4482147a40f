"""Predictions and ledgers: nothing is lost or changed between a patch and the file that others read."""

from __future__ import annotations

import json
import resource
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import UsageError
from benchmarks.data.jsonl_ledger import Ledger, read_lines
from benchmarks.data.predictions import Prediction, read_predictions, write_predictions


@given(st.binary())
def test_any_patch_survives_the_file_byte_for_byte(patch: bytes) -> None:
    row = json.loads(json.dumps(Prediction("a-1", "m", patch, "hidden").to_row()))
    assert Prediction.from_row(row) == Prediction("a-1", "m", patch, "hidden")


def test_the_file_is_what_swe_bench_tools_read(tmp_path: Path) -> None:
    patch = "diff --git a/é b/é\r\n".encode()
    write_predictions(tmp_path / "preds.json", [Prediction("a-1", "ramify/x", patch, "revealed")])
    data = json.loads((tmp_path / "preds.json").read_text())
    entry = data["a-1"]
    assert (entry["instance_id"], entry["model_name_or_path"]) == ("a-1", "ramify/x")
    assert entry["model_patch"] == patch.decode()


ROW = {"instance_id": "a-1", "model_name_or_path": "m", "model_patch": "x\n"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("dict.json", json.dumps({"a-1": ROW})),
        ("without_id.json", json.dumps({"a-1": {"model_patch": "x\n", "model_name_or_path": "m"}})),
        ("list.json", json.dumps([ROW])),
        ("lines.jsonl", json.dumps(ROW) + "\n\n"),
        ("no_last_newline.jsonl", json.dumps(ROW)),
    ],
)
def test_the_forms_in_use_are_read(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert read_predictions(tmp_path / name) == [Prediction("a-1", "m", b"x\n")]


@pytest.mark.parametrize(
    ("name", "text"),
    [("twice.json", json.dumps([ROW, ROW])), ("no_id.json", "[{}]"), ("text.json", "x"), ("number.json", "3")],
)
def test_a_file_that_says_something_else_is_refused(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(UsageError):
        read_predictions(tmp_path / name)


def test_a_missing_patch_is_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "preds.json").write_text(json.dumps([{**ROW, "model_patch": None}]))
    assert read_predictions(tmp_path / "preds.json")[0].patch == b""


def test_a_torn_last_line_is_cut_off_and_the_rest_stays(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(b'{"a": 1}\n{"a": 2')
    assert list(read_lines(path, torn=True)) == [{"a": 1}]
    ledger = Ledger(path)
    ledger.append({"a": 3})
    ledger.close()
    assert list(read_lines(path)) == [{"a": 1}, {"a": 3}]


def test_a_cut_file_of_somebody_elses_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "preds.jsonl"
    path.write_text(json.dumps(ROW) + "\n" + json.dumps(ROW)[:-5])
    with pytest.raises(UsageError, match="is not JSON"):
        read_predictions(path)
    with pytest.raises(UsageError, match="cannot read"):
        read_predictions(tmp_path / "missing.jsonl")


def test_a_line_that_is_broken_in_the_middle_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(b'{"a": 1\n{"a": 2}\n')
    with pytest.raises(UsageError, match=r"ledger\.jsonl:1"):
        list(read_lines(path, torn=True))


def test_a_line_for_which_there_is_no_room_leaves_nothing_behind(tmp_path: Path) -> None:
    ledger, (soft, hard) = Ledger(tmp_path / "ledger.jsonl"), resource.getrlimit(resource.RLIMIT_FSIZE)
    ledger.append({"a": 1})
    resource.setrlimit(resource.RLIMIT_FSIZE, (15, hard))
    try:
        with pytest.raises(OSError, match="too large"):
            ledger.append({"a": "of which a part can be written"})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    ledger.append({"a": 2})
    ledger.close()
    assert list(read_lines(tmp_path / "ledger.jsonl")) == [{"a": 1}, {"a": 2}]


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    with pytest.raises(UsageError, match="in use"):
        Ledger(tmp_path / "ledger.jsonl")
    ledger.close()
    Ledger(tmp_path / "ledger.jsonl").close()
