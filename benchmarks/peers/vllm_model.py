"""A model folder that vLLM's front ends accept, without weights, that speaks our engine's words.

The tokenizer is a byte-level BPE like those of real models, so that detokenizing costs what it
costs there. Beside the bytes it has a token for each word of ``benchmarks.serving.words``.
"""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.serving.words import vocabulary
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

CONTEXT = 2**17
MARKS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
TURNS = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPACE = "Ġ"
"""How a byte-level vocabulary writes the byte of a space."""


def tokenizer() -> tuple[Tokenizer, int]:
    """(the tokenizer, the id of word 0; those of the others follow it in order)."""
    words = [word.decode().replace(" ", SPACE) for word in vocabulary()]
    heads = dict.fromkeys(word[:end] for end in range(2, len(words[0])) for word in words)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    pieces = {piece: at for at, piece in enumerate((*MARKS, *alphabet, *heads, *words))}
    merges = [(piece[:-1], piece[-1]) for piece in (*heads, *words)]
    made = Tokenizer(models.BPE(vocab=pieces, merges=merges))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(mark, special=True) for mark in MARKS])
    return made, pieces[words[0]]


def write(folder: Path) -> int:
    """Fill ``folder``, a new one; returns the id of word 0."""
    made, first = tokenizer()
    folder.mkdir()
    made.save(str(folder / "tokenizer.json"))
    files = {
        "config.json": {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 4,
            "vocab_size": made.get_vocab_size(),
            "max_position_embeddings": CONTEXT,
            "eos_token_id": 0,
            "torch_dtype": "float32",
        },
        "generation_config.json": {"eos_token_id": 0},
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": MARKS[0],
            "model_max_length": CONTEXT,
            "clean_up_tokenization_spaces": False,
            "chat_template": TURNS,
        },
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    return first
