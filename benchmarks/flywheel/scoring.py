"""Log-probabilities of texts after a prompt, by a checkpoint in a folder: `agent.models.scoring` without a server.
Runs in the environment for training, and needs nothing of Ramify.

    PYTHON scoring.py MODEL

Each line on stdin is an object with a `prompt` and its `texts`; the answer is a line with a list on stdout.
"""

import json
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


class Scorer:
    """A model and its tokenizer."""

    def __init__(self, folder: str) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()

    def logprobs(self, prompt: str, texts: "list[str]") -> "list[float]":
        """The log-probability of each text."""
        begun = self._tokens(prompt)
        rows = [self._tokens(text) for text in texts]
        read = self.model(torch.tensor([begun]), use_cache=True)
        cache = read.past_key_values
        cache.batch_repeat_interleave(len(rows))
        width = max(map(len, rows))
        padded = torch.tensor([row + [0] * (width - len(row)) for row in rows])
        after = self.model(padded, past_key_values=cache).logits
        logits = torch.cat([read.logits[:, -1:].expand(len(rows), -1, -1), after[:, :-1]], dim=1)
        found = logits.log_softmax(-1).gather(-1, padded[:, :, None])[:, :, 0]
        known = torch.tensor([[place < len(row) for place in range(width)] for row in rows])
        return [float(total) for total in (found * known).sum(-1)]

    def _tokens(self, text: str) -> "list[int]":
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])


def main(folder: str) -> None:
    """Answer until stdin ends."""
    torch.set_grad_enabled(False)
    scorer = Scorer(folder)
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(scorer.logprobs(asked["prompt"], asked["texts"])), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
