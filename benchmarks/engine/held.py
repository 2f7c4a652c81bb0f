"""Our engine where every answer is a call that it is held to: what the masks cost beside a forward.

The call is of the family ``hermes``, with a list of whole numbers that is longer than any answer
here: so each token has a mask of the schema, and no answer ends by itself.
"""

from __future__ import annotations

import json

import attrs
from benchmarks.engine.ours import Ours

from antiphon.engines.port import EnginePort, GrammarSpec
from antiphon.engines.torch import TorchEngine
from antiphon.engines.torch.options import EngineOptions
from antiphon.prompting.prompter import TextPrompter
from responsory.segments import Tool, answer_written, family
from responsory.segments.written import as_json
from responsory.values import JSON

NUMBERS: dict[str, JSON] = {"type": "array", "items": {"type": "integer"}, "minItems": 500}
TOOL = Tool(
    "count",
    parameters={
        "type": "object",
        "properties": {"numbers": NUMBERS},
        "required": ["numbers"],
        "additionalProperties": False,
    },
    strict=True,
    place="tools[0].parameters",
)


class OursHeld(Ours):
    """The engine with its vocabulary, and a form for each request."""

    form = GrammarSpec(
        kind="calls",
        text=json.dumps(as_json(answer_written(family("hermes"), [TOOL], forced=True, most=1))),
    )

    def _make(self, settings: EngineOptions) -> EnginePort:
        vocabulary = TextPrompter.load(settings.files).table.to_text()
        return TorchEngine(attrs.evolve(settings, vocabulary=vocabulary))
