"""Hypothesis strategies: commands, whole lives of a response, texts cut into pieces."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from responsory.commands import (
    Accept,
    CallClosed,
    CallInput,
    CallOpened,
    Cancel,
    Command,
    Fail,
    Finish,
    Reasoning,
    Refusal,
    Start,
    Text,
)
from responsory.errors import IllegalTransition
from responsory.log import EventLog
from responsory.response import Response
from responsory.values import Logprob, Tokens, TopLogprob, Usage

if TYPE_CHECKING:
    from collections.abc import Callable

texts = st.text(
    st.characters(exclude_categories=["Cs"]) | st.sampled_from('"\\\n\r\u2028\x00\x7f😀é'),
    min_size=1,
    max_size=6,
)
counts = st.integers(0, 1000)
usages = st.builds(Usage, counts, counts, counts, counts, counts)
ids = st.text("abcXYZ019._-", min_size=1, max_size=12)
floats = st.floats(-50, 0)
token_ids = st.lists(st.integers(0, 300), max_size=3).map(tuple)
tokens = st.none() | st.builds(Tokens, token_ids, counts)
"""What a delta tells of its tokens, now and then. The counts of a log grow, see ``logs``."""
identities = st.none() | st.integers(0, 300)
tops = st.builds(
    lambda text, value, token: TopLogprob(text, value, text.encode(), token),
    texts, floats, identities,
)  # fmt: skip


@st.composite
def logprobs_of(draw: st.DrawFn, text: str) -> tuple[Logprob, ...]:
    """Tokens that spell exactly ``text``, cut anywhere between bytes."""
    data = text.encode()
    cuts = sorted(draw(st.sets(st.integers(1, max(1, len(data) - 1)), max_size=4)))
    borders = [0, *(cut for cut in cuts if cut < len(data)), len(data)]
    return tuple(
        Logprob(
            data[start:end].decode(errors="replace"),
            draw(floats),
            data[start:end],
            tuple(draw(st.lists(tops, max_size=2))),
            draw(identities),
        )
        for start, end in itertools.pairwise(borders)
    )


@st.composite
def text_commands(draw: st.DrawFn) -> Text:
    """A Text with or without logprobs, phase and tokens."""
    text = draw(texts)
    logprobs = draw(logprobs_of(text)) if draw(st.booleans()) else ()
    phase = draw(st.sampled_from([None, None, None, "commentary", "final_answer"]))
    return Text(text, logprobs, phase, draw(tokens))  # type: ignore[arg-type]  # one of the phases


call_ids = st.none() | ids
kinds: st.SearchStrategy[Any] = st.sampled_from(["function", "custom"])
reasons: st.SearchStrategy[Any] = st.sampled_from(["stop", "length", "content_filter"])
stops = st.none() | texts | st.integers(0, 9)

accepts = st.builds(
    Accept,
    ids,
    st.integers(0, 2**40),
    st.booleans(),
    st.fixed_dictionaries({"model": ids, "instructions": st.none() | texts}),
)
bodies: st.SearchStrategy[Command] = st.one_of(
    text_commands(),
    text_commands(),
    st.builds(Refusal, texts, tokens),
    st.builds(Reasoning, texts, tokens),
    st.builds(CallOpened, kinds, ids, call_ids),
    st.builds(CallInput, texts, tokens),
    st.builds(CallClosed),
)
endings: st.SearchStrategy[Command] = st.one_of(
    st.builds(Finish, reasons, usages, st.integers(0, 2**40), stops, token_ids),
    st.builds(Fail, ids, texts, usages),
    st.builds(Cancel, usages),
)
commands: st.SearchStrategy[Command] = st.one_of(accepts, st.builds(Start), bodies, endings)


def counted(word: list[Command]) -> list[Command]:
    """The same commands, with counts that a model could have."""
    output, result = 0, list[Command]()
    for command in word:
        if isinstance(command, Text | Refusal | Reasoning | CallInput) and command.tokens:
            output += 1
            told = Tokens(command.tokens.ids, output)
            if isinstance(command, Text):
                command = Text(command.text, command.logprobs, command.phase, told)
            else:
                command = type(command)(command.text, told)
        elif isinstance(command, Finish) and command.usage.output_tokens < output:
            usage = Usage(command.usage.input_tokens, output)
            at, stop = command.completed_at, command.stop
            command = Finish(command.reason, usage, at, stop, command.ids)
        elif isinstance(command, Cancel) and command.usage.output_tokens < output:
            command = Cancel(Usage(command.usage.input_tokens, output))
        result.append(command)
    return result


@st.composite
def logs(
    draw: st.DrawFn,
    *,
    ended: bool = True,
    allowed: Callable[[Command], bool] = lambda _: True,
) -> tuple[EventLog, list[int]]:
    """A log and the lengths of its groups. Commands that the state refuses are left out, as are
    those that ``allowed`` rejects. What is counted grows by one with each command that counts."""
    machine, log, groups = Response(), EventLog(), []
    first = draw(accepts)
    word: list[Command] = [first]
    if first.background and draw(st.integers(0, 5)):
        word.append(Start())
    word += draw(st.lists(bodies, max_size=12))
    if ended:
        word.append(draw(endings.filter(allowed)))
    for command in counted(word):
        if not allowed(command):
            continue
        try:
            group = machine.receive(command)
        except IllegalTransition:
            continue
        groups.append(len(group))
        log.extend(group)
    if ended and not machine.terminal:
        group = machine.receive(draw(st.builds(Cancel, usages)))
        groups.append(len(group))
        log.extend(group)
    return log, groups


@st.composite
def splits(draw: st.DrawFn, text: str) -> list[str]:
    """``text`` cut at random places between characters."""
    cuts = sorted(draw(st.sets(st.integers(0, len(text)), max_size=6)))
    borders = [0, *cuts, len(text)]
    return [text[start:end] for start, end in itertools.pairwise(borders)]
