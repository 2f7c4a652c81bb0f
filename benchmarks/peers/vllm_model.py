"""A model folder that vLLM's front ends accept and that holds no weights: what is spoken is known.

The tokenizer is a byte-level BPE like those of real models, so that detokenizing costs what it
costs there. Beside its bytes it has four thousand words of one token each, all of six bytes.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

BYTES_PER_TOKEN = 6
CONTEXT = 8192
WORDS = 4096
MARKS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
TURNS = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPACE = "Ġ"
"""How a byte-level vocabulary writes the byte of a space."""


def words() -> list[str]:
    """Words such as `` bakel``, as the vocabulary writes them."""
    consonants, vowels = "bdfgklmnprst", "aeiou"
    letters = itertools.product(consonants, vowels, consonants, vowels, consonants)
    return [SPACE + "".join(word) for word in itertools.islice(letters, 0, None, 10)][:WORDS]


def tokenizer() -> tuple[Tokenizer, range]:
    """(the tokenizer, the ids of its words)."""
    spoken = words()
    heads = dict.fromkeys(word[:end] for end in range(2, 6) for word in spoken)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {piece: at for at, piece in enumerate((*MARKS, *alphabet, *heads, *spoken))}
    merges = [(piece[:-1], piece[-1]) for piece in (*heads, *spoken)]
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(mark, special=True) for mark in MARKS])
    return made, range(len(vocabulary) - len(spoken), len(vocabulary))


def write(folder: Path) -> range:
    """Fill ``folder``; returns the ids of the words."""
    made, spoken = tokenizer()
    folder.mkdir(parents=True, exist_ok=True)
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
    return spoken
