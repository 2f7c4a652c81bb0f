"""Parameters that other servers, other endpoints or other versions of the API know.

Each would change what the model sees or what the client gets, so a silent pass is no choice on an
endpoint that does not offer it: 400 ``unsupported_parameter``, naming what to use instead where
there is something. Two things pass all the same:

* ``null``, which means absent for every parameter;
* the values of ``NEUTRAL``, which say what the endpoint does anyway. Clients that were written
  for several endpoints or servers send them unasked. They are told as fields without effect.

A parameter that would change nothing here is not refused but told as ignored: the body class
lists it in ``without_effect``. Every parameter of one endpoint stands in one of the two for each
of the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from antiphon.errors import InvalidRequest

NEUTRAL: Mapping[str, Any] = {
    "n": 1,
    "best_of": 1,
    "echo": False,
    "logprobs": False,
    "background": False,
    "return_token_ids": False,
    "modalities": ["text"],
}
"""The value of a refused parameter that asks for nothing; its JSON type counts too."""

ANYWHERE: Mapping[str, str] = {
    **dict.fromkeys(
        ("guided_json", "guided_regex", "guided_choice", "guided_grammar"),
        "Use `structured_outputs`.",
    ),
    **dict.fromkeys(
        ("stop_regex", "prompt_logprobs", "bad_words", "truncate_prompt_tokens",
         "logits_processors", "repetition_detection", "use_beam_search", "length_penalty",
         "lora_path", "prompt_embeds", "chat_template", "mm_processor_kwargs", "media_io_kwargs",
         "vllm_xargs", "kv_transfer_params", "ec_transfer_params", "custom_logit_processor",
         "session_params", "audio", "web_search_options", "context_management",
         "access_programs", "image"), ""
    ),
    "return_token_strs": "Use /tokenize.",
    "tokens": "Use /detokenize.",
}  # fmt: skip
_OF_RESPONSES: Mapping[str, str] = {
    "text": "Use `response_format`.",
    "include": "Use `logprobs`.",
    "background": "",
    **dict.fromkeys(("truncation", "max_tool_calls"), "Use /v1/responses."),
}
_HISTORY = (
    "previous_input_messages", "previous_response_id", "conversation",
)  # fmt: skip
_OF_CHAT = (
    "tools", "documents", "chat_template_kwargs", "continue_final_message",
    "add_generation_prompt",
)  # fmt: skip
_FUNCTIONS: Mapping[str, str] = {
    "functions": "Use `tools` instead of `functions`.",
    "function_call": "Use `tool_choice` instead of `function_call`.",
}

COMPLETIONS: Mapping[str, str] = {
    **ANYWHERE,
    **_OF_RESPONSES,
    "suffix": "This model has no fill-in-the-middle form.",
    "max_completion_tokens": "Use `max_tokens`.",
    "max_output_tokens": "Use `max_tokens`.",
    "top_logprobs": "Use `logprobs`.",
    **dict.fromkeys(("input", "instructions", *_HISTORY), "Use `prompt`."),
    "modalities": "",
    **dict.fromkeys(
        ("messages", "tool_choice", "functions", "function_call", "reasoning_effort", "reasoning",
         "thinking", "verbosity", "parallel_tool_calls", *_OF_CHAT),
        "Use /v1/chat/completions.",
    ),
}  # fmt: skip
CHAT: Mapping[str, str] = {
    **ANYWHERE,
    **_OF_RESPONSES,
    **_FUNCTIONS,
    **dict.fromkeys(("input", "prompt", *_HISTORY), "Use `messages`."),
    "instructions": "Use a message of the role 'system'.",
    "thinking": "Use `reasoning_effort`.",
    "max_output_tokens": "Use `max_completion_tokens`.",
    "best_of": "Use `n`.",
    "suffix": "Use `continue_final_message`.",
}
RESPONSES: Mapping[str, str] = {
    **ANYWHERE,
    **_FUNCTIONS,
    "messages": "Use `input`.",
    "max_tokens": "Use `max_output_tokens`.",
    "max_completion_tokens": "Use `max_output_tokens`.",
    "response_format": "Use `text.format`.",
    "verbosity": "Use `text.verbosity`.",
    **dict.fromkeys(("reasoning_effort", "thinking"), "Use `reasoning.effort`."),
    "logprobs": "Use `top_logprobs` or `include`.",
    "n": "A response is one answer.",
    "previous_input_messages": "Use `input`.",
    **dict.fromkeys(
        ("return_token_ids", "conversation", "prompt", "moderation", "documents",
         "continue_final_message", "add_generation_prompt", "echo", "suffix", "best_of",
         "modalities"), ""
    ),
}  # fmt: skip
TOKENIZED_CHAT: Mapping[str, str] = {
    **dict.fromkeys(("input", "instructions", *_HISTORY), "Use `messages`."),
    **dict.fromkeys(
        ("thinking", "reasoning_effort", "reasoning", "verbosity", "text"),
        "Put what the chat template reads into `chat_template_kwargs`.",
    ),
    **dict.fromkeys(("tool_choice", *_FUNCTIONS), "Use `tools`."),
    **dict.fromkeys(
        ("truncate_prompt_tokens", "truncation", "context_management", "suffix", "image",
         "prompt_embeds", "lora_path", "media_io_kwargs", "session_params"), ""
    ),
    "tokens": "Use /detokenize.",
}  # fmt: skip
TOKENIZED_PROMPT: Mapping[str, str] = {
    **TOKENIZED_CHAT,
    **dict.fromkeys(("input", "instructions", *_HISTORY), "Use `prompt`."),
    **dict.fromkeys(
        ("thinking", "reasoning_effort", "reasoning", "verbosity", "text", "tool_choice",
         "chat_template", "mm_processor_kwargs", *_FUNCTIONS, *_OF_CHAT), "Use `messages`."
    ),
}  # fmt: skip
DETOKENIZED: Mapping[str, str] = {
    **dict.fromkeys(("prompt", "messages", "input"), "Use `tokens`."),
    **dict.fromkeys(("skip_special_tokens", "spaces_between_special_tokens"), ""),
    **dict.fromkeys(("add_special_tokens", "return_token_strs"), "Use /tokenize."),
}


def refuse_unsupported(body: Mapping[str, Any], table: Mapping[str, str]) -> None:
    """Raise ``InvalidRequest`` for the first parameter of ``body`` that stands in ``table``."""
    for name in sorted(body.keys() & table.keys()):
        value = body[name]
        if value is not None and not _neutral(name, value):
            hint = f" {table[name]}" if table[name] else ""
            raise InvalidRequest(
                f"Unsupported parameter: `{name}`.{hint}", code="unsupported_parameter", param=name
            )


def _neutral(name: str, value: Any) -> bool:
    """By its JSON type too, because ``1 == True`` in Python."""
    expected = NEUTRAL.get(name)
    return type(value) is type(expected) and bool(value == expected)
