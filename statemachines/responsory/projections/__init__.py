"""What clients see of a log: three streams, three bodies, and the tail for a resumed reader.

Every stream has ``feed(choice, events)``, which returns whole SSE frames in order, and ``ended``,
True once ``[DONE]`` was among them.
"""

from __future__ import annotations

from responsory.projections.bodies import chat_body, completion_body, response_body
from responsory.projections.chat import ChatStream
from responsory.projections.choices import error_body
from responsory.projections.completions import CompletionsStream
from responsory.projections.reasoning import ReasoningField
from responsory.projections.responses import ResponsesStream
from responsory.projections.tail import resume, tail

__all__ = [
    "ChatStream",
    "CompletionsStream",
    "ReasoningField",
    "ResponsesStream",
    "chat_body",
    "completion_body",
    "error_body",
    "response_body",
    "resume",
    "tail",
]
