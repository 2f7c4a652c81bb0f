"""A ``StepFrame`` as one message.

The body is a head of 104 bytes, then the columns in the port's order, then what only some rows
have. Nothing is pickled, no number of a column is an object on the way, and what decodes is
encoded to the same bytes again.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable

import attrs

from antiphon.engines.codec.columns import Reader, Writer
from antiphon.engines.codec.envelope import CodecError, Kind, seal
from antiphon.engines.codec.sparse import (
    read_errors,
    read_prompts,
    read_spellings,
    read_texts,
    write_errors,
    write_prompts,
    write_spellings,
    write_texts,
)
from antiphon.engines.port import Finish, Gauges, StepFrame

HEAD = struct.Struct("<QQIIIIIIBBxxxxxx7q")
"""step, t_ns; R, T; rows with an error, prompt logprobs, text, spelling; top_n, which of the
optional columns are there; the gauges in the order of their class."""
HAS_LOGPROB, HAS_TOP_ID, HAS_TOP_LP = 1, 2, 4
GAUGES = tuple(field.name for field in attrs.fields(Gauges))
FILL = slice(42, 48)
"""Of the head, what holds nothing."""
FINISHES = bytes(Finish)


def encode_frame(frame: StepFrame) -> bytes:
    """The message. Raises ``struct.error`` or ``OverflowError`` for numbers beyond their column."""
    gauges, writer = frame.gauges, Writer()
    present = (
        (frame.logprob is not None) * HAS_LOGPROB
        + (frame.top_id is not None) * HAS_TOP_ID
        + (frame.top_lp is not None) * HAS_TOP_LP
    )
    head = HEAD.pack(
        frame.step,
        frame.t_ns,
        len(frame.key),
        len(frame.token),
        len(frame.error),
        len(frame.prompt_lp),
        len(frame.text),
        len(frame.spelling),
        frame.top_n,
        present,
        *(getattr(gauges, name) for name in GAUGES),
    )
    writer.raw(head)
    for column in (
        frame.key, frame.n_new, frame.token, frame.finish, frame.stop_id, frame.cached
    ):  # fmt: skip
        writer.column(column)
    if frame.error:
        write_errors(writer, frame.error)
    for numbers in (frame.logprob, frame.top_id, frame.top_lp):
        if numbers is not None:
            writer.column(numbers)
    if frame.prompt_lp:
        write_prompts(writer, frame.prompt_lp)
    if frame.text:
        write_texts(writer, frame.text)
    if frame.spelling:
        write_spellings(writer, frame.spelling)
    return seal(Kind.FRAME, writer.body())


def decode_frame(body: memoryview) -> StepFrame:
    """The frame of a body. Raises ``CodecError``."""
    reader = Reader(body)
    step, t_ns, rows, tokens, *rest = reader.struct(HEAD)
    errors, prompts, texts, spellings, top_n, present, *gauges = rest
    if present > HAS_LOGPROB + HAS_TOP_ID + HAS_TOP_LP:
        raise CodecError("a frame has columns that are not known")
    if any(body[FILL]):
        raise CodecError("what fills the head up is not zero")
    key = reader.column("I", rows)
    n_new = reader.column("H", rows)
    if sum(n_new) != tokens:
        raise CodecError(f"the rows have {sum(n_new)} tokens, and the frame {tokens}")
    token = reader.column("I", tokens)
    finish = reader.column("B", rows)
    ends = finish.tobytes()
    if strange := ends.translate(None, FINISHES):
        raise CodecError(f"a row ends in {max(strange)}, which is not known")
    stop_id, cached = reader.column("i", rows), reader.column("i", rows)
    error = read_errors(reader, errors) if errors else {}
    logprob: array[float] | None = None
    top_id: array[int] | None = None
    top_lp: array[float] | None = None
    if present & HAS_LOGPROB:
        logprob = reader.column("f", tokens)
    if present & HAS_TOP_ID:
        top_id = reader.column("I", tokens * top_n)
    if present & HAS_TOP_LP:
        top_lp = reader.column("f", tokens * top_n)
    prompt_lp = read_prompts(reader, prompts) if prompts else {}
    text = read_texts(reader, texts) if texts else {}
    spelling = read_spellings(reader, spellings) if spellings else {}
    reader.end()
    _check_ends(ends, error)
    for sparse in (prompt_lp, text, spelling):
        _check_rows(sparse, rows)
    return StepFrame(
        step=step,
        t_ns=t_ns,
        key=key,
        n_new=n_new,
        token=token,
        finish=finish,
        stop_id=stop_id,
        cached=cached,
        error=error,
        logprob=logprob,
        top_n=top_n,
        top_id=top_id,
        top_lp=top_lp,
        prompt_lp=prompt_lp,
        text=text,
        spelling=spelling,
        gauges=Gauges(**dict(zip(GAUGES, gauges, strict=True))),
    )


def _check_ends(ends: bytes, error: Iterable[int]) -> None:
    """The rows that finish with ERROR are those that say why."""
    named = list(error)
    if ends.count(Finish.ERROR) != len(named) or any(
        row >= len(ends) or ends[row] != Finish.ERROR for row in named
    ):
        raise CodecError("the errors are not those of the rows that ended in one")


def _check_rows(sparse: Iterable[int], rows: int) -> None:
    if any(row >= rows for row in sparse):
        raise CodecError("something is said of a row that is not there")
