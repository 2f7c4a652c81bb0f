"""The lifecycle of an LLM response: commands in, events out, one table in between.

Sans-I/O, clock-free, attrs only. ``Response`` is the machine, ``EventLog`` its log;
``responsory.segments`` turns an engine's text into commands, and ``responsory.projections`` turns
events into what clients of the Responses, Chat Completions and Completions APIs see.
"""

from __future__ import annotations

from responsory.commands import Command
from responsory.errors import CursorExpired, IllegalTransition, LogError, ResponsoryError
from responsory.events import Event
from responsory.log import EventLog
from responsory.response import Response
from responsory.states import State
from responsory.values import Logprob, Tokens, TopLogprob, Usage

__all__ = [
    "Command",
    "CursorExpired",
    "Event",
    "EventLog",
    "IllegalTransition",
    "LogError",
    "Logprob",
    "Response",
    "ResponsoryError",
    "State",
    "Tokens",
    "TopLogprob",
    "Usage",
]
