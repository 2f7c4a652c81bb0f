"""MiniMax M2, DeepSeek V3.2 and V4, and Step 3: functions that are invoked inside a section.

As the model writes them::

    <minimax:tool_call>
    <invoke name="get_weather">
    <parameter name="city">Oslo</parameter>
    </invoke>
    </minimax:tool_call>

    <｜DSML｜function_calls>
    <｜DSML｜invoke name="get_weather">
    <｜DSML｜parameter name="city" string="true">Oslo</｜DSML｜parameter>
    <｜DSML｜parameter name="days" string="false">3</｜DSML｜parameter>
    </｜DSML｜invoke>
    </｜DSML｜function_calls>

(V4 has ``tool_calls`` for ``function_calls``), and::

    <｜tool_calls_begin｜>
    <｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="get_weather">
    <steptml:parameter name="city">Oslo</steptml:parameter></steptml:invoke><｜tool_call_end｜>
    <｜tool_calls_end｜>

(the second and third line in one).
"""

from __future__ import annotations

from responsory.segments.formats.phrase import SPACE, Element, Gap, Phrase
from responsory.segments.formats.section import Section, with_section
from responsory.segments.formats.spec import Spec
from responsory.segments.formats.tagged import TaggedCalls
from responsory.segments.formats.tagged_written import TagsWritten

NAME = Gap("name", r"[^\"<>\n]")
KEY = Gap("key", r"[^\"<>\n]")
FLAG: tuple[Element, ...] = ('" string="', Gap("string", "[a-z]"), '">')


def _invoked(
    prefix: str,
    *,
    flagged: bool = False,
    line: str = "\n",
    after: str = "",
) -> TaggedCalls:
    """``prefix`` of each tag; ``flagged``: parameters tell whether they are strings; ``after``: the
    tag behind that which ends the call."""
    tag, close = f"<{prefix}parameter", f"</{prefix}parameter>"
    end: tuple[Element, ...] = (f"</{prefix}invoke>", *((SPACE, after) if after else ()))
    of_string, of_other = ('" string="true">', '" string="false">') if flagged else ('">', '">')
    return TaggedCalls(
        header=Phrase(NAME, '">'),
        parameter=Phrase(f'{tag} name="', KEY, *(FLAG if flagged else ('">',))),
        value_end=close,
        end=Phrase(*end),
        write=TagsWritten(
            ("", f'">{line}'),
            (f'{tag} name="', of_string, of_other),
            f"{close}{line}",
            f"</{prefix}invoke>{after}\n",
        ),
    )


def _section(prefix: str, form: TaggedCalls, lead: str, closer: str) -> Section:
    """``lead``: what stands before each call."""
    opened = f'{lead}<{prefix}invoke name="'
    first: tuple[Element, ...] = (lead, SPACE) if lead else ()
    again = lead or opened
    inner = form
    if lead:
        inner = TaggedCalls(
            header=Phrase(SPACE, f'<{prefix}invoke name="', NAME, '">'),
            parameter=form.parameter,
            value_end=form.value_end,
            end=form.end,
            write=form.write,
        )
    return Section(
        lead=Phrase(SPACE, *first, f'<{prefix}invoke name="'),
        form=form,
        write=(f"\n{opened}", opened, closer),
        again={again: inner},
        ends=(closer,),
    )


MINIMAX = _section("", _invoked(""), "", "</minimax:tool_call>")
DSML = "｜DSML｜"
STEP_CALL = "<｜tool_call_begin｜>function<｜tool_sep｜>"
STEP = _section(
    "steptml:",
    _invoked("steptml:", line="", after="<｜tool_call_end｜>"),
    STEP_CALL,
    "<｜tool_calls_end｜>",
)


def _dsml(name: str) -> Section:
    return _section(DSML, _invoked(DSML, flagged=True), "", f"</{DSML}{name}>")


def minimax_m2_calls(spec: Spec) -> Spec:
    """``spec`` with calls of MiniMax M2."""
    return with_section(spec, "<minimax:tool_call>", MINIMAX)


def deepseek_v32_calls(spec: Spec) -> Spec:
    """``spec`` with calls of DeepSeek V3.2."""
    return with_section(spec, f"<{DSML}function_calls>", _dsml("function_calls"))


def deepseek_v4_calls(spec: Spec) -> Spec:
    """``spec`` with calls of DeepSeek V4."""
    return with_section(spec, f"<{DSML}tool_calls>", _dsml("tool_calls"))


def step3_calls(spec: Spec) -> Spec:
    """``spec`` with calls of Step 3."""
    return with_section(spec, "<｜tool_calls_begin｜>", STEP)
