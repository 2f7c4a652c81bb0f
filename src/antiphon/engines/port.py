"""The engine port: token ids in, one ``StepFrame`` per engine step out.

Everything above the port sees ids only; text, stop strings, reasoning and tools belong to
``prompting`` and ``responsory``. The contract, checked by one shared test class for every engine:

a. every submitted key gets **exactly one** terminal row, whatever happens;
b. no row follows it;
c. the rows of one key are in token order;
d. an abort before the first token still gives a terminal row;
e. the death of an engine gives ``ERROR`` rows for all open keys, then ``info.healthy`` is False;
f. frames are never dropped or reordered.
"""

from __future__ import annotations

from array import array
from collections.abc import AsyncIterator, Mapping, Sequence
from enum import IntEnum
from typing import Literal, Protocol

import attrs

NO_STOP_ID = -1
NOT_REPORTED = -1
PAD_ID = 2**32 - 1


class Finish(IntEnum):
    """Why a row is the last of its key; ``NONE`` on every other row."""

    NONE = 0
    STOP = 1
    LENGTH = 2
    ABORT = 3
    ERROR = 4
    CONTENT_FILTER = 5


class Capability:
    """Names an engine may list in ``EngineInfo.capabilities``; absent ones are refused with 400."""

    SEED = "seed"
    LOGPROBS = "logprobs"
    PROMPT_LOGPROBS = "prompt_logprobs"
    GRAMMAR = "grammar"
    """The text of an answer can be held to a ``GrammarSpec``."""
    FORCED_CALLS = "forced_calls"
    """Calls can be forced, limited to some tools, and held to the schemas of their tools."""
    THOUGHT_BUDGET = "thought_budget"
    """The end of reasoning can be forced after so many tokens."""
    LOGIT_BIAS = "logit_bias"
    MIN_TOKENS = "min_tokens"
    MIN_P = "min_p"
    PENALTIES = "penalties"
    ALLOWED_IDS = "allowed_ids"
    PRIORITY = "priority"


class EngineStartError(Exception):
    """The engine could not load; the message is one line that a person can act on."""


@attrs.define(kw_only=True)
class EngineInfo:
    """What an engine is and can do.

    After start only ``healthy`` and ``back_ns`` change, and ``kv_pages`` where an engine that is
    started again finds other memory.
    """

    name: str
    model_id: str
    vocab_size: int
    """Width of the logits; every prompt id is below it."""
    context_length: int
    """Prompt plus output, in tokens."""
    eos_ids: frozenset[int]
    max_running: int
    page_size: int
    kv_pages: int
    dtype: str
    device: str
    capabilities: frozenset[str]
    healthy: bool = True
    back_ns: int | None = None
    """While it is not healthy: when it may be again, by the monotonic clock. None: nobody knows."""


@attrs.frozen(kw_only=True)
class GrammarSpec:
    """What the output must match."""

    kind: Literal["json_schema", "json_object", "regex", "choice", "lark", "gbnf", "calls", "any"]
    text: str
    """A JSON Schema, nothing (any JSON object), a regular expression, a JSON array of the strings
    to choose from, a grammar in the dialect of Lark or of GBNF, the form of an answer with calls
    (nested lists, as ``responsory.segments.written.as_json`` makes them), or nothing: any text."""
    strict: bool = False
    """Whether a schema is refused for what the output cannot be held to; else that is left out."""
    closer: str = ""
    """The marker that ends what stands before, a model's reasoning, which may be any text; empty:
    nothing does."""
    opener: str = ""
    """The marker that such text begins with, if there is any; empty: the prompt has begun it."""
    barred: str = "[]"
    """A JSON array of markers that do not come in it, where each is one token: those of calls. With
    the kind ``any`` they do not come behind it either: those that would begin another."""
    budget: int | None = None
    """Tokens after which its end is forced; None: it is as long as the model likes."""


@attrs.define(kw_only=True)
class EngineRequest:
    """One sequence. The n choices of a call are n requests that share ``group``."""

    key: int
    """u32, chosen by the caller, unique while the port lives; the only name used in frames."""
    id: str
    """``T-<choice>``: for logs and remote engines."""
    group: int
    """Shared by the siblings of a call, which are submitted one right after another."""
    model: str
    """The served model's id; an engine of a single model ignores it."""
    choice: int = 0
    """Index among the siblings of the call; replay plays that choice of its recording."""
    prompt: array[int]
    """Token ids (typecode ``I``), BOS included if the model wants one."""
    max_tokens: int
    """0 is legal: the prompt is read, and a terminal ``LENGTH`` row without a token follows."""
    min_tokens: int = 0
    stop_ids: tuple[int, ...] = ()
    """Ids that end the output besides the model's eos ids."""
    ignore_eos: bool = False
    temperature: float = 1.0
    """Below 1e-5 is greedy."""
    top_p: float = 1.0
    top_k: int = 0
    """0 is off."""
    min_p: float = 0.0
    seed: int = 0
    """u64, always set: the HTTP layer draws one when the client gave none."""
    presence: float = 0.0
    frequency: float = 0.0
    repetition: float = 1.0
    logit_bias: Mapping[int, float] = attrs.field(factory=dict)
    allowed_ids: tuple[int, ...] | None = None
    logprobs: int | None = None
    """None: none. k: the drawn token and the top k (0..20)."""
    prompt_logprobs: int | None = None
    """None: none. k: every prompt token but the first, and the top k (0..20) of each."""
    grammar: GrammarSpec | None = None
    cache_salt: bytes = b""
    """Requests of different salts never share cached pages, so that tenants cannot time each
    other's prompts."""
    priority: int = 0
    """i32. Of those that wait, the lower comes first, and the earlier among equals. The siblings
    of a call have one priority. What runs already is not disturbed."""
    arrival_ns: int = 0


@attrs.define(kw_only=True)
class TokenSpelling:
    """A recorded token's own text and logprob: replay only, where ids are opaque.

    ``top`` holds (text, logprob, bytes) of the recorded alternatives, best first.
    """

    text: str
    data: bytes
    logprob: float
    top: tuple[tuple[str, float, bytes], ...] = ()


@attrs.define(kw_only=True)
class PromptLogprobs:
    """Logprobs of a prompt of P tokens; the first token has none."""

    logprob: array[float]
    """f32[P - 1]"""
    top_n: int
    top_id: array[int]
    """u32[(P - 1) * top_n], best first, padded with ``PAD_ID``."""
    top_lp: array[float]
    """f32[(P - 1) * top_n]"""


@attrs.define(kw_only=True)
class EngineError:
    """Why a row ended in ``Finish.ERROR``. ``message`` is the engine's own and goes to our log.

    Codes: ``context_length_exceeded``, ``grammar_invalid``, ``engine_overloaded``,
    ``unsupported``, ``engine_failed``; any other is treated as ``engine_failed``.
    """

    code: str
    message: str


@attrs.define(kw_only=True)
class Gauges:
    """The engine's load when a frame was made, after all that the frame says.

    Nothing brings news between frames. So the last gauges are behind while requests wait that no
    frame mentions (a replayed one is accepted only when it starts), and while prompts are read
    beside which nothing is said: ``pages_free``, ``batch_tokens`` and ``step_us`` then are those of
    an earlier step. Requests on their way to the engine's thread are counted by nobody.
    """

    running: int = 0
    """Requests that were let in and have not ended."""
    waiting: int = 0
    """Requests that were taken, and preempted ones that have to come in again."""
    pages_free: int = 0
    pages_cached: int = 0
    """Of the free pages, those whose text is found again if it comes before they are reused."""
    batch_tokens: int = 0
    preemptions: int = 0
    step_us: int = 0


@attrs.define(kw_only=True)
class StepFrame:
    """One engine step: columns over R rows (requests that moved) and T new tokens. Without a row
    it brings its gauges alone.

    The first row of a key that is no refusal is its **accept row**, normally with ``n_new`` 0 and
    ``finish`` NONE: sent when the scheduler took the request off its inbox and found it runnable.
    The 200 waits for it or for a refusal, never for prefill. (Later rows of a recording may have
    ``n_new`` 0 as well: text that goes on with the token before it.)
    """

    step: int
    t_ns: int
    """Monotonic clock."""
    key: array[int]
    """u32[R]"""
    n_new: array[int]
    """u16[R]: new tokens of the row; 0 is also legal on a terminal row."""
    token: array[int]
    """u32[T]: all new tokens, row after row. The id that stopped a row is not among them."""
    finish: array[int]
    """u8[R]: ``Finish``."""
    stop_id: array[int]
    """i32[R]: the id that stopped the row, else ``NO_STOP_ID``; usage counts it."""
    cached: array[int]
    """i32[R]: prompt tokens served from cache, on the first row of a key that has a token, or on
    its terminal row if there is none; else ``NOT_REPORTED``. It is not known before: a request may
    wait for pages that another is about to fill. ERROR and ABORT rows may leave it out."""
    error: Mapping[int, EngineError] = attrs.field(factory=dict)
    """row -> error, for rows that finish with ERROR."""
    logprob: array[float] | None = None
    """f32[T]: raw logprob of each token; NaN where its request asked for none."""
    top_n: int = 0
    top_id: array[int] | None = None
    """u32[T * top_n], best first, padded with ``PAD_ID``."""
    top_lp: array[float] | None = None
    """f32[T * top_n]"""
    prompt_lp: Mapping[int, PromptLogprobs] = attrs.field(factory=dict)
    """row -> the prompt's logprobs, once per key that asked for them: on its first row with a
    token, or on its terminal row if there is no token. An aborted key may get none."""
    text: Mapping[int, str] = attrs.field(factory=dict)
    """row -> the recording's own text for the row (replay only), used instead of detokenising."""
    spelling: Mapping[int, Sequence[TokenSpelling]] = attrs.field(factory=dict)
    """row -> one spelling per new token (replay of recordings with logprobs only): their bytes are
    the text then, of which ``text`` may have come in other pieces."""
    gauges: Gauges = attrs.field(factory=Gauges)


class EnginePort(Protocol):
    """What every engine offers. All methods are called on the event loop's thread."""

    async def start(self) -> EngineInfo:
        """Load and become ready. Raises ``EngineStartError`` with the reason."""
        ...

    def submit(self, request: EngineRequest) -> None:
        """Take a request. Never blocks and never raises: refusals arrive as a terminal row.

        Once ``frames`` has ended there is nothing to arrive in, and the request is lost.
        """
        ...

    def abort(self, keys: Sequence[int]) -> None:
        """End these requests within one step. Unknown and finished keys are ignored."""
        ...

    def frames(self) -> AsyncIterator[StepFrame]:
        """The frames, in order; ends after ``stop`` or the engine's death. One consumer only."""
        ...

    async def stop(self, grace_s: float) -> None:
        """Take no new work; after ``grace_s`` seconds every open request ends ``ABORT``."""
        ...
