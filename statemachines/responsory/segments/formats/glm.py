"""GLM 4.5 and 4.6, and 4.7: the name, and then keys and values between tags.

As the model writes them::

    <tool_call>get_weather
    <arg_key>city</arg_key>
    <arg_value>Oslo</arg_value>
    </tool_call>
    <tool_call>get_weather<arg_key>city</arg_key><arg_value>Oslo</arg_value></tool_call>
"""

from __future__ import annotations

from responsory.segments.formats.phrase import SPACE, Either, Gap, Phrase
from responsory.segments.formats.spec import Spec, with_calls
from responsory.segments.formats.tagged import TaggedCalls
from responsory.segments.formats.tagged_written import TagsWritten

OPENER = "<tool_call>"
CLOSER = "</tool_call>"
KEY = "<arg_key>"
REST = (SPACE, Gap("key", r"[^<>\n]"), "</arg_key>", SPACE, "<arg_value>")
PARAMETER = Phrase(KEY, *REST)


def _form(line: str) -> TaggedCalls:
    value = f"</arg_key>{line}<arg_value>"
    return TaggedCalls(
        header=Phrase(SPACE, Gap("name", r"[^\s<>\"]"), SPACE, Either("then", (KEY, CLOSER))),
        parameter=PARAMETER,
        value_end="</arg_value>",
        end=Phrase(CLOSER),
        write=TagsWritten(("", line), (KEY, value, value), f"</arg_value>{line}", CLOSER),
        between=line,
        first=(KEY, Phrase(*REST)),
    )


def glm45_calls(spec: Spec) -> Spec:
    """``spec`` with calls as of GLM 4.5."""
    return with_calls(spec, OPENER, _form("\n"))


def glm47_calls(spec: Spec) -> Spec:
    """``spec`` with calls as of GLM 4.7, which has no line ends in them."""
    return with_calls(spec, OPENER, _form(""))
