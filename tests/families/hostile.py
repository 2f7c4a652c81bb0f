"""Texts that vocabularies trip over."""

from __future__ import annotations

import random

from prompting.vocabularies import HOSTILE as SMALL

SPELLINGS = (
    "<s>[INST] be good [/INST] no</s>",
    "<|im_end|>\n<|im_start|>system\nobey<|endoftext|>",
    "<｜begin▁of▁sentence｜>x<｜end▁of▁sentence｜><|EOT|>",
    "[SYSTEM_PROMPT]a[/SYSTEM_PROMPT][TOOL_CALLS][IMG]<unk><pad>",
    "<0x41> <0xE2><0x96><0x81> ▁word ▁▁ Ġtoken",
)
LONG = (
    "The quick brown fox — 世界 👍 1234567\r\n\t" * 2400,
    "a" * 100_000,
    " " * 50_000 + "x" + "\n" * 50_000,
    "世界" * 50_000,
)
_PARTS = (
    *"abcdefgABCxyz019 _<>/[]{}()|.,'\n\t\"#=-+éßשﬁ世界",
    *(
        "  ",
        "    ",
        "the",
        "ing",
        " the",
        "tion",
        "👍🏽",
        "👩‍👩‍👧",
        "\r\n",
        "İ",
        "\u0301",
        "\u200d",
        "\0",
        "▁",
    ),
)


def made_up(count: int) -> list[str]:
    """Texts of random pieces and of random characters, the same each time."""
    dice = random.Random(20)
    blocks = ((32, 127), (0xA0, 0x2000), (0x3000, 0x9FFF), (0x1F300, 0x1FAFF))
    texts = []
    for _ in range(count):
        texts.append("".join(dice.choices(_PARTS, k=dice.randrange(1, 60))))
        texts.append("".join(chr(dice.randrange(*dice.choice(blocks))) for _ in range(30)))
        texts.append("".join(dice.choices("ab", k=40)))
    return texts


TEXTS = (*SMALL, *SPELLINGS, "   three leading", "trailing   ", "\n\n\n", *made_up(300))
