"""Keep what users write from turning into control tokens, through any chat template.

A template writes the conversation and its own control tokens (turn markers and the like) into one
text. So that a user who writes ``<|im_end|>`` ends no turn, the first and last characters of such
a spelling are swapped for stand-ins before the template runs; the encoder then finds no control
token there, and the characters come back when that part is encoded as plain text.

Half a spelling at an end of a text is masked too, since the template may put another text next to
it. The stand-ins are lone surrogates: no valid text holds one, so none can be forged, and they are
not white space, so ``trim`` lets them pass. What the template itself writes is trusted: a template
that builds ``<`` ``name`` ``>`` from a name builds a control token if it likes.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any

from antiphon.errors import StartupError
from antiphon.prompting.control_tokens import Span
from antiphon.prompting.tokenizer import Tokenizer, require_unicode

_STAND_INS = range(0xDC00, 0xDFFF)  # the last one marks an end: see ``continuing``

# Values that name a kind and are checked before they come here; templates compare them.
_KINDS = frozenset({"role", "type"})


class ControlText:
    """``mask`` a conversation, let the template run, ``encode`` what it wrote."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        texts = tokenizer.controls.texts
        edges = sorted({text[0] for text in texts} | {text[-1] for text in texts})
        if len(edges) > len(_STAND_INS):
            raise StartupError(f"The vocabulary has {len(texts)} control tokens, all different.")
        self._hidden = {edge: chr(point) for edge, point in zip(edges, _STAND_INS, strict=False)}
        self._shown = {ord(stand_in): edge for edge, stand_in in self._hidden.items()}
        self._starts = frozenset(text[:end] for text in texts for end in range(1, len(text)))
        self._ends = frozenset(text[start:] for text in texts for start in range(1, len(text)))
        self._longest = max(map(len, texts), default=0)

    def mask(self, value: Any) -> Any:
        """The value with the spellings in its texts masked, in lists and objects at any depth.

        Raises ``InvalidRequest`` for text that UTF-8 cannot spell.
        """
        if isinstance(value, str):
            return self._mask(value)
        if isinstance(value, Mapping):
            return {
                self.mask(key): entry if key in _KINDS else self.mask(entry)
                for key, entry in value.items()
            }
        if isinstance(value, (list, tuple)):
            return [self.mask(entry) for entry in value]
        return value

    def restore(self, text: str) -> str:
        """The text as it was before it was masked."""
        return text.translate(self._shown)

    def encode(self, rendered: str, *, add_special_tokens: bool = False) -> array[int]:
        """The ids of a template's output: its control tokens, and all else as plain text.

        ``add_special_tokens`` adds what the model wants around a text, which most templates write
        themselves.
        """
        ids = self._encode(rendered)
        return self._tokenizer.surrounded(ids) if add_special_tokens else ids

    def _encode(self, rendered: str) -> array[int]:
        spans = list(self._tokenizer.controls.find(rendered))
        if self.restore(rendered) == rendered:
            ids = self._tokenizer.encode(rendered, add_special_tokens=False, allow_special=True)
            # The encoder must have found the same control tokens. It might not where it changes
            # the text first: some vocabularies compose "＜" to "<".
            controls = self._tokenizer.special_ids
            if [token for token in ids if token in controls] == [span.token for span in spans]:
                return ids
        return self._encode_by_parts(rendered, spans)

    def _encode_by_parts(self, rendered: str, spans: list[Span]) -> array[int]:
        ids = array("I")
        start = 0
        for span in (*spans, None):
            end = len(rendered) if span is None else span.start
            if text := self.restore(rendered[start:end]):
                ids.extend(self._tokenizer.encode_plain(text, at_start=start == 0))
            if span is not None:
                ids.append(span.token)
                start = span.end
        return ids

    def _mask(self, text: str) -> str:
        require_unicode(text)
        # Again after each round: with the ends of one spelling masked, another may be left in it.
        while hide := self._edges(text):
            characters = list(text)
            for index in hide:
                characters[index] = self._hidden[characters[index]]
            text = "".join(characters)
        return text

    def _edges(self, text: str) -> set[int]:
        """Where a spelling starts or ends in the text, half spellings at its ends included."""
        edges: set[int] = set()
        for match in self._tokenizer.controls.pattern.finditer(text):
            edges |= {match.start(), match.end() - 1}
        for size in range(1, min(self._longest, len(text) + 1)):
            if text[-size:] in self._starts:
                edges.add(len(text) - size)
            if text[:size] in self._ends:
                edges.add(size - 1)
        return edges
