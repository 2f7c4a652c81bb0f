"""Parameters that other servers or other versions of the API know and this one does not offer.

Each would change what the model sees or what the client gets, so a silent pass is no choice:
400 ``unsupported_parameter``. ``null`` is fine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from antiphon.errors import InvalidRequest

_ANYWHERE: Mapping[str, str] = {
    **dict.fromkeys(
        ("guided_json", "guided_regex", "guided_choice", "guided_grammar"),
        "Use `structured_outputs`.",
    ),
    **dict.fromkeys(
        ("stop_regex", "prompt_logprobs", "bad_words", "truncate_prompt_tokens",
         "thinking_token_budget", "logits_processors", "repetition_detection", "use_beam_search",
         "length_penalty", "lora_path", "prompt_embeds", "chat_template", "mm_processor_kwargs",
         "media_io_kwargs", "vllm_xargs", "kv_transfer_params", "ec_transfer_params",
         "custom_logit_processor", "session_params"), ""
    ),
    "thinking": "Use `reasoning_effort` or `reasoning.effort` instead of `thinking`.",
}  # fmt: skip

COMPLETIONS: Mapping[str, str] = {
    **_ANYWHERE,
    "suffix": "This model has no fill-in-the-middle form.",
    "max_completion_tokens": "Use `max_tokens`.",
    "top_logprobs": "Use `logprobs`.",
    **dict.fromkeys(
        ("messages", "tools", "tool_choice", "functions", "function_call", "documents",
         "chat_template_kwargs", "continue_final_message", "add_generation_prompt",
         "reasoning_effort", "reasoning", "verbosity", "parallel_tool_calls"),
        "Use /v1/chat/completions.",
    ),
}  # fmt: skip
CHAT: Mapping[str, str] = {
    **_ANYWHERE,
    "functions": "Use `tools` instead of `functions`.",
    "function_call": "Use `tool_choice` instead of `function_call`.",
    "audio": "",
    "web_search_options": "",
}
RESPONSES: Mapping[str, str] = {
    **_ANYWHERE,
    "messages": "Use `input`.",
    "max_tokens": "Use `max_output_tokens`.",
    "max_completion_tokens": "Use `max_output_tokens`.",
    "response_format": "Use `text.format`.",
    "verbosity": "Use `text.verbosity`.",
    "reasoning_effort": "Use `reasoning.effort`.",
    "logprobs": "Use `top_logprobs` or `include`.",
    "n": "A response is one answer.",
    "functions": "Use `tools` instead of `functions`.",
    "function_call": "Use `tool_choice` instead of `function_call`.",
    **dict.fromkeys(
        ("return_token_ids", "conversation", "prompt", "context_management", "moderation",
         "access_programs", "image", "previous_input_messages", "documents",
         "continue_final_message", "add_generation_prompt", "echo", "suffix", "best_of"), ""
    ),
}  # fmt: skip


def refuse_unsupported(body: Mapping[str, Any], table: Mapping[str, str]) -> None:
    """Raise ``InvalidRequest`` for the first parameter of ``body`` that stands in ``table``."""
    for name in sorted(body.keys() & table.keys()):
        if body[name] is not None:
            hint = f" {table[name]}" if table[name] else ""
            raise InvalidRequest(
                f"Unsupported parameter: `{name}`.{hint}", code="unsupported_parameter", param=name
            )
