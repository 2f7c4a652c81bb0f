"""The mark of a text's start that some vocabularies add: what adds it, and how to switch it off.

SentencePiece vocabularies spell the first word of a text like a word after a space. In the
``tokenizer.json`` format a ``Prepend`` normalizer, a ``Metaspace`` or ``ByteLevel`` pre-tokenizer
does it: for every section between control tokens, or (``Metaspace`` with the scheme ``first``)
only where the whole text starts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

_MEMBERS = ("normalizers", "pretokenizers", "decoders")


def parts(spec: Any) -> Iterator[dict[str, Any]]:
    """The members of a normalizer, pre-tokenizer or decoder, sequences unfolded; may be none."""
    if not isinstance(spec, dict):
        return
    for key in _MEMBERS:
        if key in spec:
            for member in spec[key]:
                yield from parts(member)
            return
    yield spec


def marks_every_section(tokenizer_json: str) -> bool:
    """Whether each section gets the mark, and not just the first."""
    spec = json.loads(tokenizer_json)
    found = [*parts(spec["normalizer"]), *parts(spec["pre_tokenizer"])]
    return any(
        part["type"] == "Prepend"
        or part.get("prepend_scheme") == "always"
        or part.get("add_prefix_space") is True
        for part in found
    )


def without_marks(tokenizer_json: str) -> str:
    """The same vocabulary, adding no mark anywhere."""
    spec = json.loads(tokenizer_json)
    for part in (*parts(spec["normalizer"]), *parts(spec["pre_tokenizer"])):
        if part["type"] == "Prepend":
            part["prepend"] = ""
        if "prepend_scheme" in part:
            part["prepend_scheme"] = "never"
        if "add_prefix_space" in part:
            part["add_prefix_space"] = False
    return json.dumps(spec)
