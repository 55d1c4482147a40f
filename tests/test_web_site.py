"""A folder of runs in a browser: what is served, to whom, and that nothing outside the folder ever is."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from http.client import HTTPConnection
from socket import create_connection

import pytest
from typer.testing import CliRunner

from agent.errors import JournalError, UsageError
from agent.run.run import Run
from agent.run.tree.evaluation import MANIPULATION
from benchmarks.cli.site import app
from benchmarks.reports.site import Site
from tests.exporting import Recorder, edit
from tests.pages import batch, serving, told, write
from tests.test_web_page import Parsed


def ask(port, path, method="GET", **headers):
    connection = HTTPConnection("127.0.0.1", port, timeout=100)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


def facts(page):
    return Parsed(page).facts


class TestPages:
    def test_a_batch_has_a_line_for_each_instance_and_a_link_where_there_is_a_run(self, tmp_path):
        shown = facts(Site(batch(tmp_path / "b")).index())
        assert [(row["instance_id"], row["resolved"], row["link"]) for row in shown["rows"]] == [
            ("pkg__one-1", True, "runs/pkg__one-1.html"),
            ("pkg__one-2", True, None),
            ("pkg__one-3", False, None),
        ]
        assert shown["batches"][0]["total"]["resolved_rate_95"] == pytest.approx([0.2077, 0.9385], abs=1e-4)
        assert shown["charts"]["measurements"][0]["curves"][0]["points"][0]["budget"] == 5

    def test_a_folder_of_batches_has_the_curves_of_all(self, tmp_path):
        batch(tmp_path / "one"), batch(tmp_path / "two", seed=1, resolved=1)
        shown = facts(Site(tmp_path).index())
        assert [each["name"] for each in shown["batches"]] == ["one", "two"]
        (chart,) = shown["charts"]["nodes"]
        assert [curve["repeated"] for curve in chart["curves"]] == [False, False, True]
        assert shown["rows"][0]["link"] == "runs/one%252Fpkg__one-1.html"

    def test_what_must_not_be_compared_is_not_drawn_and_says_why(self, tmp_path):
        batch(tmp_path / "one"), batch(tmp_path / "two")
        assert "one attempt" in facts(Site(tmp_path).index())["charts"]["nodes"][0]["problem"]

    def test_batches_with_revealed_tests_have_a_chart_of_their_own(self, tmp_path):
        batch(tmp_path / "one"), batch(tmp_path / "two", mode="revealed")
        charts = facts(Site(tmp_path).index())["charts"]["nodes"]
        assert [(chart["mode"], len(chart["curves"])) for chart in charts] == [("hidden", 1), ("revealed", 1)]

    def test_a_folder_of_runs_has_a_line_for_each_ended_or_not(self, tmp_path):
        write(tmp_path / "ended", told()), write(tmp_path / "killed", told()[:4])
        (write(tmp_path / "broken", []) / "journal.jsonl").write_text("no event\n")
        with Run.open(tmp_path / "going") as run:
            for event in told()[:4]:
                run.record(event)
            rows = {row["instance_id"]: row for row in facts(Site(tmp_path).index())["rows"]}
        states = {name: row["state"] for name, row in rows.items()}
        assert states == {"ended": "done", "killed": "interrupted", "going": "running"}
        assert (rows["ended"]["solved"], rows["going"]["solved"]) == (True, None)
        assert rows["ended"]["solved"]
        assert rows["going"]["nodes"] == 2
        assert (rows["ended"]["tokens"], rows["ended"]["flagged"]) == (1020, 0)

    def test_the_line_of_a_run_counts_its_manipulations(self, tmp_path):
        made = Recorder(tmp_path / "run")
        made.add(0, 0.1, [edit("tamper")], notes=f"{MANIPULATION}\nconftest.py: added")
        made.run.close()
        (row,) = facts(Site(tmp_path).index())["rows"]
        assert row["flagged"] == 1

    def test_a_run_by_itself_can_be_shown(self, tmp_path):
        site = Site(write(tmp_path / "run", told()))
        (page,) = site.pages()
        assert page == "run.html", "a name that begins with a dot is left out where CI keeps files"
        assert len(facts(site.tree(page))["nodes"]) == 6

    def test_the_totals_of_a_batch_count_what_runs_and_what_waits(self, tmp_path):
        folder = batch(tmp_path / "b", of=1)
        write(folder / "pkg__two-1", told()[:4])
        (folder / "instances.json").write_text('["pkg__one-1", "pkg__two-1", "pkg__two-2"]')
        shown = facts(Site(tmp_path / "b").index())
        assert {row["instance_id"]: (row["state"], row["solved"], row["batch"]) for row in shown["rows"]} == {
            "pkg__one-1": ("done", True, "b"),
            "pkg__two-1": ("interrupted", None, "b"),
            "pkg__two-2": ("waiting", None, "b"),
        }
        (total,) = (each["total"] for each in shown["batches"])
        with Run.read(folder / "pkg__two-1") as run:
            assert total["measurements"] == 5 + run.usage.measurements
        assert total["states"] == {"done": 1, "interrupted": 1, "waiting": 1}

    def test_a_journal_that_cannot_be_opened_takes_no_other_run_away(self, tmp_path):
        write(tmp_path / "good", told())
        (tmp_path / "odd" / "journal.jsonl").mkdir(parents=True)
        with serving(tmp_path) as port:
            (row,) = facts(ask(port, "/")[1])["rows"]
            assert row["instance_id"] == "good"
            assert ask(port, "/runs/odd.html")[0] == 500

    def test_a_folder_whose_name_is_no_text_has_a_page(self, tmp_path):
        write(tmp_path / os.fsdecode(b"not-\xff"), told())
        with serving(tmp_path) as port:
            (row,) = facts(ask(port, "/")[1])["rows"]
            assert row["link"] == "runs/not-%25FF.html"
            assert ask(port, f"/{row['link']}")[0] == 200

    @pytest.mark.parametrize("name", ["/etc", "../run"])
    def test_an_instance_whose_name_leads_out_of_the_batch_has_a_line_and_no_link(self, tmp_path, name):
        results = batch(tmp_path / "all" / "b", of=1) / "results.jsonl"
        results.write_text(results.read_text().replace("pkg__one-1", name))
        rows = facts(Site(tmp_path / "all").index())["rows"]
        assert (rows[0]["instance_id"], rows[0]["link"]) == (name, None)

    def test_a_folder_with_neither_is_refused(self, tmp_path):
        with pytest.raises(UsageError, match="neither a batch nor a run"):
            Site(tmp_path).index()


class TestServing:
    def test_it_gives_the_index_and_each_run_as_it_is_now(self, tmp_path):
        run = write(tmp_path / "all" / "run", told()[:2])
        with serving(tmp_path / "all") as port:
            (row,) = facts(ask(port, "/")[1])["rows"]
            assert len(facts(ask(port, f"/{row['link']}")[1])["nodes"]) == 1
            write(run, told())
            assert len(facts(ask(port, f"/{row['link']}?again=1")[1])["nodes"]) == 6
            assert ask(port, f"/{row['link']}", "HEAD") == (200, b"")

    @pytest.mark.parametrize("name", ["results.jsonl", "preds.verdicts.jsonl"])
    @pytest.mark.parametrize("row", ['{"status": "x"}', '{"instance_id": 3, "patch": null}'])
    def test_a_row_that_is_none_is_named_by_its_file_and_line(self, tmp_path, name, row):
        with (batch(tmp_path / "b") / name).open("a") as file:
            file.write(f"{row}\n")
        with serving(tmp_path) as port:
            status, said = ask(port, "/")
        assert status == 500
        assert f"{name}:4 " in said.decode()

    @pytest.mark.parametrize(
        "path",
        [
            "/../secret.txt",
            "/..%2fsecret.txt",
            "/runs/../../secret.txt",
            "/runs/..%252F..%252Fsecret.html",
            "//secret.txt",
            "/%00",
            "/run/journal.jsonl",
            "/runs/linked.html",
        ],
    )
    def test_no_path_leads_to_a_file(self, tmp_path, path):
        (tmp_path / "secret.txt").write_text("secret")
        write(tmp_path / "elsewhere", told())
        write(tmp_path / "all" / "run", told()[:2])
        (tmp_path / "all" / "linked").symlink_to(tmp_path / "elsewhere")
        with serving(tmp_path / "all") as port:
            assert ask(port, path) == (404, b"no such page\n")

    def test_what_a_journal_names_as_a_blob_is_no_path(self, tmp_path):
        (tmp_path / "secret.txt").write_text("a secret")
        ended = replace(told()[-1], patch_blob="../../../secret.txt")
        run = write(tmp_path / "all" / "run", [*told()[:-1], ended])
        (run / "blobs").mkdir()
        assert "a secret" not in json.dumps(Parsed(Site(tmp_path / "all").tree("runs/run.html")).details)
        with Run.read(run) as read, pytest.raises(JournalError, match="damaged"):
            read.journal.get_blob("../journal.jsonl")

    def test_a_blob_that_is_a_link_is_not_followed(self, tmp_path):
        (tmp_path / "secret.txt").write_text("a secret")
        ended = replace(told()[-1], patch_blob="a" * 64)
        run = write(tmp_path / "all" / "run", [*told()[:-1], ended])
        (run / "blobs").mkdir()
        (run / "blobs" / ("a" * 64)).symlink_to(tmp_path / "secret.txt")
        assert "a secret" not in json.dumps(Parsed(Site(tmp_path / "all").tree("runs/run.html")).details)

    def test_a_batch_whose_files_are_elsewhere_is_not_read(self, tmp_path):
        batch(tmp_path / "other")
        (tmp_path / "all").mkdir()
        (tmp_path / "all" / "batch.json").symlink_to(tmp_path / "other" / "batch.json")
        with pytest.raises(UsageError, match="neither"):
            Site(tmp_path / "all").index()

    def test_a_request_under_another_name_is_refused(self, tmp_path):
        write(tmp_path / "run", told())
        with serving(tmp_path) as port:
            assert ask(port, "/", Host="attacker.example")[0] == 403
            assert ask(port, "/", Host=f"localhost:{port}")[0] == 200

    def test_it_only_reads(self, tmp_path):
        write(tmp_path / "run", told())
        with serving(tmp_path) as port:
            assert {ask(port, "/", method)[0] for method in ("POST", "PUT", "DELETE", "PATCH")} == {501}

    def test_it_listens_on_this_machine_alone(self, tmp_path):
        write(tmp_path / "run", told())
        with serving(tmp_path) as port, pytest.raises(ConnectionRefusedError):
            create_connection(("127.0.0.2", port), timeout=100)

    def test_a_journal_that_cannot_be_read_is_an_answer_and_no_end(self, tmp_path):
        run = write(tmp_path / "run", told())
        with serving(tmp_path) as port:
            (run / "journal.jsonl").write_text("no event\n")
            status, said = ask(port, "/runs/run.html")
            assert (status, b"journal.jsonl:1" in said) == (500, True)
            assert ask(port, "/nothing")[0] == 404


class TestCommand:
    def test_the_pages_are_files_that_lead_to_one_another(self, tmp_path):
        batch(tmp_path / "in" / "b")
        done = CliRunner().invoke(app, [str(tmp_path / "in"), "--out", str(tmp_path / "out")])
        assert (done.exit_code, "1 run" in done.stdout) == (0, True)
        (link,) = [row["page"] for row in facts((tmp_path / "out" / "index.html").read_bytes())["rows"] if row["page"]]
        assert len(facts((tmp_path / "out" / link).read_bytes())["nodes"]) == 6

    def test_a_port_that_is_taken_is_named(self, tmp_path):
        write(tmp_path / "run", [told()[0], told()[1]])
        with serving(tmp_path) as port:
            done = CliRunner().invoke(app, [str(tmp_path), "--port", str(port)])
        assert f"--port {port} cannot be used" in str(done.exception)
