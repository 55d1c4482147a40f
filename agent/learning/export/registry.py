"""The export formats by name, and the construction of exporters from options."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, get_type_hints

from pydantic import ValidationError

from agent.errors import UsageError
from agent.learning.export import Exporter, Row, openai
from agent.learning.export.critique import Critique
from agent.learning.export.edits import Edits, Judged
from agent.learning.export.grpo_tree import GrpoTree
from agent.learning.export.kto import Kto
from agent.learning.export.lines import LinePreference
from agent.learning.export.lookahead import Lookahead
from agent.learning.export.plan import Plan
from agent.learning.export.preference import Preference
from agent.learning.export.prm import Prm
from agent.learning.export.retro import Retro
from agent.learning.export.revision import Revision
from agent.learning.export.sft import Sft
from agent.learning.export.trajectories import Trajectories
from agent.learning.export.traversal import Traversal
from agent.learning.export.verifier import Verifier
from agent.parsing import adapter
from agent.run.run import Run


@dataclass(frozen=True, slots=True)
class Format:
    """A format: the class of its exporter, a description for users, and the options that are fixed."""

    kind: Callable[..., Callable[[Run], Any]]
    text: str
    fixed: Mapping[str, Any] = field(default_factory=dict)
    form: Callable[[Row], Row] | None = None
    """Converts each row that is written, for readers that refuse unknown columns: provenance goes to separate files."""


FORMATS = {
    "sft": Format(Sft, "winning paths as chat messages with tools (TRL: SFTTrainer, assistant_only_loss)"),
    "sft-masked": Format(
        Sft, "as sft, with the loss off for turns in which a call failed (`train`: false)", {"mask_errors": True}
    ),
    "retro": Format(Retro, "solved paths without their detours; run `ramify shorten` first (TRL: SFTTrainer)"),
    "preference": Format(Preference, "pairs of siblings with the same prompt (TRL: DPOTrainer, RewardTrainer)"),
    "line-preference": Format(LinePreference, "pairs of whole paths, one of which succeeded (TRL: RewardTrainer)"),
    "kto": Format(Kto, "answers that led to a solved state, and answers that did not (TRL: KTOTrainer)"),
    "prm": Format(Prm, "each step with the mean outcome of the leaves below it, and their number"),
    "verifier": Format(Verifier, "states in words, and whether they led to a right solution, for `ramify train prm`"),
    "grpo-tree": Format(GrpoTree, "each step with fork-, trajectory-, tree- and state-relative advantages"),
    "revision": Format(Revision, "a wrong path with the loss off, a reflection that undoes it, the right path"),
    "traversal": Format(Traversal, "whole searches: each visited state in order, with the steps back in between"),
    "lookahead": Format(Lookahead, "at a decision, the outcome of each explored branch, then the choice of the best"),
    "critique": Format(Critique, "whole attempts, each judged by whether it solved the task"),
    "plan": Format(Plan, "plans in words that led to solved states or better rounds"),
    "trajectories": Format(Trajectories, "whole rollouts with patch and outcome, including failed ones"),
    "edit": Format(
        Edits, "right edits of functions, which searches with --model edit record (TRL: SFTTrainer)", {"kind": "sft"}
    ),
    "edit-preference": Format(
        Judged,
        "pairs of a right edit and a wrong one, from searches with --model edit (TRL: DPOTrainer)",
        {"kind": "preference"},
    ),
    "edit-kto": Format(
        Judged, "edits and whether they were right, from searches with --model edit (TRL: KTOTrainer)", {"kind": "kto"}
    ),
    "openai": Format(Sft, "as sft, in OpenAI's fine-tuning form", form=openai.conversation),
    "openai-preference": Format(Preference, "as preference, in OpenAI's form", form=openai.pair),
}


RENAMED = {"told": "prompts", "most": "max_pairs"}
"""Options by the names that they had in earlier versions."""


def make(name: str, options: Mapping[str, str]) -> Exporter:
    """The exporter of a format. Option values are JSON or bare words.

    Raises:
        UsageError: the format or an option is unknown, or a value is out of range.
    """
    if name not in FORMATS:
        raise UsageError(f"unknown format {name!r}: one of {', '.join(FORMATS)}")
    exporter: Exporter = construct(FORMATS[name], name, options)
    return exporter


def construct(chosen: Format, name: str, options: Mapping[str, str]) -> Any:
    """An instance of a format's class with these options.

    Raises:
        UsageError: an option is unknown, or a value is out of range.
    """
    defaults = options_of(chosen)
    options = {RENAMED.get(key, key): text for key, text in options.items()}
    for key in options:
        if key not in defaults:
            raise UsageError(f"the format {name} has no option {key!r}: it has {', '.join(defaults) or 'none'}")
    kinds = get_type_hints(chosen.kind, include_extras=True)
    values = {key: _value(key, text, kinds[key]) for key, text in options.items()}
    return chosen.kind(**dict(chosen.fixed), **values)


def options_of(chosen: Format) -> dict[str, Any]:
    """The options of a format with their defaults."""
    options = fields(chosen.kind)  # type: ignore[arg-type]  # every exporter is a dataclass
    return {option.name: option.default for option in options if option.init and option.name not in chosen.fixed}


def _value(key: str, text: str, kind: Any) -> object:
    """The value of an option of this type."""
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    try:
        return adapter(kind).validate_python(value, strict=True)
    except ValidationError as error:
        raise UsageError(f"--set {key}={text}: it {error.errors()[0]['msg'].removeprefix('Input ')}") from error
