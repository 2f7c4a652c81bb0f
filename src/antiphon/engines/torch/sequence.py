"""One request while it is queued or running."""

from __future__ import annotations

from array import array

import attrs

from antiphon.engines.port import EngineRequest
from antiphon.engines.torch.pages import PageTable, pages_for
from antiphon.engines.torch.prompt_scores import PromptScores


@attrs.define(eq=False)
class Sequence:
    """Prompt and output ids, how far the KV cache has them, and where."""

    request: EngineRequest
    max_tokens: int
    """The request's own limit, cut to what the context leaves."""
    stopping_ids: frozenset[int]
    """The ids that end it: the model's eos ids unless ignored, and the request's."""
    ids: array[int] = attrs.field(factory=lambda: array("I"))
    """Prompt, then output."""
    cached: int = 0
    """Leading ids whose keys and values are in the cache."""
    table: PageTable = attrs.field(factory=PageTable)
    """Its pages; none while it waits."""
    admitted: bool = False
    """Whether it has run: then it comes before all that have not, should it have to wait again."""
    scores: PromptScores | None = None
    """Its prompt's logprobs as far as they are known; None if nobody asked, or once they are sent.
    """

    @classmethod
    def of(cls, request: EngineRequest, context_length: int, eos_ids: frozenset[int]) -> Sequence:
        """The sequence of a request whose prompt fits the context."""
        top_n = request.prompt_logprobs
        return cls(
            request=request,
            max_tokens=min(request.max_tokens, context_length - len(request.prompt)),
            stopping_ids=frozenset(request.stop_ids)
            | (frozenset() if request.ignore_eos else eos_ids),
            ids=array("I", request.prompt),
            scores=None if top_n is None else PromptScores(top_n),
        )

    @property
    def key(self) -> int:
        """The request's key."""
        return self.request.key

    @property
    def output(self) -> array[int]:
        """The ids drawn so far."""
        return self.ids[len(self.request.prompt) :]

    @property
    def drawn(self) -> int:
        """How many ids were drawn so far."""
        return len(self.ids) - len(self.request.prompt)

    @property
    def pending(self) -> int:
        """Ids that the model has not read yet; 1 while decoding."""
        return len(self.ids) - self.cached

    @property
    def decoding(self) -> bool:
        """Whether the model has read all but the token drawn last."""
        return self.drawn > 0 and self.pending == 1

    @property
    def lacking(self) -> int:
        """Pages it still needs for the ids it has."""
        return pages_for(len(self.ids)) - len(self.table.pages)
