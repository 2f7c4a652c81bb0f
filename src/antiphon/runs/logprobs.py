"""What an engine says of its tokens, as the log probabilities that are shown."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from antiphon.engines.port import PAD_ID, PromptLogprobs, StepFrame, TokenSpelling
from antiphon.prompting.detokenizer import Detokenizer
from responsory import Logprob, TopLogprob


def drawn_logprob(
    table: Detokenizer, frame: StepFrame, at: int, logprob: float, *, ids: bool
) -> Logprob:
    """The entry of the frame's token ``at``. ``ids``: tokens are shown by their ids."""
    token = frame.token[at]
    return Logprob(
        token=table.token_text(token),
        logprob=logprob,
        data=table.bytes_of(token),
        top=_alternatives(table, frame.top_id, frame.top_lp, at, frame.top_n, ids=ids),
        id=token if ids else None,
    )


def prompt_logprobs(
    table: Detokenizer,
    prompt: Sequence[int],
    logprobs: PromptLogprobs,
    unseen: int,
    *,
    ids: bool,
) -> tuple[Logprob, ...]:
    """The entries of an echoed prompt. Nothing stands before its first token, so that has none.

    The first ``unseen`` tokens are not in the text that is shown: their entries have no bytes.
    """
    entries = []
    for at, token in enumerate(prompt):
        top: tuple[TopLogprob, ...] = ()
        if at > 0:
            top = _alternatives(
                table, logprobs.top_id, logprobs.top_lp, at - 1, logprobs.top_n, ids=ids
            )
        entries.append(
            Logprob(
                token=table.token_text(token),
                logprob=None if at == 0 else logprobs.logprob[at - 1],
                data=b"" if at < unseen else table.bytes_of(token),
                top=top,
                id=token if ids else None,
            )
        )
    return tuple(entries)


def recorded_logprob(token: TokenSpelling, token_id: int, *, ids: bool) -> Logprob:
    """The entry of a recorded token. Of its alternatives only itself has an id that is known."""
    top = [
        TopLogprob(*each, id=token_id if ids and each[2] == token.data else None)
        for each in token.top
    ]
    return Logprob(
        token=token.text,
        logprob=token.logprob,
        data=token.data,
        top=tuple(top),
        id=token_id if ids else None,
    )


def _alternatives(
    table: Detokenizer,
    tokens: array[int] | None,
    logprobs: array[float] | None,
    at: int,
    count: int,
    *,
    ids: bool,
) -> tuple[TopLogprob, ...]:
    """Row ``at`` of a table of ``count`` columns, as far as it is filled."""
    if tokens is None or logprobs is None:
        return ()
    top = []
    for column in range(at * count, (at + 1) * count):
        if (token := tokens[column]) == PAD_ID:
            break
        top.append(
            TopLogprob(
                token=table.token_text(token),
                logprob=logprobs[column],
                data=table.bytes_of(token),
                id=token if ids else None,
            )
        )
    return tuple(top)
