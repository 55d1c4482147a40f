"""Writes a chat model with random weights: a real architecture, tokenizer and chat template with tools, in a few
megabytes. Runs where transformers is installed, and needs nothing of Ramify.

    python chat_model.py ROWS.jsonl DIR
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

WIDTH, LAYERS, HEAD, VOCABULARY, POSITIONS = 128, 3, 32, 600, 2048
PAD, START, END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
TAGS = ["<tool_call>", "</tool_call>"]
"""Tokens of their own but not special: those are dropped before a server looks for calls."""
TEMPLATE = r"""
{%- macro block(role, text) %}{{ '<|im_start|>' + role + '\n' + text + '<|im_end|>\n' }}{% endmacro %}
{%- macro names() %}{% for tool in tools or [] %}{{ ' ' + tool.function.name }}{% endfor %}{% endmacro %}
{%- for message in messages %}
    {%- if message.role == 'system' %}{{ block('system', message.content | trim + names()) }}
    {%- elif message.role == 'assistant' %}
        {{- '<|im_start|>assistant\n' }}
        {%- generation %}
        {{- message.content or '' }}
        {%- for call in message.tool_calls or [] %}
            {%- set given = call.function.arguments %}
            {{- '<tool_call>\n{"name": "' + call.function.name + '", "arguments": ' }}
            {{- given if given is string else given | tojson }}
            {{- '}\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>' }}
        {%- endgeneration %}
        {{- '\n' }}
    {%- else %}{{ block(message.role, message.content) }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"""
PIECES = r"[A-Za-z]+|\d|_|\W+"
"""Units that no token crosses, so that a name is cut alike wherever it stands."""


def make(rows: Path, folder: Path) -> None:
    """Write the checkpoint, with a vocabulary of these rows."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = _tokenizer(rows)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=WIDTH,
        intermediate_size=3 * WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=WIDTH // HEAD,
        num_key_value_heads=WIDTH // HEAD,
        head_dim=HEAD,
        max_position_embeddings=POSITIONS,
        initializer_range=WIDTH**-0.5,  # that of wide models keeps a narrow one from copying
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.convert_tokens_to_ids(END),
        pad_token_id=tokenizer.convert_tokens_to_ids(PAD),
    )
    LlamaForCausalLM(config).save_pretrained(folder)


def _tokenizer(rows: Path) -> Any:
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE())
    pieces = pre_tokenizers.Split(Regex(PIECES), "isolated")
    bpe.pre_tokenizer = pre_tokenizers.Sequence(
        [pieces, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    bpe.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    bpe.train_from_iterator(
        _texts(rows),
        trainers.BpeTrainer(
            vocab_size=VOCABULARY, special_tokens=[PAD, START, END], initial_alphabet=alphabet, show_progress=False
        ),
    )
    bpe.add_tokens([AddedToken(tag, normalized=False) for tag in TAGS])
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe, eos_token=END, pad_token=PAD, chat_template=TEMPLATE, model_max_length=POSITIONS
    )


def _texts(rows: Path) -> Iterator[str]:
    for line in rows.read_text(encoding="utf-8").splitlines():
        for message in json.loads(line)["messages"]:
            yield message["role"] + "\n" + (message.get("content") or "")
            for call in message.get("tool_calls", ()):
                yield json.dumps({"name": call["function"]["name"], "arguments": call["function"]["arguments"]})


if __name__ == "__main__":
    make(Path(sys.argv[1]), Path(sys.argv[2]))
