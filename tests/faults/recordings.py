"""Recordings for the replay engine, of any length."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

HOLD = "hold"
"""The name of a recording that never stops by itself."""


def word(number: int, width: int = 0) -> str:
    """The text of one token, of so many characters if it is no longer than that."""
    return f"w{number} ".ljust(width)


def text(tokens: int, width: int = 0) -> str:
    """All that a recording says."""
    return "".join(word(number, width) for number in range(tokens))


def write_recordings(
    folder: Path,
    lengths: Mapping[str, int],
    step_ms: float = 10.0,
    silence_ms: float = 0.0,
    width: int = 0,
) -> None:
    """One recording for each name, of so many tokens, and a model of that name each.

    They come every ``step_ms``; in the middle nothing comes for ``silence_ms``. ``width`` is that
    of each word.
    """
    for name, tokens in lengths.items():
        header = {
            "format": 1,
            "source": "handmade",
            "model": "words",
            "family": "plain",
            "tokenizer": "opaque",
            "prompt_tokens": 3,
        }
        rows: list[object] = [header]
        for number in range(tokens):
            at = step_ms * (number + 1) + (silence_ms if number >= tokens // 2 else 0)
            rows.append([at, 0, [number], word(number, width), None])
        rows.append(["hold"] if name == HOLD else ["finish", 0, "stop"])
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text("".join(lines))
