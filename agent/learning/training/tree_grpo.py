"""Policy gradients over recorded trees: TRL's GRPO on the steps of trees instead of completions that it samples itself.

Invariants: the loss is on for answers only, never for observations; a step's advantage is that of its row times the
number of trajectories that share the step. No new samples are drawn, so the gradient is right for the policy that made
the trees, and becomes less accurate the further the weights move: train briefly, then collect new trees. Part of
`job.py`; needs nothing of Ramify.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence
from trl import GRPOTrainer

CHANGES = "the chat template rewrites earlier messages as a conversation grows: answers cannot be told from the rest"


class TreeTrainer(GRPOTrainer):  # type: ignore[misc]  # TRL is not installed where types are checked
    """A GRPO trainer for the rows of `encoded`."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(reward_funcs=_no_rewards, **arguments)

    def _get_train_sampler(self, dataset: Any = None) -> Any:
        """Draw each row once per epoch: TRL would repeat it to sample several answers to one prompt."""
        return super(GRPOTrainer, self)._get_train_sampler(dataset)

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        """The rows as tensors: prompts end and answers begin at the same column."""
        prompts, prompt_mask = self._padded([row["prompt_ids"] for row in inputs], "left")
        answers, answer_mask = self._padded([row["completion_ids"] for row in inputs], "right")
        trained, _ = self._padded([row["mask"] for row in inputs], "right", 0)
        return {
            "prompt_ids": prompts,
            "prompt_mask": prompt_mask,
            "completion_ids": answers,
            "completion_mask": answer_mask,
            "tool_mask": trained,
            "advantages": torch.tensor([row["advantage"] for row in inputs], device=self.accelerator.device),
            "num_items_in_batch": self.accelerator.gather(trained.sum()).sum(),
        }

    def _padded(self, lists: list[list[int]], side: str, value: int | None = None) -> tuple[Any, Any]:
        filled = self.processing_class.pad_token_id if value is None else value
        device = self.accelerator.device
        rows, ones = ([torch.tensor(f(each), device=device) for each in lists] for f in (list, lambda x: [1] * len(x)))
        return pad_sequence(rows, True, filled, side), pad_sequence(ones, True, 0, side)


def _no_rewards(prompts: list[Any], **rest: Any) -> list[float]:
    """TRL requires a reward function; this one is never called, as the advantages are recorded."""
    return [0.0] * len(prompts)


def encoded(rows: list[dict[str, Any]], tokenizer: Any, max_length: int) -> list[dict[str, Any]]:
    """The rows of `grpo-tree` as token ids, cut off at `max_length`. Rows that then have no answer are left out."""
    kept = [row for row in (_encoded(row, tokenizer, max_length) for row in rows) if any(row["mask"])]
    if len(kept) < len(rows):
        sys.stderr.write(f"{len(rows) - len(kept)} of {len(rows)} prompts fill --max-length: left out\n")
    return kept


def _encoded(row: dict[str, Any], tokenizer: Any, max_length: int) -> dict[str, Any]:
    prompt, *rest = _parts(row, tokenizer)
    first, *parts = ([*tokenizer(text, add_special_tokens=False)["input_ids"]] for text, _ in (prompt, *rest))
    ids = [token for part in parts for token in part]
    mask = [int(is_answer) for part, (_, is_answer) in zip(parts, rest, strict=True) for _ in part]
    room = max(0, max_length - len(first))
    advantage = row["advantage"] * row["weight"]
    return {"prompt_ids": first, "completion_ids": ids[:room], "mask": mask[:room], "advantage": advantage}


def _parts(row: dict[str, Any], tokenizer: Any) -> Iterator[tuple[str, bool]]:
    """The row as consecutive texts, and whether each is an answer. The first is the prompt."""
    before = ""
    for place, message in enumerate(row["completion"]):
        if message["role"] == "assistant":
            asked, answered = _templated(row, tokenizer, place, True), _templated(row, tokenizer, place + 1, False)
            yield _after(before, asked), False
            yield _after(asked, answered), True
            before = answered


def _templated(row: dict[str, Any], tokenizer: Any, count: int, answering: bool) -> str:
    """The prompt and the first `count` messages after it, as the chat template renders them."""
    messages, tools = [*row["prompt"], *row["completion"][:count]], row.get("tools") or None
    text: str = tokenizer.apply_chat_template(messages, tools, tokenize=False, add_generation_prompt=answering)
    return text


def _after(before: str, whole: str) -> str:
    if not whole.startswith(before):
        raise SystemExit(CHANGES)
    return whole[len(before) :]
