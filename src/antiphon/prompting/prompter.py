"""What a served model does with prompts: to token ids and back.

``TextPrompter`` is for models with a vocabulary; recordings have their own (``replay_prompter``).
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from antiphon.errors import InvalidRequest
from antiphon.models.files import ModelFiles
from antiphon.models.token_table import TokenTable
from antiphon.prompting.continuing import before_end_mark, end_marked
from antiphon.prompting.control_text import ControlText
from antiphon.prompting.detokenizer import Detokenizer
from antiphon.prompting.template import ChatTemplate, Message, load_template
from antiphon.prompting.template_traits import TemplateTraits, traits_of
from antiphon.prompting.tokenizer import Tokenizer, load_tokenizer


class Prompter(Protocol):
    """Prompts of one model. Stateless between calls; may be called from worker threads."""

    @property
    def longest_token(self) -> int:
        """Bytes of the longest token: no prompt of k tokens is longer than k times that."""
        ...

    @property
    def takes_chats(self) -> bool:
        """Whether it can write a conversation as a prompt."""
        ...

    @property
    def writes_prompts(self) -> bool:
        """Whether what it writes is what was asked; a recording's prompt is always the same."""
        ...

    @property
    def takes_tools(self) -> bool:
        """Whether tools can be declared to the model."""
        ...

    @property
    def takes_system(self) -> bool:
        """Whether a conversation can begin with a message of the system's."""
        ...

    @property
    def shows_calls(self) -> bool:
        """Whether earlier calls of a conversation can be shown to it as such."""
        ...

    @property
    def takes_documents(self) -> bool:
        """Whether documents can be shown to the model."""
        ...

    @property
    def variables(self) -> frozenset[str]:
        """The variables that its chat template reads."""
        ...

    def chat(
        self,
        messages: Sequence[Message],
        *,
        add_generation_prompt: bool = True,
        continue_final: bool = False,
        add_special_tokens: bool = False,
        tools: Sequence[Mapping[str, Any]] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> array[int]:
        """A conversation through the model's chat template; ``extra`` are template variables.

        ``continue_final``: the prompt ends where the last message's text does, so that the model
        goes on with it; then no generation prompt is added. ``add_special_tokens`` adds what the
        model wants around a text to what the template wrote. Raises ``InvalidRequest``, with
        ``messages`` as the param.
        """
        ...

    def text(self, prompt: str, *, add_special_tokens: bool = True) -> array[int]:
        """A bare prompt; the spelling of a control token in it is that token.

        Raises ``InvalidRequest``, with ``prompt`` as the param.
        """
        ...

    def encode(self, text: str, *, add_special_tokens: bool = True) -> array[int]:
        """The ids of a text, be it a prompt or not. Raises like ``text``."""
        ...

    def ids(self, tokens: Sequence[int]) -> array[int]:
        """A prompt of ids. Raises ``InvalidRequest`` (``prompt[i]``) for an id that is none."""
        ...

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of a prompt of ids, control tokens spelt out: the reverse of ``text``.

        Raises ``InvalidRequest`` (``prompt[i]``) for an id that does not exist.
        """
        ...

    def spell(self, tokens: Sequence[int]) -> list[str]:
        """Each token's own text; part of a character shows as U+FFFD. Raises like ``decode``."""
        ...

    def detokenizer(self, *, skip_special: bool = True, markup: str = "") -> Detokenizer | None:
        """A new one for one output; None if the engine's frames bring their own text.

        ``skip_special``: control tokens of the output give no text, unless they are in ``markup``.
        """
        ...


class TextPrompter:
    """Prompts of a model with a vocabulary, and usually a chat template."""

    def __init__(self, tokenizer: Tokenizer, template: ChatTemplate | None) -> None:
        self._tokenizer = tokenizer
        self._template = template
        self._control_text = ControlText(tokenizer)
        self._longest_token = max(map(len, tokenizer.token_bytes), default=1)
        self._showing = Detokenizer(tokenizer.token_bytes)
        self._skipping = Detokenizer(tokenizer.token_bytes, hidden=tokenizer.special_ids)
        self._reading: dict[str, Detokenizer] = {}
        """By the markup that is to be read; there is one for each way to read the model."""
        self.traits = TemplateTraits()
        """The shape in which the template wants a history."""
        if template is not None:
            self.traits = traits_of(self)

    @classmethod
    def load(cls, files: ModelFiles) -> TextPrompter:
        """Vocabulary and template of a model. Raises ``StartupError``."""
        return cls(load_tokenizer(files), load_template(files))

    @property
    def vocab_size(self) -> int:
        """Every id of a prompt is below it."""
        return self._tokenizer.vocab_size

    @property
    def table(self) -> TokenTable:
        """The model's vocabulary."""
        return self._tokenizer.table()

    def has_token(self, text: str) -> bool:
        """Whether one token spells this text."""
        return text.encode() in self._tokenizer.token_bytes

    @property
    def longest_token(self) -> int:
        return self._longest_token

    @property
    def takes_chats(self) -> bool:
        return self._template is not None

    @property
    def writes_prompts(self) -> bool:
        return True

    @property
    def takes_tools(self) -> bool:
        return self.traits.shows_tools

    @property
    def takes_system(self) -> bool:
        return self.traits.takes_system

    @property
    def shows_calls(self) -> bool:
        return self.traits.shows_calls

    @property
    def template_source(self) -> str:
        """The chat template as it was written; empty if there is none."""
        return "" if self._template is None else self._template.source

    @property
    def takes_documents(self) -> bool:
        return "documents" in self.variables

    @property
    def variables(self) -> frozenset[str]:
        return frozenset() if self._template is None else self._template.names

    def chat(
        self,
        messages: Sequence[Message],
        *,
        add_generation_prompt: bool = True,
        continue_final: bool = False,
        add_special_tokens: bool = False,
        tools: Sequence[Mapping[str, Any]] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> array[int]:
        if self._template is None:
            raise InvalidRequest(
                "The model has no chat template; use /v1/completions.",
                code="unsupported_value",
                param="messages",
            )
        control_text = self._control_text
        try:
            masked = control_text.mask(self.traits.shaped(messages))
            rendered = self._template.render(
                end_marked(masked) if continue_final else masked,
                add_generation_prompt=add_generation_prompt and not continue_final,
                tools=control_text.mask(tools),
                extra=control_text.mask(extra),
            )
            if continue_final:
                rendered = before_end_mark(rendered)
            return control_text.encode(rendered, add_special_tokens=add_special_tokens)
        except InvalidRequest as refusal:
            # A template's own words may quote the conversation.
            message = control_text.restore(refusal.message)
            raise InvalidRequest(message, code=refusal.code, param="messages") from refusal

    def written(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        extra: Mapping[str, Any] | None = None,
    ) -> str:
        """The text of a prompt, as the template writes it of exactly these messages.

        It is no prompt to send: what users write may be control tokens in it. Raises like ``chat``.
        """
        if self._template is None:
            raise InvalidRequest("The model has no chat template.", param="messages")
        return self._template.render(
            messages, tools=tools, add_generation_prompt=add_generation_prompt, extra=extra
        )

    def text(self, prompt: str, *, add_special_tokens: bool = True) -> array[int]:
        try:
            return self._tokenizer.encode(
                prompt, add_special_tokens=add_special_tokens, allow_special=True
            )
        except InvalidRequest as refusal:
            raise InvalidRequest(refusal.message, param="prompt") from refusal

    encode = text

    def ids(self, tokens: Sequence[int]) -> array[int]:
        return checked_ids(tokens, self._tokenizer.vocab_size)

    def decode(self, tokens: Sequence[int]) -> str:
        return spelled(self.ids(tokens), self._tokenizer.token_bytes)

    def spell(self, tokens: Sequence[int]) -> list[str]:
        return spelled_apart(self.ids(tokens), self._tokenizer.token_bytes)

    def detokenizer(self, *, skip_special: bool = True, markup: str = "") -> Detokenizer:
        if not skip_special:
            return self._showing.fresh()
        if not markup:
            return self._skipping.fresh()
        known = self._reading.get(markup)
        if known is None:
            tokenizer = self._tokenizer
            hidden = frozenset(
                token
                for token in tokenizer.special_ids
                if tokenizer.token_bytes[token].decode("utf-8", "replace") not in markup
            )
            same = hidden == tokenizer.special_ids
            known = self._skipping if same else Detokenizer(tokenizer.token_bytes, hidden)
            self._reading[markup] = known
        return known.fresh()


def checked_ids(tokens: Sequence[int], vocab_size: int) -> array[int]:
    """The ids as a prompt. Raises ``InvalidRequest`` (``prompt[i]``) for an id that is none."""
    for index, token in enumerate(tokens):
        if not 0 <= token < vocab_size:
            raise InvalidRequest(
                f"There is no token {token}: ids run from 0 to {vocab_size - 1}.",
                param=f"prompt[{index}]",
            )
    return array("I", iter(tokens))  # array("I", bytes) would read them as raw memory


def spelled(tokens: Sequence[int], table: Sequence[bytes]) -> str:
    """The text of the ids together."""
    return b"".join(table[token] for token in tokens).decode("utf-8", "replace")


def spelled_apart(tokens: Sequence[int], table: Sequence[bytes]) -> list[str]:
    """The text of each id."""
    return [table[token].decode("utf-8", "replace") for token in tokens]
