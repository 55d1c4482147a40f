"""Writes a model with random weights that vLLM can serve: the real architecture, tokenizer and chat template of a model
with tools, in a megabyte. Runs in `.vllm`; needs no network.

    .vllm/bin/python tests/vllm/tiny_model.py DIR
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

ROOT = Path(__file__).parent.parent.parent
VOCABULARY = 4096
POSITIONS = 32768
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TAGS = ["<tool_call>", "</tool_call>"]
"""Tokens of their own but not special: those are dropped before a server looks for calls."""


def make(folder: Path) -> None:
    """The whole checkpoint."""
    tokenizer = _tokenizer()
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=32,
        max_position_embeddings=POSITIONS,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.convert_tokens_to_ids("<|im_end|>"),
        pad_token_id=tokenizer.convert_tokens_to_ids("<|endoftext|>"),
    )
    Qwen2ForCausalLM(config).save_pretrained(folder)


def _tokenizer() -> PreTrainedTokenizerFast:
    """Byte-level BPE of this repository's own files."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train(
        [str(path) for pattern in ("agent/**/*.py", "prompts/*.md") for path in sorted(ROOT.glob(pattern))], trainer
    )
    bpe.add_tokens(TAGS)
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        chat_template=(Path(__file__).parent / "chat_template.jinja").read_text(encoding="utf-8"),
        model_max_length=POSITIONS,
    )


if __name__ == "__main__":
    make(Path(sys.argv[1]))
