"""How a loaded model marks its thought and its calls, told from its chat template and vocabulary.

A template that shows an earlier turn writes it as the model does: whichever family reads that turn
back as the thought, or the call, that went in is the model's. Of several that do, it is the one
whose own way to write the call is nearest. A template that does not show it may still name the
markers, in what it tells the model to do or where it takes them out of earlier turns; then that
decides, if the markers are all there. Nothing is guessed from a model's name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from difflib import SequenceMatcher

import attrs

from antiphon.errors import StartupError
from antiphon.prompting.probes import (
    ANSWER,
    ARGUMENTS,
    LONG_ID,
    NAME,
    QUESTION,
    SHORT_ID,
    THOUGHT,
    called,
    turn_of,
    written,
)
from antiphon.prompting.probes import TOOL as SHOWN
from antiphon.prompting.prompter import TextPrompter
from antiphon.prompting.template_traits import REASONING_KEYS
from antiphon.runs.call_example import TOOL, example, fixed_parts
from responsory.commands import CallClosed, CallInput, CallOpened, Reasoning, Text
from responsory.segments import Piece, Segmenter, Spec, Tools, family
from responsory.segments.formats import CALLS, REASONING

_MARKERS = re.compile(r"(<\|[\w ]+\|>\s*)+")
"""Such as a template writes around a content that is empty."""

_MARKER = re.compile(r"[<\[][^<>\[\]{}\s\0]{2,}[>\]]")

NONE = "none"
AUTO = "auto"
TOOL_FORMATS = tuple(CALLS)
REASONING_FORMATS = tuple(name for name in REASONING if name != "plain")


@attrs.frozen(kw_only=True)
class ModelFormats:
    """The names of the families of reasoning and of calls, ``none`` for no such thing, and for each
    how that is known."""

    reasoning: str = NONE
    reasoning_source: str = ""
    calls: str = NONE
    calls_source: str = ""

    def spec(self, *, reasoning: bool = True) -> Spec:
        """Both families in one; ``reasoning`` False: thought is text like any other."""
        return family(_joined(self.reasoning, self.calls), reasoning=reasoning)

    def forced(self) -> Spec:
        """The same for calls that the model is held to and has no form of its own for."""
        thinks = NONE if self.reasoning == "harmony" else self.reasoning
        return family(_joined(thinks, "forced"))


def _joined(reasoning: str, calls: str) -> str:
    if reasoning == calls == "harmony":
        return "harmony"
    thinks = "plain" if reasoning == NONE else reasoning
    return thinks if calls == NONE else f"{thinks}+{calls}"


def formats_of(
    prompter: TextPrompter, *, tool_format: str = AUTO, reasoning_format: str = AUTO
) -> ModelFormats:
    """Those that are asked for, and for ``auto`` those that are found.

    Raises ``StartupError`` for two that cannot go together.
    """
    calls = (tool_format, "asked for")
    if tool_format == AUTO:
        calls = call_family(prompter)
    thinks = (reasoning_format, "asked for")
    if reasoning_format == AUTO:
        # Channels are of both kinds, and known by the one if they are by the other.
        thinks = calls if calls[0] == "harmony" else reasoning_family(prompter)
    made = ModelFormats(
        reasoning=thinks[0], reasoning_source=thinks[1], calls=calls[0], calls_source=calls[1]
    )
    try:
        made.spec()
    except (KeyError, ValueError) as failure:
        raise StartupError(
            f"--reasoning-format {made.reasoning} and --tool-format {made.calls} do not go "
            f"together: {failure.args[0]}"
        ) from None
    return made


def call_family(prompter: TextPrompter) -> tuple[str, str]:
    """The name of the family that writes calls so, and how that is known."""
    for turn in dict.fromkeys(_called_turns(prompter)):
        found = _nearest(turn) or _nearest(_MARKERS.sub("", turn, count=1))
        if found is not None:
            return found, "the template writes calls so"
    if not prompter.traits.shows_tools:
        return NONE, "the template shows no tools"
    source = prompter.template_source
    if named := _named(lambda marker: marker in source):
        return named, "the template names its markers"
    if named := _named(prompter.has_token):
        return named, "its markers are tokens"
    return NONE, "the template shows tools, and its calls are of no known family"


def _called_turns(prompter: TextPrompter) -> Iterator[str]:
    tools = [SHOWN] if prompter.traits.shows_tools else None
    for given in (ARGUMENTS, json.dumps(ARGUMENTS)):
        for call_id in (LONG_ID, SHORT_ID):
            for content in ("", None):
                turn = turn_of(prompter, called(call_id, given, content), tools=tools)
                if turn is not None and NAME in turn:
                    yield turn


def _nearest(turn: str) -> str | None:
    """The family that reads the turn as the probe's call and writes it most like that."""
    likeness = {
        name: (
            _likeness("".join(example(spec).split()), "".join(turn.split())),
            _likeness(example(spec), turn),
        )
        for name in CALLS
        if _reads_call(spec := family(name), turn)
    }
    return max(likeness, key=lambda name: likeness[name], default=None)


def _likeness(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


def _reads_call(spec: Spec, turn: str) -> bool:
    names, arguments, text, closed = [], "", "", 0
    segmenter = Segmenter(spec, tools=Tools([TOOL]))
    for segment in [*segmenter.feed([Piece(turn)]), *segmenter.finish()]:
        if isinstance(segment, CallOpened):
            names.append(segment.name)
        elif isinstance(segment, CallInput):
            arguments += segment.text
        elif isinstance(segment, CallClosed):
            closed += 1
        else:
            text += segment.text
    if names != [NAME] or not closed or NAME in text:
        return False
    try:
        return bool(json.loads(arguments) == ARGUMENTS)
    except ValueError:
        return False


def _named(known: Callable[[str], bool]) -> str | None:
    """The family of which all markers are known, with most of them."""
    best, most = None, 0
    for name in CALLS:
        markers = _MARKER.findall("\0".join(fixed_parts(family(name))))
        if markers and all(map(known, markers)):
            size = sum(map(len, markers))
            if size > most:
                best, most = name, size
    return best


def reasoning_family(prompter: TextPrompter) -> tuple[str, str]:
    """The name of the family that marks thought so, and how that is known."""
    asked = written(prompter, [QUESTION])
    if asked is None:
        return NONE, "there is no template, or none that shows a question"
    if asked.rstrip().endswith("<think>"):
        return "think_prefilled", "the template opens the thought"
    for key in REASONING_KEYS:
        reply = {"role": "assistant", "content": ANSWER, key: THOUGHT}
        turn = turn_of(prompter, reply)
        if turn is None or THOUGHT not in turn:
            continue
        for name in REASONING_FORMATS:
            if name != "think_prefilled" and _reads_thought(REASONING[name], turn):
                return name, "the template writes thought so"
    source = prompter.template_source
    for name, (openers, closers) in _marks().items():
        # Of a thought that is left out of earlier turns, templates know where it ends.
        begun = name == "think" or any(opener in source for opener in openers)
        if begun and any(closer in source for closer in closers):
            return name, "the template names its markers"
    return NONE, "the template tells of no thought"


def _reads_thought(spec: Spec, turn: str) -> bool:
    thought, text = "", ""
    segmenter = Segmenter(spec)
    for segment in [*segmenter.feed([Piece(turn)]), *segmenter.finish()]:
        if isinstance(segment, Reasoning):
            thought += segment.text
        elif isinstance(segment, Text):
            text += segment.text
    return thought.strip() == THOUGHT and ANSWER in text and THOUGHT not in text


def _marks() -> Mapping[str, tuple[list[str], list[str]]]:
    """Of each family of reasoning, the markers that begin a thought and those that end one."""
    found = {}
    for name in REASONING_FORMATS:
        modes = REASONING[name].modes
        pairs = [
            (marker, mode.channel, modes[after].channel)
            for mode in modes.values()
            for marker, after in mode.markers.items()
        ]
        openers = [mark for mark, before, after in pairs if (before, after) == (Text, Reasoning)]
        closers = [mark for mark, before, after in pairs if (before, after) == (Reasoning, Text)]
        if name != "think_prefilled":
            found[name] = (openers, closers)
    return found
