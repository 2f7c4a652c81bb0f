"""Which modules are mutated, and the test files that judge each, the quickest killer first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

CELLS = "cells"
"""The cells of the table in ``transitions``, each in turn (``mutation.cells``)."""

MACHINE = (
    "test_life.py",
    "test_moves.py",
    "test_tokens.py",
    "test_table.py",
    "test_misuse.py",
    "test_errors.py",
    "test_self_description.py",
    "test_replay.py",
)
SEGMENTS = (
    "test_quick_ways.py",
    "test_token_counts.py",
    "test_reasoning.py",
    "test_segments.py",
    "test_misuse.py",
)
REPLAY = ("test_life.py", "test_replay.py", "test_log.py", "test_mutations.py")
WRITTEN = ("test_cuts.py", "test_written_compacted.py")
STORED = ("test_fields.py", "test_header.py", "test_log.py", "test_lines.py", "test_upcasts.py")

TESTS: Mapping[str, Sequence[str]] = {
    CELLS: MACHINE,
    "states": ("test_table.py",),
    "table": ("test_table.py", "test_registration.py"),
    "transitions": MACHINE,
    "moves": MACHINE,
    "extended": MACHINE,
    "response": MACHINE,
    "payloads": MACHINE,
    "ids": ("test_frames.py", "test_chunks.py", "test_life.py"),
    "values": (
        "test_checks.py",
        "test_misuse.py",
        "test_fields.py",
        "test_frames.py",
        "test_chunks.py",
    ),
    "errors": ("test_errors.py", "test_misuse.py", "test_table.py", "test_log.py"),
    "grammar": REPLAY,
    "compaction": (*WRITTEN, "test_tokens.py", "test_restore.py", *REPLAY),
    "cuts": (*WRITTEN, "test_offsets.py"),
    "log": ("test_self_description.py", *STORED, *WRITTEN),
    "header": ("test_header.py",),
    "lines": STORED,
    "upcasts": ("test_upcasts.py", "test_self_description.py", "test_log.py"),
    "rows": (*STORED, "test_rows.py"),
    "checks": ("test_checks.py", "test_fields.py", "test_misuse.py", "test_rows.py"),
    "row_values": (*STORED, "test_rows.py"),
    "testing.invariants": ("test_life.py", "test_replay.py", "test_mutations.py"),
    "segments.machine": SEGMENTS,
    "segments.markup": SEGMENTS,
    "segments.tokens": SEGMENTS,
    "segments.stops": SEGMENTS,
    "segments.pieces": SEGMENTS,
    "segments.shown": SEGMENTS,
    "segments.formats.spec": SEGMENTS,
    "segments.formats.think": SEGMENTS,
}
"""By the name of the module inside the package."""

FAMILIES: Sequence[str] = (
    "State.NEW State.QUEUED State.IDLE State.MESSAGE_TEXT State.MESSAGE_REFUSAL"
    " State.REASONING_TEXT State.CALL State.CALL_INPUT State.COMPLETED State.INCOMPLETE"
    " State.FAILED State.CANCELLED",
    "ev.Created ev.Queued ev.InProgress",
    "ev.ItemAdded ev.PartAdded",
    "ev.TextDelta ev.RefusalDelta ev.ReasoningDelta ev.InputDelta",
    "ev.TextDone ev.RefusalDone ev.ReasoningDone ev.InputDone",
    "ev.PartDone ev.ItemDone",
    "ev.Completed ev.Incomplete ev.Errored ev.Failed ev.Cancelled",
    "Text Refusal Reasoning",
    "CallOpened CallInput CallClosed",
    "Accept Start",
    "Finish Fail Cancel",
    "NEW QUEUED IDLE RUNNING EVERY TERMINAL OPEN CALLS",
    "any all",
    "min max",
    ".lstrip .rstrip",
    ".startswith .endswith",
    ".popleft .pop",
)
"""Names that could be taken for one another (``mutation.operators.Families``)."""
