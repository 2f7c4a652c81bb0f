"""A model's chat template: a conversation in, the text of a prompt out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from jinja2 import TemplateSyntaxError, meta

from antiphon.errors import InvalidRequest, StartupError, shortened
from antiphon.models.files import ModelFiles
from antiphon.prompting.message_content import as_parts, as_text
from antiphon.prompting.template_clock import MAX_CHARACTERS, TooMuch, time_limit
from antiphon.prompting.template_environment import make_environment
from antiphon.prompting.template_limits import limited
from antiphon.prompting.template_source import read_source

Message = Mapping[str, Any]

_PROBE = "content-form-probe"


class ChatTemplate:
    """A compiled template with the model's own variables (``bos_token`` and the like).

    ``content_form`` is the form of message content that the template reads: a string, or a list
    of parts if strings do not come out of it. Raises ``StartupError`` if ``source`` is not a
    template, or none that comes to an end.
    """

    def __init__(
        self,
        source: str,
        *,
        variables: Mapping[str, str] | None = None,
        now: Callable[[], datetime] = datetime.now,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.source = source
        self._variables = dict(variables or {})
        self._clock = clock
        environment = make_environment(now)
        try:
            self._template = environment.from_string(limited(environment.parse(source)))
            names = meta.find_undeclared_variables(environment.parse(source))
        except TemplateSyntaxError as failure:
            raise _broken(f"line {failure.lineno}: {failure.message}") from failure
        except Exception as failure:  # it becomes Python, whose compiler has words of its own
            raise _broken(f"{type(failure).__name__}: {failure}") from failure
        self.names = frozenset(names)
        """Every variable that the template reads."""
        self.content_form: Literal["text", "parts"] = "text"
        if not self._shows_probe():
            self.content_form = "parts"
            if not self._shows_probe():
                self.content_form = "text"

    def render(
        self,
        messages: Sequence[Message],
        *,
        add_generation_prompt: bool = True,
        tools: Sequence[Mapping[str, Any]] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> str:
        """The prompt's text.

        ``extra`` are further variables; they replace nothing the server sets. Raises
        ``InvalidRequest`` for ``messages``, with the template's own words, for whatever the
        template refuses or stumbles over, and for what takes too long or gets too long.
        """
        convert = as_text if self.content_form == "text" else as_parts
        variables = {
            **(extra or {}),
            **self._variables,
            "messages": [convert(message) for message in messages],
            "add_generation_prompt": add_generation_prompt,
            "tools": tools,
        }
        pieces: list[str] = []
        length = 0
        try:
            with time_limit(self._clock):
                for piece in self._template.generate(variables):
                    pieces.append(piece)
                    length += len(piece)
                    if length > MAX_CHARACTERS:
                        raise TooMuch(f"the prompt is longer than {MAX_CHARACTERS} characters")
        except Exception as failure:  # a template can raise anything its data makes Python raise
            raise InvalidRequest(
                f"The model's chat template cannot write these messages: {failure}",
                code="invalid_value",
                param="messages",
            ) from failure
        return "".join(pieces)

    def _shows_probe(self) -> bool:
        try:
            return _PROBE in self.render([{"role": "user", "content": _PROBE}])
        except InvalidRequest as refusal:
            if isinstance(refusal.__cause__, TooMuch):
                raise _broken(f"for two words already: {refusal.__cause__}") from refusal
            return False


def _broken(reason: str) -> StartupError:
    words = shortened(" ".join(reason.split()), 300)
    return StartupError(f"The model's chat template is broken, {words}")


def load_template(
    files: ModelFiles, *, now: Callable[[], datetime] = datetime.now
) -> ChatTemplate | None:
    """The model's chat template, or None if it has none. Raises ``StartupError`` if it is broken.

    ``now`` is the clock for templates that write the date.
    """
    source, variables = read_source(files)
    return None if source is None else ChatTemplate(source, variables=variables, now=now)
