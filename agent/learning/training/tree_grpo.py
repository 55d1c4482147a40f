"""Policy gradients over recorded trees: TRL's GRPO, given the steps of trees in place of what it would draw itself.

Laws: the loss is on answers, never on what the environment said; a step's advantage is the one of its row, times the
number of trajectories that share it. Nothing is drawn anew, so that a step of it is right for the policy that made the
trees, and less and less so the further the weights go from there: train briefly, and collect again. Part of `job.py`;
needs nothing of Ramify.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence
from trl import GRPOTrainer

CHANGES = "the chat template writes what was said before in another way later: answers cannot be told from the rest"


class TreeTrainer(GRPOTrainer):  # type: ignore[misc]  # TRL is not there where types are checked
    """Its rows are those of `encoded`."""

    def __init__(self, **given: Any) -> None:
        super().__init__(reward_funcs=_recorded, **given)

    def _get_train_sampler(self, dataset: Any = None) -> Any:
        """Each row once an epoch: TRL would repeat it for several answers to one prompt."""
        return super(GRPOTrainer, self)._get_train_sampler(dataset)

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        """The rows as tensors: prompts end and answers begin at the same column."""
        prompts, prompt_mask = self._padded([row["prompt_ids"] for row in inputs], "left")
        answers, answer_mask = self._padded([row["completion_ids"] for row in inputs], "right")
        said, _ = self._padded([row["mask"] for row in inputs], "right", 0)
        return {
            "prompt_ids": prompts,
            "prompt_mask": prompt_mask,
            "completion_ids": answers,
            "completion_mask": answer_mask,
            "tool_mask": said,
            "advantages": torch.tensor([row["advantage"] for row in inputs], device=self.accelerator.device),
            "num_items_in_batch": self.accelerator.gather(said.sum()).sum(),
        }

    def _padded(self, lists: list[list[int]], side: str, value: int | None = None) -> tuple[Any, Any]:
        filled = self.processing_class.pad_token_id if value is None else value
        device = self.accelerator.device
        rows, ones = ([torch.tensor(f(each), device=device) for each in lists] for f in (list, lambda x: [1] * len(x)))
        return pad_sequence(rows, True, filled, side), pad_sequence(ones, True, 0, side)


def _recorded(prompts: list[Any], **rest: Any) -> list[float]:
    """TRL wants a function of rewards; none is asked for, as the advantages are known."""
    return [0.0] * len(prompts)


def encoded(rows: list[dict[str, Any]], tokenizer: Any, max_length: int) -> list[dict[str, Any]]:
    """The rows of `grpo-tree` as ids of tokens, cut off behind `max_length`; those of which no answer is left are left
    out."""
    found = [_encoded(row, tokenizer, max_length) for row in rows]
    kept = [row for row in found if any(row["mask"])]
    if len(kept) < len(found):
        sys.stderr.write(f"{len(found) - len(kept)} of {len(found)} prompts fill --max-length: left out\n")
    return kept


def _encoded(row: dict[str, Any], tokenizer: Any, max_length: int) -> dict[str, Any]:
    prompt, *rest = _parts(row, tokenizer)
    first, *parts = ([*tokenizer(text, add_special_tokens=False)["input_ids"]] for text, _ in (prompt, *rest))
    ids = [each for part in parts for each in part]
    mask = [int(said) for part, (_, said) in zip(parts, rest, strict=True) for _ in part]
    room = max(0, max_length - len(first))
    advantage = row["advantage"] * row["weight"]
    return {"prompt_ids": first, "completion_ids": ids[:room], "mask": mask[:room], "advantage": advantage}


def _parts(row: dict[str, Any], tokenizer: Any) -> Iterator[tuple[str, bool]]:
    """The row as texts one behind the other, and whether each is an answer; the first is the prompt."""
    said = ""
    for place, message in enumerate(row["completion"]):
        if message["role"] == "assistant":
            asked, answered = _written(row, tokenizer, place, True), _written(row, tokenizer, place + 1, False)
            yield _after(said, asked), False
            yield _after(asked, answered), True
            said = answered


def _written(row: dict[str, Any], tokenizer: Any, count: int, answering: bool) -> str:
    """The prompt and so many messages after it, by the chat template."""
    messages, tools = [*row["prompt"], *row["completion"][:count]], row.get("tools") or None
    text: str = tokenizer.apply_chat_template(messages, tools, tokenize=False, add_generation_prompt=answering)
    return text


def _after(before: str, whole: str) -> str:
    if not whole.startswith(before):
        raise SystemExit(CHANGES)
    return whole[len(before) :]
