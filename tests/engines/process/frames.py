"""Random frames and requests."""

from __future__ import annotations

import math
import struct
from array import array
from typing import Any

import attrs
from hypothesis import strategies as st

from antiphon.engines.port import (
    EngineError,
    EngineRequest,
    Finish,
    Gauges,
    GrammarSpec,
    PromptLogprobs,
    StepFrame,
    TokenSpelling,
)

U32 = st.integers(0, 2**32 - 1)
I32 = st.integers(-(2**31), 2**31 - 1)
U64 = st.integers(0, 2**64 - 1)
I64 = st.integers(-(2**63), 2**63 - 1)
F32 = st.floats(width=32)
TEXT = st.text(st.characters(), max_size=12)
"""Halves of surrogate pairs included."""


def columns(code: str, numbers: st.SearchStrategy[Any], size: int) -> st.SearchStrategy[Any]:
    return st.lists(numbers, min_size=size, max_size=size).map(lambda items: array(code, items))


@st.composite
def prompts(draw: st.DrawFn) -> PromptLogprobs:
    length, top_n = draw(st.integers(0, 4)), draw(st.integers(0, 3))
    return PromptLogprobs(
        logprob=draw(columns("f", F32, length)),
        top_n=top_n,
        top_id=draw(columns("I", U32, length * top_n)),
        top_lp=draw(columns("f", F32, length * top_n)),
    )


SPELLINGS = st.builds(
    TokenSpelling,
    text=TEXT,
    data=st.binary(max_size=6),
    logprob=st.floats(),
    top=st.lists(st.tuples(TEXT, st.floats(), st.binary(max_size=6)), max_size=3).map(tuple),
)


@st.composite
def frames(draw: st.DrawFn) -> StepFrame:
    """Any frame that the port allows, and many that no engine sends."""
    counts = draw(st.lists(st.integers(0, 3) | st.just(40), max_size=6))
    rows, tokens = len(counts), sum(counts)
    finish = draw(columns("B", st.sampled_from(sorted(Finish)), rows))
    top_n = draw(st.integers(0, 3))
    errors = st.builds(EngineError, code=TEXT, message=TEXT)
    some_rows = st.integers(0, rows - 1) if rows else st.nothing()

    def sparse(values: st.SearchStrategy[Any]) -> Any:
        return draw(st.dictionaries(some_rows, values, max_size=rows))

    return StepFrame(
        step=draw(U64),
        t_ns=draw(U64),
        key=draw(columns("I", U32, rows)),
        n_new=array("H", counts),
        token=draw(columns("I", U32, tokens)),
        finish=finish,
        stop_id=draw(columns("i", I32, rows)),
        cached=draw(columns("i", I32, rows)),
        error={row: draw(errors) for row in range(rows) if finish[row] == Finish.ERROR},
        logprob=draw(st.none() | columns("f", F32, tokens)),
        top_n=top_n,
        top_id=draw(st.none() | columns("I", U32, tokens * top_n)),
        top_lp=draw(st.none() | columns("f", F32, tokens * top_n)),
        prompt_lp=sparse(prompts()),
        text=sparse(TEXT),
        spelling=sparse(st.lists(SPELLINGS, max_size=3)),
        gauges=Gauges(**{field.name: draw(I64) for field in attrs.fields(Gauges)}),
    )


IDS = st.lists(U32, max_size=5)
REQUESTS = st.builds(
    EngineRequest,
    key=U32,
    id=TEXT,
    group=U32,
    model=TEXT,
    choice=st.integers(0, 127),
    prompt=IDS.map(lambda ids: array("I", ids)),
    max_tokens=st.integers(0, 2**31),
    min_tokens=st.integers(0, 2**31),
    stop_ids=IDS.map(tuple),
    ignore_eos=st.booleans(),
    temperature=st.floats() | st.integers(0, 2),
    top_p=st.floats(),
    top_k=I32,
    min_p=st.floats(),
    seed=U64,
    presence=st.floats(),
    frequency=st.floats(),
    repetition=st.floats(),
    logit_bias=st.dictionaries(U32, st.floats(), max_size=4),
    allowed_ids=st.none() | IDS.map(tuple),
    logprobs=st.none() | st.integers(0, 20),
    prompt_logprobs=st.none() | st.integers(0, 20),
    grammar=st.none()
    | st.builds(
        GrammarSpec,
        kind=st.sampled_from(["json_schema", "regex", "choice"]),
        text=TEXT,
        strict=st.booleans(),
        closer=TEXT,
        opener=TEXT,
    ),
    cache_salt=st.binary(max_size=8),
    priority=I32,
    arrival_ns=U64,
)


def exact(value: Any) -> Any:
    """The value as something that is equal to another only if every bit is."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else struct.pack("<d", value)
    if isinstance(value, array):
        return value.typecode, value.tobytes()
    if attrs.has(type(value)):
        return {
            field.name: exact(getattr(value, field.name)) for field in attrs.fields(type(value))
        }
    if isinstance(value, dict):
        return {key: exact(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [exact(one) for one in value]
    return value
