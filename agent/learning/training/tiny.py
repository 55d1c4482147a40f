"""A tiny model from scratch for the compact policy: a tokenizer trained on the rows, and random weights.

Line numbers, variable numbers and the ends of prompts and edits are tokens of their own. A name is tokenized the same
way everywhere, so that repeating it means copying its tokens. The chat template joins messages and adds nothing, so
that a server is asked for exactly the text that was trained on. Part of `job.py`; needs nothing of Ramify.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

LINES, VARIABLES = 160, 64
"""How many line numbers and variable numbers are tokens."""
PAD, END = "<pad>", "<end>"
TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
TOKENIZED = 50_000
"""The maximum number of rows that a tokenizer is trained on."""
HEAD = 32
"""Width of an attention head, so that a narrow model has several."""
PIECES = r"[^\W\d]+|\d|\n| +|[^\w\n]+"
"""The units whose boundaries no token crosses: words, digits, signs with the spaces after them."""


def make(
    rows: list[dict[str, Any]], folder: Path, *, seed: int, width: int, layers: int, vocabulary: int, positions: int
) -> None:
    """Write a checkpoint that transformers and vLLM load. `width` is a multiple of 32."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = _tokenizer(rows, vocabulary, positions)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(seed)
    # Not Qwen2, for example: there transformers replaces the tokenizer's own pre-tokenization by Qwen's.
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
    """Byte-level BPE trained on the texts of the rows."""
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
    names = ["<fix>", "<printed>", *(f"<{n}>" for n in range(10)), *(f"<V{n}>" for n in range(1, VARIABLES + 1))]
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
