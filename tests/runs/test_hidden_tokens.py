"""Special tokens that are not shown: each has its logprob, in streams and bodies alike."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from antiphon.engines.port import Finish
from antiphon.prompting.detokenizer import Detokenizer
from antiphon.runs.answers import completions_answer
from antiphon.runs.plan import Sampling
from antiphon.runs.run import Run
from runs.scripted import Stage, body

# No ordinary tokens spell a hidden one: in one delta nothing tells the two apart.
FACE = "😀".encode()
TABLE = [b"a", b"<|x|>", b"<", b"|x", b"b ", FACE[:2], FACE[2:], b"e", b"<|end|>", b"st"]
HIDDEN = frozenset({1, 8})


def played(ids: list[int], borders: list[int], *, stream: bool, stop: tuple[str, ...]) -> Run:
    """A run whose engine drew these tokens, in steps that end at ``borders``."""
    stage = Stage()
    stage.model.prompter.detokenizer = lambda **_: Detokenizer(TABLE, HIDDEN)  # type: ignore[method-assign]  # a table of ten
    run = stage.open(
        completions_answer(stream=stream, choices=1, per_prompt=1, logprobs=True, token_ids=True),
        sampling=Sampling(seed=0, logprobs=0),
        tell_tokens=True,
        prompt_ids=True,
        stop=stop,
    )
    stage.accept(run)
    key = run.choices[0].key
    for start, end in pairwise([0, *borders, len(ids)]):
        if not run.ended:
            values = [-float(at) for at in range(start, end)]
            finish = Finish.LENGTH if end == len(ids) else Finish.NONE
            stage.step(
                lambda frame: frame.row(key, ids[start:end], logprobs=values, finish=finish)  # noqa: B023  # called at once
            )
    return run


def starts(ids: list[int]) -> list[int]:
    """Where each token begins: in the character that holds its first byte."""
    shown = [b"" if token in HIDDEN else TABLE[token] for token in ids]
    detokenizer, lengths = Detokenizer(shown), [0]
    for at in range(len(ids)):
        lengths.append(lengths[-1] + len(detokenizer.feed(at)))
    return lengths[:-1]


@given(st.lists(st.integers(0, len(TABLE) - 1), min_size=1, max_size=10),
       st.sets(st.integers(1, 9)), st.sampled_from([(), ("a",), ("st",)]))  # fmt: skip
def test_all_tokens_have_logprobs(ids: list[int], cuts: set[int], stop: tuple[str, ...]) -> None:
    borders = sorted(cut for cut in cuts if cut < len(ids))
    choice: dict[str, Any] = body(played(ids, borders, stream=False, stop=stop))["choices"][0]
    told = choice["token_ids"]
    logprobs = choice["logprobs"] or {"tokens": [], "token_logprobs": [], "text_offset": []}
    if choice["stop_reason"] is None:
        assert told == ids
        assert logprobs["token_logprobs"] == [-float(at) for at in range(len(ids))]
    elif told:
        listed = [int(-value) for value in logprobs["token_logprobs"]]
        assert listed == [*range(len(listed))]
        assert [ids[at] for at in listed] == told[: len(listed)]
    assert logprobs["tokens"] == [
        TABLE[token].decode(errors="replace") for token in ids[: len(logprobs["tokens"])]
    ]
    assert logprobs["text_offset"] == starts(ids)[: len(logprobs["tokens"])]
    frames = played(ids, borders, stream=True, stop=stop).frames
    parts = [json.loads(frame[6:])["choices"][0] for frame in frames[:-1]]
    streamed = [part["logprobs"] for part in parts if part["logprobs"]]
    for name in ("tokens", "token_logprobs", "text_offset"):
        assert [value for each in streamed for value in each[name]] == logprobs[name]
    assert [token for part in parts for token in part["token_ids"]] == told
