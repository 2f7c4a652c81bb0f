"""DeepSeek V3 and R1, and V3.1: sections of calls with a header each.

As the model writes them::

    <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather
    ```json
    {"city": "Oslo"}
    ```<｜tool▁call▁end｜><｜tool▁calls▁end｜>

    <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>ping<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>
"""

from __future__ import annotations

from responsory.segments.formats.headed import HeadedJson
from responsory.segments.formats.phrase import SPACE, Gap, Maybe, Phrase
from responsory.segments.formats.section import Section, with_section
from responsory.segments.formats.spec import Spec

CALLS = "<｜tool▁calls▁begin｜>"
CALLS_END = "<｜tool▁calls▁end｜>"
CALL = "<｜tool▁call▁begin｜>"
CALL_END = "<｜tool▁call▁end｜>"
SEP = "<｜tool▁sep｜>"
NAME = Gap("name", r"[^\s<>｜`]")

FENCED = HeadedJson(
    header=Phrase(SPACE, "function", SPACE, SEP, SPACE, NAME, SPACE, "```json"),
    end=Phrase(SPACE, Maybe(("```", SPACE)), CALL_END),
    closer=CALL_END,
    write=(f"function{SEP}", "\n```json\n", f"\n```{CALL_END}"),
)
PLAIN = HeadedJson(
    header=Phrase(SPACE, NAME, SPACE, SEP),
    end=Phrase(SPACE, CALL_END),
    closer=CALL_END,
    write=("", SEP, CALL_END),
)


def _section(form: HeadedJson, between: str) -> Section:
    return Section(
        lead=Phrase(SPACE, CALL),
        form=form,
        write=(CALL, f"{between}{CALL}", CALLS_END),
        again={CALL: form},
        ends=(CALLS_END,),
    )


def deepseek_v3_calls(spec: Spec) -> Spec:
    """``spec`` with calls as of V3 and R1."""
    return with_section(spec, CALLS, _section(FENCED, "\n"))


def deepseek_v31_calls(spec: Spec) -> Spec:
    """``spec`` with calls as of V3.1."""
    return with_section(spec, CALLS, _section(PLAIN, ""))
