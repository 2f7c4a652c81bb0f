"""InternLM 2.5 and 3: a JSON envelope between two tags, of which the first names the plugins.

As the model writes it::

    <|action_start|> <|plugin|>
    {"name": "get_weather", "parameters": {"city": "Oslo"}}<|action_end|>
"""

from __future__ import annotations

from responsory.segments.formats.envelope import JsonEnvelope
from responsory.segments.formats.phrase import SPACE, Phrase
from responsory.segments.formats.section import Section, with_section
from responsory.segments.formats.spec import Spec

END = "<|action_end|>"
FORM = JsonEnvelope(END, arguments=("parameters", "arguments"), lead="", between="")
SECTION = Section(
    lead=Phrase(SPACE, "<|plugin|>"),
    form=FORM,
    write=(" <|plugin|>\n", "<|action_start|> <|plugin|>\n", ""),
    again={},
)


def internlm_calls(spec: Spec) -> Spec:
    """``spec`` with such calls."""
    return with_section(spec, "<|action_start|>", SECTION)
