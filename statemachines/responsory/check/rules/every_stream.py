"""Rules of every stream."""

from __future__ import annotations

from responsory.check.rules.rule import EVERY_API, EVERYBODY, OWN, Rule

RULES = (
    Rule(
        "sse-stream",
        EVERYBODY,
        EVERY_API,
        "The first line is a comment or a field of server-sent events.",
    ),
    Rule(
        "has-events",
        EVERYBODY,
        EVERY_API,
        "There is at least one event.",
    ),
    Rule(
        "frame-size",
        EVERYBODY,
        EVERY_API,
        "An event, like a comment, has at most 64 MiB.",
    ),
    Rule(
        "utf8",
        EVERYBODY,
        EVERY_API,
        "The bytes are UTF-8, without NUL.",
    ),
    Rule(
        "sse-field",
        EVERYBODY,
        EVERY_API,
        "A line is blank, a comment, or one of the fields `event`, `data`, `id` and `retry`.",
    ),
    Rule(
        "frame-whole",
        EVERYBODY,
        EVERY_API,
        "A blank line ends the last event: without it, no client sees that event.",
    ),
    Rule(
        "data-present",
        EVERYBODY,
        EVERY_API,
        "An event with a name has data: without it, no client sees that event.",
    ),
    Rule(
        "json-object",
        EVERYBODY,
        EVERY_API,
        "Data is `[DONE]` or one JSON object.",
    ),
    Rule(
        "i-json",
        EVERYBODY,
        EVERY_API,
        "Every reader reads the JSON alike (RFC 7493): no key twice, no half surrogate pair, "
        "no number beyond a double, at most 200 levels.",
    ),
    Rule(
        "first-event",
        EVERYBODY,
        EVERY_API,
        "The stream shows which API it is of before its answer begins, or is an error alone; in "
        "this library's own profiles `[DONE]` alone is a cancelled call.",
    ),
    Rule(
        "object-keys",
        EVERYBODY,
        EVERY_API,
        "The keys that a client needs are there, and of the right kind.",
    ),
    Rule(
        "ids-stable",
        EVERYBODY,
        EVERY_API,
        "The response or call has one id, and so has each item, everywhere.",
    ),
    Rule(
        "index-dense",
        EVERYBODY,
        EVERY_API,
        "Items, parts and tool calls are numbered 0, 1, 2, … in the order in which they begin.",
    ),
    Rule(
        "usage-sums",
        EVERYBODY,
        EVERY_API,
        "`total_tokens` is the sum of the input and output tokens.",
    ),
    Rule(
        "error-last",
        EVERYBODY,
        EVERY_API,
        "Nothing follows an error but `response.failed`, once, and `[DONE]`.",
    ),
    Rule(
        "done-last",
        EVERYBODY,
        EVERY_API,
        "Nothing follows `[DONE]`.",
    ),
    Rule(
        "plain-framing",
        OWN,
        EVERY_API,
        "Lines end in LF; there is no byte order mark; an event is an `event: ` line, for "
        "Responses alone, and one `data: ` line; comments stand between events.",
    ),
    Rule(
        "compact-json",
        OWN,
        EVERY_API,
        "The JSON has no white space between tokens, and escapes only what it must.",
    ),
    Rule(
        "event-line",
        OWN,
        EVERY_API,
        "A Responses event has an `event:` line, a chunk has none.",
    ),
    Rule(
        "exact-keys",
        OWN,
        EVERY_API,
        "Every key of the wire format is there, of its kind, and no other; but what a snapshot "
        "of a response tells of the request, beside `model`, is the server's choice.",
    ),
    Rule(
        "ids-derived",
        OWN,
        EVERY_API,
        "Ids are the API's prefixes with one common tail, and for items the output index.",
    ),
    Rule(
        "obfuscation-key",
        OWN,
        EVERY_API,
        "Obfuscation is on every event that can have it or on none: on each delta of text, "
        "reasoning and function arguments; on each chunk that has a choice.",
    ),
    Rule(
        "no-empty-delta",
        OWN,
        EVERY_API,
        "A delta carries something.",
    ),
    Rule(
        "done-due",
        OWN,
        EVERY_API,
        "`[DONE]` ends the stream, whatever happened to the answer.",
    ),
)
