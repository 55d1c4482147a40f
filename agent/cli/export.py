"""`ramify export`: makes training data from runs."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli.runs import Runs, last_run
from agent.counting import counted
from agent.errors import UsageError

if TYPE_CHECKING:
    from agent.learning.export.dataset import ExportSettings


ALL = "100,0,0"


def export(
    runs: Runs = None,
    form: Annotated[
        str, typer.Option("--format", metavar="F", help="The format to write; --list shows all formats.")
    ] = "",
    outs: Annotated[
        list[str] | None,
        typer.Option("-o", "--out", metavar="DIR", help="Directory for the files; for rows, it must not exist."),
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the formats and their options.")] = False,
    option: Annotated[
        list[str] | None,
        typer.Option("--set", "--option", metavar="KEY=VALUE", help="An option of the format; repeatable."),
    ] = None,
    split: Annotated[
        str, typer.Option(metavar="A,B,C", help="Percentages of the repositories for training, validation and test.")
    ] = ALL,
    exclude: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Instances to leave out: a file with a name on each line, or SWE-bench JSON; repeatable.",
        ),
    ] = None,
    allow_license: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SPDX", help="Only repositories with this licence; patterns such as BSD-* work; repeatable."
        ),
    ] = None,
    near: Annotated[
        float,
        typer.Option(
            metavar="SHARE", help="Similarity (0 to 1) at which rows of two tasks count as copies; 0: keep all."
        ),
    ] = 0.9,
    easy_first: Annotated[
        bool, typer.Option("--easy-first", help="Tasks solved more often come first; see ramify train sft --in-order.")
    ] = False,
    parquet: Annotated[bool, typer.Option("--parquet", help="Also write Parquet files.")] = False,
    tokenizer: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A tokenizer.json, to count tokens with.")
    ] = None,
    report: Annotated[
        bool,
        typer.Option(
            "--report",
            help="Write nothing; report how many rows each format would have, and why others are left out.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --report: one JSON object.")] = False,
) -> None:
    """Make training data from runs. Most formats are files of rows, with a manifest and a description of the dataset.
    The formats `traj` and `atif` are for other programs to read: each run becomes one file, which is written to the
    directory of the run unless --out names another."""
    from agent.learning.export.dataset import export as write
    from agent.learning.export.documents import DOCUMENTS
    from agent.learning.export.documents import export as write_documents
    from agent.learning.export.registry import FORMATS
    from agent.run.paths import runs_in

    if listed:
        sys.stdout.write(_formats())
        return
    out, older = _destination(outs or (), form)
    option = [*(option or ()), *older]
    if as_json and not report:
        raise UsageError("--json needs --report; the counts of an export are in its manifest.json")
    if form and form not in (*FORMATS, *DOCUMENTS):
        raise UsageError(f"unknown format {form!r}: one of {', '.join((*FORMATS, *DOCUMENTS))}")
    chosen = runs_in(runs or [last_run()])
    if form in DOCUMENTS:
        _refuse_row_options(split != ALL, easy_first, parquet, exclude, allow_license, tokenizer)
        for path in write_documents(chosen, form, _pairs(option), out):
            sys.stdout.write(f"{path}\n")
        return
    if report:
        names = [form] if form else [name for name, kind in FORMATS.items() if kind.form is None]
        wanted = [_settings(name, option, split, exclude or (), allow_license or (), near, tokenizer) for name in names]
        sys.stdout.write(_reported(chosen, wanted, as_json))
        return
    if not form or out is None:
        raise UsageError("give --format F and --out DIR; ramify export --list names the formats")
    settings = _settings(form, option, split, exclude or (), allow_license or (), near, tokenizer)
    manifest = write(chosen, replace(settings, parquet=parquet, easy_first=easy_first), out)
    if not manifest["rows"]:
        raise UsageError(f"nothing was written to {out}: {_why_none(form, manifest['refused'])}")
    sys.stdout.write(_summary(manifest, out))


def _destination(outs: Sequence[str], form: str) -> tuple[Path | None, list[str]]:
    """Split the values of `-o` into the directory and options of the format (older versions used `-o` for `--set`)."""
    from agent.learning.export.documents import DOCUMENTS
    from agent.learning.export.registry import FORMATS, RENAMED, options_of

    kind = (FORMATS | DOCUMENTS).get(form)
    known = {*options_of(kind), *RENAMED} if kind else ()
    options = [text for text in outs if "=" in text and text.split("=", 1)[0] in known]
    places = [text for text in outs if text not in options]
    if len(places) > 1:
        raise UsageError(
            f"--out {places[1]}: --out is already {places[0]}; give an option of the format as --set KEY=VALUE"
        )
    return Path(places[0]) if places else None, options


def _refuse_row_options(*options: object) -> None:
    """Raise UsageError if any of these options was given: document formats do not have them."""
    if any(options):
        raise UsageError(
            "--split, --easy-first, --exclude, --allow-license, --parquet and --tokenizer are for formats of rows"
        )


def _settings(
    form: str,
    options: Sequence[str],
    split: str,
    exclude: Sequence[Path],
    licences: Sequence[str],
    near: float,
    tokenizer: Path | None,
) -> ExportSettings:
    from agent.learning.export import counting
    from agent.learning.export.dataset import ExportSettings
    from agent.learning.export.duplicates import Duplicates
    from agent.learning.export.exclusions import Exclusions
    from agent.learning.export.hygiene import Hygiene
    from agent.learning.export.registry import make
    from agent.learning.export.splits import Splits

    if not 0 <= near <= 1:
        raise UsageError(f"--near {near}: give a share from 0 to 1")
    pairs = _pairs(options)
    exporter = make(form, pairs)
    hygiene = Hygiene(Exclusions.read(exclude), tuple(licences), Duplicates(near or None))
    tally = counting.Tally(counting.tokenizer(tokenizer) if tokenizer else None)
    return ExportSettings(form, exporter, pairs, Splits.read(split), hygiene, tally)


def _pairs(options: Sequence[str]) -> dict[str, str]:
    if wrong := [text for text in options if "=" not in text]:
        raise UsageError(f"--set {wrong[0]!r}: write KEY=VALUE")
    return dict(text.split("=", 1) for text in options)


def _formats() -> str:
    from agent.learning.export.documents import DOCUMENTS
    from agent.learning.export.registry import FORMATS, options_of

    lines = []
    for name, form in (FORMATS | DOCUMENTS).items():
        options = ", ".join(f"{key}={value}" for key, value in options_of(form).items())
        lines.append(f"{name:<14} {form.text}{f' [{options}]' if options else ''}\n")
    return "".join(lines)


def _summary(manifest: Mapping[str, Any], out: Path) -> str:
    """Return the counts of written and refused rows as text."""
    lines = [f"{file['rows']:>8}  {out / file['name']}" for file in manifest["files"]]
    lines += [f"{count:>8}  not written: {reason}" for reason, count in manifest["refused"].items()]
    if manifest["scrubbed"]:
        lines.append(f"{manifest['scrubbed']:>8}  with secrets or personal data, which were replaced")
    return "\n".join(lines) + "\n"


def _why_none(form: str, skipped: Mapping[str, int]) -> str:
    """Return why there are no rows of a format."""
    from agent.learning.export.registry import FORMATS

    reasons = "; ".join(f"{reason} ({count})" for reason, count in skipped.items())
    return f"no row can be used: {reasons}" if reasons else f"no run has such rows ({FORMATS[form].text})"


def _reported(runs: Sequence[Path], formats: Sequence[ExportSettings], as_json: bool) -> str:
    """Return how many rows the runs would yield in each format, and why others are refused."""
    from agent.learning.export.dataset import look

    found: dict[str, Any] = {}
    for settings in formats:
        sources = look(runs, settings)
        outcomes, skipped = settings.tally.by.get("outcome", Counter[str]()), settings.tally.skipped
        rows = sum(source["rows"] for source in sources)
        found[settings.format] = {
            "rows": rows,
            "outcomes": dict(outcomes),
            "refused": {k: n for k, n in skipped.items() if n},
        }
    if as_json:
        return json.dumps({"runs": len(runs), "formats": found}) + "\n"
    return f"{counted(len(runs), 'run')} would yield these rows:\n" + "".join(
        _counts(name, held) for name, held in found.items()
    )


def _counts(name: str, held: Mapping[str, Any]) -> str:
    """Return the lines about one format: its number of rows and the trainings that use them, and each reason why rows
    are refused."""
    from agent.learning.training import METHODS

    trains = [method for method, forms in METHODS.items() if name in forms] if held["rows"] else []
    use = f" (ramify train {' or '.join(trains)})" if trains else ""
    rests = f", {submitted} of which rest on `submitted`" if (submitted := held["outcomes"].get("submitted")) else ""
    why = "" if held["rows"] or held["refused"] else f": {_why_none(name, {})}"
    lines = [f"{held['rows']:>8}  {name}{use}{rests}{why}"]
    lines += [f"{count:>18}  refused: {reason}" for reason, count in sorted(held["refused"].items())]
    return "\n".join(lines) + "\n"
