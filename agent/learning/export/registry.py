"""The formats by name, and exporters made of their options."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from agent.errors import UsageError
from agent.learning.export import Exporter, Row, openai
from agent.learning.export.critique import Critique
from agent.learning.export.edits import Edits, Judged
from agent.learning.export.grpo_tree import GrpoTree
from agent.learning.export.kto import Kto
from agent.learning.export.lookahead import Lookahead
from agent.learning.export.plan import Plan
from agent.learning.export.preference import Preference
from agent.learning.export.prm import Prm
from agent.learning.export.retro import Retro
from agent.learning.export.revision import Revision
from agent.learning.export.sft import Sft
from agent.learning.export.trajectories import Trajectories
from agent.run.run import Run

__all__ = ["FORMATS", "Format", "construct", "make", "options_of"]


@dataclass(frozen=True, slots=True)
class Format:
    """A format: what makes its exporter, what of it is fixed, and a line for people."""

    kind: Callable[..., Callable[[Run], Any]]
    text: str
    fixed: Mapping[str, Any] = field(default_factory=dict)
    form: Callable[[Row], Row] | None = None
    """What each row is turned into."""
    aside: bool = False
    """Readers of the format refuse a column that they do not know: provenance is in files of its own."""


FORMATS = {
    "sft": Format(Sft, "winning paths as chat messages with tools (TRL: SFTTrainer, assistant_only_loss)"),
    "sft-masked": Format(
        Sft, "as sft, with the loss off for turns in which a call failed (`train`: false)", {"mask_errors": True}
    ),
    "retro": Format(Retro, "solved paths without their detours, which `ramify shorten` finds first (TRL: SFTTrainer)"),
    "preference": Format(Preference, "pairs of siblings that were asked the same (TRL: DPOTrainer, RewardTrainer)"),
    "kto": Format(Kto, "answers that led to a solved state, and answers that did not (TRL: KTOTrainer)"),
    "prm": Format(Prm, "each step with the mean outcome of the leaves below it, and their number"),
    "grpo-tree": Format(GrpoTree, "each step with fork-, trajectory-, tree- and state-relative advantages"),
    "revision": Format(Revision, "a wrong way with the loss off, a reflection that undoes it, the right way"),
    "lookahead": Format(Lookahead, "at a decision, what each explored way led to, then the best one"),
    "critique": Format(Critique, "whole attempts with the judgement whether they solved the task"),
    "plan": Format(Plan, "plans in words that led to solved states or better waves"),
    "trajectories": Format(Trajectories, "whole rollouts with patch and outcome, failed ones too"),
    "edit": Format(Edits, "right edits of a function, for --policy edit (TRL: SFTTrainer)", {"kind": "sft"}),
    "edit-preference": Format(Judged, "a right edit and one that was not (TRL: DPOTrainer)", {"kind": "preference"}),
    "edit-kto": Format(Judged, "edits, and whether they were right (TRL: KTOTrainer)", {"kind": "kto"}),
    "openai": Format(Sft, "as sft, in OpenAI's fine-tuning form", form=openai.conversation, aside=True),
    "openai-preference": Format(Preference, "as preference, in OpenAI's form", form=openai.pair, aside=True),
}


_WANTED = {bool: "true or false", int: "a whole number", float: "a number", str: "a word"}


def make(name: str, options: Mapping[str, str]) -> Exporter:
    """The exporter of a format. Values of options are JSON or bare words.

    Raises:
        UsageError: no such format, no such option, or a value out of its range.
    """
    if name not in FORMATS:
        raise UsageError(f"unknown format {name!r}: one of {', '.join(FORMATS)}")
    chosen = FORMATS[name]
    exporter: Exporter = construct(chosen, name, options)
    return exporter if chosen.form is None else _formed(exporter, chosen.form)


def construct(chosen: Format, name: str, options: Mapping[str, str]) -> Any:
    """What a format's kind makes of its options.

    Raises:
        UsageError: no such option, or a value out of its range.
    """
    known = options_of(chosen)
    for key in options:
        if key not in known:
            raise UsageError(f"the format {name} has no option {key!r}: it has {', '.join(known) or 'none'}")
    given = {key: _value(key, text, known[key]) for key, text in options.items()}
    try:
        return chosen.kind(**dict(chosen.fixed), **given)
    except (TypeError, ValueError) as error:
        raise UsageError(f"the format {name}: {error}") from error


def _formed(exporter: Exporter, form: Callable[[Row], Row]) -> Exporter:
    return lambda run: (row if "refused" in row else form(row) for row in exporter(run))


def options_of(chosen: Format) -> dict[str, Any]:
    """The options of a format with their defaults."""
    found = fields(chosen.kind)  # type: ignore[arg-type]  # every exporter is a dataclass
    return {each.name: each.default for each in found if each.init and each.name not in chosen.fixed}


def _value(key: str, text: str, default: object) -> object:
    """What an option is set to, of the type that its default has."""
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    if isinstance(default, float) and type(value) is int:
        return float(value)
    if type(value) is not type(default):
        raise UsageError(f"--option {key}={text}: give {_WANTED[type(default)]}")
    return value
