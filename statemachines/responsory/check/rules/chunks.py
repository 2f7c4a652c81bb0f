"""Rules of Chat Completions and Completions chunks."""

from __future__ import annotations

from responsory.check.rules.rule import CHAT, CHUNKS, COMPLETIONS, EVERYBODY, FOREIGN, OWN, Rule

RULES = (
    Rule(
        "object-name",
        EVERYBODY,
        CHUNKS,
        "`object` names the chunk on every chunk.",
    ),
    Rule(
        "finish-once",
        EVERYBODY,
        CHUNKS,
        "A choice has one finish reason, and nothing of it follows.",
    ),
    Rule(
        "usage-last",
        EVERYBODY,
        CHUNKS,
        "The chunk without choices that has the usage comes last; only `[DONE]` follows.",
    ),
    Rule(
        "head-stable",
        OWN,
        CHUNKS,
        "`created` and `model` are the same on every chunk.",
    ),
    Rule(
        "usage-key",
        OWN,
        CHUNKS,
        "`usage` is a key of every chunk or of none; before the last chunk it is null on all "
        "or counts on all.",
    ),
    Rule(
        "usage-grows",
        OWN,
        CHUNKS,
        "Counts never decrease from chunk to chunk, nor do those of the last.",
    ),
    Rule(
        "token-ids-key",
        OWN,
        CHUNKS,
        "`token_ids` is a key of the choice on every chunk or on none. Where it is, "
        "`prompt_token_ids` is there once: on the first chunk of the call in chat, of each "
        "choice in completions.",
    ),
    Rule(
        "usage-due",
        OWN,
        CHUNKS,
        "Where chunks have the key `usage` and it is null, the last chunk has the usage.",
    ),
    Rule(
        "finish-reason",
        OWN,
        CHUNKS,
        "The reason is `stop`, `length`, `content_filter`, or in place of `stop` `tool_calls` "
        "where the choice has calls.",
    ),
    Rule(
        "logprobs-key",
        OWN,
        CHUNKS,
        "Log probabilities are on every chunk with text or on none.",
    ),
    Rule(
        "finish-due",
        FOREIGN,
        CHUNKS,
        "Every choice has a finish reason before the stream ends without an error.",
    ),
    Rule(
        "one-choice-per-chunk",
        OWN,
        CHUNKS,
        "A chunk is about one choice, or about none.",
    ),
    Rule(
        "role-due",
        EVERYBODY,
        CHAT,
        "A choice's first chunk has its role.",
    ),
    Rule(
        "role-once",
        OWN,
        CHAT,
        "No chunk of a choice but its first has the role.",
    ),
    Rule(
        "choices-dense",
        OWN,
        CHAT,
        "Choices are numbered 0, 1, 2, … in the order in which they begin.",
    ),
    Rule(
        "tool-fragment-shape",
        EVERYBODY,
        CHAT,
        "A call's first fragment has its id and name, and no later one has; all have the one body "
        "of the call's type.",
    ),
    Rule(
        "roles-first",
        OWN,
        CHAT,
        "The role chunks of all choices come first, and carry nothing else.",
    ),
    Rule(
        "one-channel-per-delta",
        OWN,
        CHAT,
        "A delta carries content, refusal, reasoning or a tool call, never two of them.",
    ),
    Rule(
        "reasoning-names",
        OWN,
        CHAT,
        "Every delta of a choice calls reasoning by the same names: `reasoning_content`, "
        "`reasoning`, or both with the same value.",
    ),
    Rule(
        "calls-serial",
        OWN,
        CHAT,
        "A fragment belongs to the call that was opened last.",
    ),
    Rule(
        "finish-alone",
        OWN,
        CHAT,
        "The chunk with the finish reason has an empty delta.",
    ),
    Rule(
        "logprobs-parallel",
        EVERYBODY,
        COMPLETIONS,
        "The arrays of `logprobs` are equally long.",
    ),
    Rule(
        "text-offset",
        OWN,
        COMPLETIONS,
        "`text_offset` never decreases and never passes the end of the text.",
    ),
)
