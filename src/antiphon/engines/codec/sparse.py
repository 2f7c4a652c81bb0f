"""What only some rows of a frame have: a column of their numbers, then the values."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence

from antiphon.engines.codec.columns import Reader, Writer, of_text, to_text
from antiphon.engines.codec.envelope import CodecError
from antiphon.engines.port import EngineError, PromptLogprobs, TokenSpelling


def write_errors(writer: Writer, errors: Mapping[int, EngineError]) -> None:
    """row, then code and message."""
    writer.numbers("I", list(errors))
    pairs = ((error.code, error.message) for error in errors.values())
    writer.blobs([of_text(text) for pair in pairs for text in pair])


def read_errors(reader: Reader, count: int) -> dict[int, EngineError]:
    """What ``write_errors`` wrote. Raises ``CodecError``, as all here do."""
    rows = _rows(reader, count)
    texts = [to_text(blob) for blob in reader.blobs(2 * count)]
    return {
        row: EngineError(code=code, message=message)
        for row, code, message in zip(rows, texts[::2], texts[1::2], strict=True)
    }


def write_texts(writer: Writer, texts: Mapping[int, str]) -> None:
    """row, then text."""
    writer.numbers("I", list(texts))
    writer.blobs([of_text(text) for text in texts.values()])


def read_texts(reader: Reader, count: int) -> dict[int, str]:
    """What ``write_texts`` wrote."""
    rows = _rows(reader, count)
    return dict(zip(rows, map(to_text, reader.blobs(count)), strict=True))


def write_prompts(writer: Writer, prompts: Mapping[int, PromptLogprobs]) -> None:
    """row, tokens and alternatives of each; then its three columns."""
    writer.numbers("I", list(prompts))
    writer.numbers("I", [len(block.logprob) for block in prompts.values()])
    writer.numbers("I", [block.top_n for block in prompts.values()])
    for block in prompts.values():
        writer.column(block.logprob)
        writer.column(block.top_id)
        writer.column(block.top_lp)


def read_prompts(reader: Reader, count: int) -> dict[int, PromptLogprobs]:
    """What ``write_prompts`` wrote."""
    rows = _rows(reader, count)
    lengths, tops = reader.column("I", count), reader.column("I", count)
    return {
        row: PromptLogprobs(
            logprob=reader.column("f", length),
            top_n=top_n,
            top_id=reader.column("I", length * top_n),
            top_lp=reader.column("f", length * top_n),
        )
        for row, length, top_n in zip(rows, lengths, tops, strict=True)
    }


def write_spellings(writer: Writer, spelling: Mapping[int, Sequence[TokenSpelling]]) -> None:
    """row and tokens of each; then, of all tokens in a row, how many alternatives each has, the
    logprobs, and text and bytes."""
    spelled = [one for row in spelling.values() for one in row]
    writer.numbers("I", list(spelling))
    writer.numbers("I", [len(row) for row in spelling.values()])
    writer.numbers("I", [len(one.top) for one in spelled])
    logprobs: list[float] = []
    blobs: list[bytes] = []
    for one in spelled:
        for text, logprob, data in ((one.text, one.logprob, one.data), *one.top):
            logprobs.append(logprob)
            blobs += (of_text(text), data)
    writer.numbers("d", logprobs)
    writer.blobs(blobs)


def read_spellings(reader: Reader, count: int) -> dict[int, Sequence[TokenSpelling]]:
    """What ``write_spellings`` wrote."""
    rows, tokens = _rows(reader, count), reader.column("I", count)
    tops = reader.column("I", sum(tokens))
    total = len(tops) + sum(tops)
    logprobs, blobs = reader.column("d", total), reader.blobs(2 * total)
    texts = map(to_text, blobs[::2])
    entries = zip(texts, logprobs, blobs[1::2], strict=True)
    left = iter(tops)

    def spelled() -> TokenSpelling:
        alternatives = next(left)
        text, logprob, data = next(entries)
        top = tuple(next(entries) for _ in range(alternatives))
        return TokenSpelling(text=text, data=data, logprob=logprob, top=top)

    return {
        row: [spelled() for _ in range(length)] for row, length in zip(rows, tokens, strict=True)
    }


def _rows(reader: Reader, count: int) -> array[int]:
    rows = reader.column("I", count)
    if len(set(rows)) != count:
        raise CodecError("a row is named twice")
    return rows
