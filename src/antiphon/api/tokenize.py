"""``POST /tokenize`` and ``POST /detokenize``: a model's vocabulary, as vLLM offers it."""

from __future__ import annotations

from typing import Any

from quart import Blueprint, Response

from antiphon.api.answering import ignored_header
from antiphon.api.body import read_request
from antiphon.api.json_response import json_response
from antiphon.api.planning import in_thread
from antiphon.api.service import Service
from antiphon.requests.tokenize import EncodeChat, parse_decode, parse_encode
from antiphon.runs.catalogue import ServedModel
from antiphon.runs.places import placed
from antiphon.runs.prompts import chat_tokens, text_tokens, unused_variables


def blueprint(service: Service) -> Blueprint:
    """The routes."""
    routes = Blueprint("tokenize", __name__)

    @routes.post("/tokenize")
    async def tokenize() -> Response:
        request, ignored = await read_request(service, parse_encode)
        model = _model(service, request.model)
        if isinstance(request, EncodeChat):
            ignored += unused_variables(model, request.chat_template_kwargs)
        of_chat = isinstance(request, EncodeChat)
        tokens = await in_thread(
            service,
            lambda: (
                chat_tokens(model, request)
                if isinstance(request, EncodeChat)
                else text_tokens(model, request)
            ),
            "messages" if of_chat else "prompt",
        )
        body: dict[str, Any] = {
            "count": len(tokens),
            "max_model_len": model.info.context_length,
            "tokens": tokens.tolist(),
            "token_strs": model.prompter.spell(tokens) if request.return_token_strs else None,
        }
        return json_response(body, headers=ignored_header(ignored))

    @routes.post("/detokenize")
    async def detokenize() -> Response:
        request, ignored = await read_request(service, parse_decode)
        model = _model(service, request.model)
        with placed("prompt", "tokens"):
            text = await in_thread(service, lambda: model.prompter.decode(request.tokens), "tokens")
        return json_response({"prompt": text}, headers=ignored_header(ignored))

    return routes


def _model(service: Service, name: str | None) -> ServedModel:
    """The named model, or the server's first. Raises ``InvalidRequest``."""
    return next(iter(service.catalogue)) if name is None else service.catalogue.require(name)
