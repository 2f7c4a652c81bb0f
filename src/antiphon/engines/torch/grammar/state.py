"""Where the text of one sequence has come to in its form."""

from __future__ import annotations

import json
from collections.abc import Iterable

import numpy as np
from llguidance import LLMatcher
from numpy.typing import NDArray

from antiphon.engines.port import GrammarSpec
from antiphon.engines.torch.grammar.thought import Thought
from antiphon.engines.torch.grammar.vocabulary import GrammarVocabulary

ALL = np.uint32(0xFFFFFFFF)


class Grammar:
    """The form of one sequence, from its first token on. Preemption does not touch it: what was
    drawn stays drawn. ``thought`` is what the model may write before, in which none of ``barred``
    is drawn. Without a ``matcher`` any text may follow that, without those too."""

    def __init__(
        self,
        matcher: LLMatcher | None,
        vocabulary: GrammarVocabulary,
        thought: Thought | None = None,
        barred: Iterable[int] = (),
    ) -> None:
        self._matcher = matcher
        self.vocabulary = vocabulary
        self._thought = thought
        # A thought without an answer is no answer, where one is asked for.
        self._barred = [*barred, *(() if matcher is None else vocabulary.eos_ids)]

    @property
    def finished(self) -> bool:
        """Whether the text is complete and nothing may follow. Then the sequence ends, and no
        token is drawn for that: so there is one whatever its request masks."""
        if self._matcher is None or (self._thought is not None and not self._thought.over):
            return False
        return not self.error and bool(self._matcher.is_stopped())

    @property
    def error(self) -> str:
        """Why the text cannot go on; empty while it can."""
        return "" if self._matcher is None else str(self._matcher.get_error())

    def advance(self, token: int) -> bool:
        """Take the token drawn last; False if the form does not allow it, or is out of order.

        llguidance leaves nothing but the end to be drawn once it has failed, so this is where an
        end that is none comes to light.
        """
        if self.error:
            return False
        thought = self._thought
        if thought is None or thought.over:
            return self._take(token)
        if token in self.vocabulary.eos_ids:
            # Drawn where the opener or an answer could begin: an answer's own end, if it may.
            return self._matcher is None or (not thought.free and self._take(token))
        spelt = self.vocabulary.spelt(token)
        answer = thought.take(spelt)
        if answer is None or self._matcher is None:
            return True
        if answer == spelt:
            return self._take(token)
        return bool(self._matcher.consume_tokens(self.vocabulary.guide.tokenize_bytes(answer)))

    def _take(self, token: int) -> bool:
        return self._matcher is None or bool(self._matcher.consume_token(token))

    def begins_with(self, tokens: Iterable[int]) -> bool:
        """Whether the text can go on with one of these."""
        row: NDArray[np.int32] = np.zeros((self.vocabulary.guide.vocab_size + 31) // 32, np.int32)
        self.fill(row)
        bits = row.view(np.uint32)
        return any(int(bits[token >> 5]) >> (token & 31) & 1 for token in tokens)

    def fill(self, row: NDArray[np.int32]) -> None:
        """Write the mask of the next token: bit i%32 of word i//32 is set if token i may be drawn.

        llguidance works without the interpreter's lock, but for forced text, which the tokenizer
        cuts.
        """
        bits = row.view(np.uint32)
        thought = self._thought
        if thought is not None and thought.free:
            forced = thought.forced
            if forced is not None:
                bits[:] = 0
                bits[forced >> 5] = np.uint32(1 << (forced & 31))
                return
            bits[:] = ALL
            self._bar(bits)
            return
        if self._matcher is None:
            bits[:] = ALL
            if thought is not None and thought.closed:
                self._bar(bits)
            return
        if thought is not None and thought.begun:
            bits[:] = 0
        else:
            self._matcher.unsafe_compute_mask_ptr(row.ctypes.data, row.nbytes)
        if thought is not None and not thought.over:
            for token in thought.besides:
                bits[token >> 5] |= np.uint32(1 << (token & 31))

    def _bar(self, bits: NDArray[np.uint32]) -> None:
        for token in self._barred:
            bits[token >> 5] &= ALL ^ np.uint32(1 << (token & 31))


def begun(matcher: LLMatcher | None, spec: GrammarSpec, vocabulary: GrammarVocabulary) -> Grammar:
    """The form at the start of a text; ``spec`` says what may stand before the answer."""
    if not spec.closer:
        return Grammar(matcher, vocabulary)
    ids, closer = vocabulary.ids, spec.closer.encode()
    closing = [ids[closer]] if closer in ids else vocabulary.guide.tokenize_bytes(closer)
    thought = Thought(spec.opener.encode(), closer, ids, budget=spec.budget, closing=closing)
    barred = (ids.get(marker.encode()) for marker in json.loads(spec.barred))
    return Grammar(matcher, vocabulary, thought, [one for one in barred if one is not None])
