"""Calls of litellm, in a process of its own: it leaves event loops and sockets open.

``litellm_calls.py CALLS``: {address, http2, endpoint, model, options} by name, as JSON. Printed is
{text, reasoning, calls, ending, tokens, requests} or {error, kinds, requests} by the same names.
``requests`` counts what went out; on Responses litellm has a client of its own, uncounted.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import Any

import openai

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it asks the internet for prices
litellm: Any = importlib.import_module("litellm")

MESSAGES = [{"role": "user", "content": "Hi"}]
TOLD = sys.stdout
sys.stdout = sys.stderr  # it prints advice when a call fails


def chat(options: dict[str, Any]) -> dict[str, Any]:
    answer = litellm.completion(**{"messages": MESSAGES, **options})
    if options.get("stream"):
        answer = litellm.stream_chunk_builder(list(answer))
    message = answer.choices[0].message
    return {
        "text": message.content,
        "reasoning": getattr(message, "reasoning_content", None),
        "calls": [
            [call.function.name, call.function.arguments] for call in message.tool_calls or ()
        ],
        "ending": answer.choices[0].finish_reason,
        "tokens": answer.usage.total_tokens,
    }


def responses(options: dict[str, Any]) -> dict[str, Any]:
    options.pop("client")  # it has its own here
    answer = litellm.responses(**{"input": "Hi", **options})
    if options.get("stream"):
        answer = list(answer)[-1].response
    kinds = {item.type: item for item in answer.output}
    reasoning = kinds.get("reasoning")
    return {
        "text": answer.output_text,
        "reasoning": reasoning and reasoning.content[0].text,
        "calls": [
            [item.name, item.arguments] for item in answer.output if item.type == "function_call"
        ],
        "ending": answer.status,
        "tokens": answer.usage.total_tokens,
    }


def called(call: dict[str, Any]) -> dict[str, Any]:
    sent: list[Any] = []
    http = openai.DefaultHttpxClient(
        http1=not call["http2"], http2=call["http2"], event_hooks={"request": [sent.append]}
    )
    at = {"api_base": call["address"], "api_key": "none"}
    client = openai.OpenAI(base_url=call["address"], api_key="none", http_client=http)
    options = {**call["options"], **at, "model": f"openai/{call['model']}", "client": client}
    ask = {"chat": chat, "responses": responses}[call["endpoint"]]
    try:
        return {**ask(options), "requests": len(sent)}
    except openai.APIError as error:
        kinds = [kind.__name__ for kind in type(error).__mro__]
        return {"error": str(error), "kinds": kinds, "requests": len(sent)}


CALLS = json.loads(sys.argv[1])
json.dump({name: called(call) for name, call in CALLS.items()}, TOLD)
