"""A model from nothing: the tokenizer is trained on the rows, the weights are random.

For the compact policy: the numbers of lines and variables, and what ends a prompt and an edit, are tokens of their own;
a name is cut the same way wherever it stands, so that to write it again is to copy; the chat template puts messages one
behind the other and adds nothing, so that a server is asked for the very text that was trained on. Part of `job.py`;
needs nothing of Ramify.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

LINES, VARIABLES = 160, 64
"""Numbers of lines, and of variables, that are tokens."""
PAD, END = "<pad>", "<end>"
TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
TOKENIZED = 50_000
"""Rows that a tokenizer is made of, at most."""
HEAD = 32
"""Width of an attention head: a narrow model has several."""
PIECES = r"[^\W\d]+|\d|\n| +|[^\w\n]+"
"""What no token reaches across: words, digits, signs with the spaces behind them."""


def make(
    rows: list[dict[str, Any]], folder: Path, *, seed: int, width: int, layers: int, vocabulary: int, positions: int
) -> None:
    """Write a checkpoint that transformers and vLLM load. `width` is a multiple of 32."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = _tokenizer(rows, vocabulary, positions)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(seed)
    # Not Qwen2, say: for that, transformers puts Qwen's own way to cut in the place of a tokenizer's.
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        intermediate_size=3 * width,
        num_hidden_layers=layers,
        num_attention_heads=width // HEAD,
        num_key_value_heads=width // HEAD,
        head_dim=HEAD,
        attention_bias=True,
        max_position_embeddings=positions,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.convert_tokens_to_ids(END),
        pad_token_id=tokenizer.convert_tokens_to_ids(PAD),
    )
    LlamaForCausalLM(config).save_pretrained(folder)


def _tokenizer(rows: list[dict[str, Any]], vocabulary: int, positions: int) -> Any:
    """Byte-level BPE of what the rows say."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE())
    pieces = pre_tokenizers.Split(Regex(PIECES), "isolated")
    as_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    bpe.pre_tokenizer = pre_tokenizers.Sequence([pieces, as_bytes])
    bpe.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=[PAD, END], initial_alphabet=alphabet, show_progress=False
    )
    bpe.train_from_iterator(_texts(rows), trainer)
    names = ["<fix>", *(f"<{n}>" for n in range(10)), *(f"<V{n}>" for n in range(1, VARIABLES + 1))]
    names += [f"<L{n}>" for n in range(1, LINES + 1)]
    bpe.add_tokens([AddedToken(name, normalized=False) for name in names])
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe, eos_token=END, pad_token=PAD, chat_template=TEMPLATE, model_max_length=positions
    )


def _texts(rows: list[dict[str, Any]]) -> Iterator[str]:
    for row in rows[:: 1 + len(rows) // TOKENIZED]:
        for messages in row.values():
            if isinstance(messages, list):
                yield from (str(message.get("content") or "") for message in messages if "content" in message)
