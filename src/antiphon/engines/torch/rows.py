"""From what a step did to the rows of its frame: columns to columns, no object for a token."""

from __future__ import annotations

from array import array

from antiphon.engines.frame_builder import FrameBuilder
from antiphon.engines.port import NOT_REPORTED, PromptLogprobs
from antiphon.engines.torch.drawn import Drawn
from antiphon.engines.torch.step import Booked


def add_rows(frame: FrameBuilder, booked: Booked, drawn: Drawn) -> None:
    """Append all rows of a step; logprobs only for tokens that are part of an output.

    The first row of a sequence after its accept row also tells what its prompt had from the cache,
    and carries the prompt's logprobs: the prompt has been read.
    """
    cached = array("i")
    scores: dict[int, PromptLogprobs] = {}
    for row, (sequence, n_new) in enumerate(zip(booked.sequence, booked.n_new, strict=True)):
        cached.append(sequence.hits if sequence.drawn == n_new else NOT_REPORTED)
        if sequence.scores is not None:
            scores[row] = sequence.scores.block()
            sequence.scores = None
    logprob, top_id, top_lp = _said(booked, drawn)
    frame.columns(
        key=[sequence.request.key for sequence in booked.sequence],
        n_new=booked.n_new,
        token=booked.token,
        finish=booked.finish,
        stop_id=booked.stop_id,
        cached=cached,
        logprob=logprob,
        top_id=top_id,
        top_lp=top_lp,
        error={row: drawn.refused[draw] for row, draw in booked.refused.items()},
        prompt_lp=scores,
    )


def _said(booked: Booked, drawn: Drawn) -> tuple[list[float] | None, list[int], list[float]]:
    """The logprobs and alternatives of the tokens that are part of an output."""
    every, width = drawn.logprob, drawn.top_n
    if every is None or len(booked.drawn) == len(drawn.token):
        return every, drawn.top_id, drawn.top_lp
    places = [range(draw * width, (draw + 1) * width) for draw in booked.drawn]
    return (
        [every[draw] for draw in booked.drawn],
        [drawn.top_id[place] for alternatives in places for place in alternatives],
        [drawn.top_lp[place] for alternatives in places for place in alternatives],
    )
