"""Rules of the Responses stream."""

from __future__ import annotations

from responsory.check.rules.rule import CALLING, EVERYBODY, FOREIGN, OWN, RESPONSES, Rule

RULES = (
    Rule(
        "event-name",
        EVERYBODY,
        RESPONSES,
        "An event's name is the `type` in its data.",
    ),
    Rule(
        "event-known",
        EVERYBODY,
        RESPONSES,
        "An event's type is one of the API, or belongs to an item of an unknown type, or is a "
        "server's own: then it does not begin with `response.`.",
    ),
    Rule(
        "seq-dense",
        EVERYBODY,
        RESPONSES,
        "`sequence_number` is 0, 1, 2, …; a server may leave it out of all events alone.",
    ),
    Rule(
        "created-first",
        EVERYBODY,
        RESPONSES,
        "`response.created` comes before all else of the response, and once.",
    ),
    Rule(
        "status-order",
        EVERYBODY,
        RESPONSES,
        "`response.queued` and `response.in_progress` come in this order, at most once each, "
        "before the first item.",
    ),
    Rule(
        "status-of-event",
        EVERYBODY,
        RESPONSES,
        "The response's `status` is the one that the event tells.",
    ),
    Rule(
        "items-paired",
        EVERYBODY,
        RESPONSES,
        "Each item has one `output_item.added` and then one `output_item.done`, before the "
        "response is completed or incomplete; all its other events are between them.",
    ),
    Rule(
        "parts-paired",
        EVERYBODY,
        RESPONSES,
        "Within an item: a part is added, then its deltas, its `done`, `content_part.done`; a "
        "call has its deltas and then its `done`. Each kind of part has its own events.",
    ),
    Rule(
        "call-id-stable",
        EVERYBODY,
        RESPONSES,
        "A call's `call_id` and `name` are the same everywhere.",
    ),
    Rule(
        "call-id-unique",
        EVERYBODY,
        CALLING,
        "No two calls of a response or a choice have one id (`call_id` in Responses).",
    ),
    Rule(
        "item-id-unique",
        EVERYBODY,
        RESPONSES,
        "No two items of a response have one `id`.",
    ),
    Rule(
        "deltas-sum",
        EVERYBODY,
        RESPONSES,
        "The deltas of a part or call spell the text of its `done`.",
    ),
    Rule(
        "done-equals-streamed",
        EVERYBODY,
        RESPONSES,
        "What `content_part.done` and `output_item.done` show is what was streamed.",
    ),
    Rule(
        "final-equals-streamed",
        EVERYBODY,
        RESPONSES,
        "The `output` of a completed or incomplete response is the items that were streamed, "
        "in order; encrypted content may be encrypted anew.",
    ),
    Rule(
        "item-ended",
        EVERYBODY,
        RESPONSES,
        "An item that is done is no longer in progress.",
    ),
    Rule(
        "one-terminal",
        EVERYBODY,
        RESPONSES,
        "There is one terminal event, and no event follows it.",
    ),
    Rule(
        "failed-has-error",
        EVERYBODY,
        RESPONSES,
        "A failed response has an error.",
    ),
    Rule(
        "own-types",
        OWN,
        RESPONSES,
        "Items are messages, reasoning, function and custom tool calls, with parts of their kind.",
    ),
    Rule(
        "own-events",
        OWN,
        RESPONSES,
        "There are no events of summaries, annotations, hosted tools or keep-alive, and none of "
        "other servers' own.",
    ),
    Rule(
        "in-progress-due",
        OWN,
        RESPONSES,
        "`response.created` is followed by `response.queued` or `response.in_progress`, as "
        "its status says; nothing begins before `response.in_progress`.",
    ),
    Rule(
        "items-serial",
        OWN,
        RESPONSES,
        "One item is open at a time.",
    ),
    Rule(
        "part-due",
        OWN,
        RESPONSES,
        "A message has at least one part, reasoning exactly one.",
    ),
    Rule(
        "zero-values",
        OWN,
        RESPONSES,
        "What is added is empty and in progress.",
    ),
    Rule(
        "logprobs-sum",
        OWN,
        RESPONSES,
        "The logprobs of the deltas are the logprobs of the `done`.",
    ),
    Rule(
        "done-exact",
        OWN,
        RESPONSES,
        "What is done differs from what was streamed in its status alone, and in that the "
        "encrypted content of reasoning is there.",
    ),
    Rule(
        "item-status",
        OWN,
        RESPONSES,
        "An item is `incomplete` if the response ended in it without completing, else "
        "`completed`: so an incomplete item is the last, and after a message or reasoning "
        "that is `completed` comes another item or `response.completed`.",
    ),
    Rule(
        "ciphertext-stable",
        OWN,
        RESPONSES,
        "Encrypted content is the same wherever the item is shown once it is done.",
    ),
    Rule(
        "error-then-failed",
        OWN,
        RESPONSES,
        "`error` comes right before `response.failed`, which never comes without it, and both "
        "tell the same.",
    ),
    Rule(
        "failure-closes",
        OWN,
        RESPONSES,
        "A failure first closes what is open, and its `output` is what was streamed.",
    ),
    Rule(
        "cancel-closes",
        OWN,
        RESPONSES,
        "Only a cancelled response ends without a terminal event: nothing is open then, and "
        "its last item, if any, is incomplete or a call.",
    ),
    Rule(
        "echo-stable",
        OWN,
        RESPONSES,
        "What a snapshot tells of the request is the same in every snapshot.",
    ),
    Rule(
        "output-at-end",
        OWN,
        RESPONSES,
        "`output` is empty and `usage` null before the terminal event.",
    ),
    Rule(
        "output-not-empty",
        OWN,
        RESPONSES,
        "A completed or incomplete response has at least one item.",
    ),
    Rule(
        "usage-on-terminal",
        OWN,
        RESPONSES,
        "Every terminal event has `usage`.",
    ),
    Rule(
        "terminal-details",
        OWN,
        RESPONSES,
        "`error` is set when failed, `incomplete_details` when incomplete, `completed_at` "
        "only when completed.",
    ),
    Rule(
        "terminal-due",
        FOREIGN,
        RESPONSES,
        "The stream ends with a terminal event, or with an error.",
    ),
)
