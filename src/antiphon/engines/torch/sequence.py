"""One request while it is queued or running."""

from __future__ import annotations

from array import array
from typing import Protocol

import attrs

from antiphon.engines.port import EngineRequest
from antiphon.engines.torch.pages import PageTable, pages_for
from antiphon.engines.torch.prompt_scores import PromptScores

NO_SLOT = -1
"""The slot of a sequence that does not run."""


class Grammar(Protocol):
    """Where a text that is held to a form has come to."""

    @property
    def finished(self) -> bool:
        """Whether the text is complete and nothing may follow."""
        ...

    def advance(self, token: int) -> bool:
        """Take the token drawn last; False if the form does not allow it."""
        ...


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
    """Leading ids whose keys and values are in the cache once the launched steps have run."""
    in_flight: int = 0
    """Tokens that launched steps draw for it and that are not known yet."""
    last_step: int = 0
    """The last step launched that touches its pages and its slot."""
    table: PageTable = attrs.field(factory=PageTable)
    """Its pages; none while it waits."""
    names: list[bytes] = attrs.field(factory=list)
    """Of its full pages, as far as anybody has asked for them: ``prefix_cache``."""
    named: int = 0
    """Pages of its table that the prefix cache knows."""
    hits: int = 0
    """Prompt tokens that it did not have to read itself when it ran first."""
    slot: int = NO_SLOT
    """Its place in what is kept for each running sequence: 0 to the most that run, less 1."""
    grammar: Grammar | None = None
    """What its text is held to."""
    admitted: bool = False
    """Whether it has run: then it comes before all that have not, should it have to wait again."""
    turn: int = 0
    """Its place in the order in which all that run were let in; another one each time."""
    preempted: bool = False
    """Whether it has lost its pages and reads, or will read, once more."""
    ended: bool = False
    """Whether it is over; what launched steps still draw for it is dropped."""
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
    def length(self) -> int:
        """Prompt and output with the tokens in flight: known without knowing them."""
        return len(self.ids) + self.in_flight

    @property
    def pending(self) -> int:
        """Ids that no step has been launched to read; 1 while decoding.

        0 as well if it needs no more: a last token is not read.
        """
        if self.in_flight and self.drawn + self.in_flight >= self.max_tokens:
            return 0
        return self.length - self.cached

    @property
    def decoding(self) -> bool:
        """Whether the model has read all but the token drawn last."""
        return self.pending == 1 and self.length > len(self.request.prompt)

    @property
    def lacking(self) -> int:
        """Pages it still needs for the ids it has."""
        return pages_for(self.length) - len(self.table.pages)
