"""``POST /v1/chat/completions``."""

from __future__ import annotations

from quart import Blueprint, Response

from antiphon.api.answering import answer
from antiphon.api.body import read_request
from antiphon.api.planning import id_tail, in_thread, sampling
from antiphon.api.service import Service
from antiphon.requests.chat import parse_chat
from antiphon.runs.answers import chat_answer
from antiphon.runs.asked import calling, reading, shown_tokens, unused_budget
from antiphon.runs.plan import RunPlan, TokenLimit
from antiphon.runs.prompts import chat_prompt, unused_settings
from antiphon.runs.tool_use import check_tools


def blueprint(service: Service) -> Blueprint:
    """The route."""
    routes = Blueprint("chat", __name__)

    @routes.post("/v1/chat/completions")
    async def create() -> Response:
        request, ignored = await read_request(service, parse_chat)
        model = service.catalogue.require(request.model)
        check_tools(model, request)
        ignored += [*unused_settings(model, request), *unused_budget(request, model)]
        prompt = await in_thread(service, lambda: chat_prompt(model, request), "messages")
        tokens, param = request.token_limit
        plan = RunPlan(
            tail=id_tail(service, request),
            model=model,
            prompts=[prompt],
            prompt_param="messages",
            n=request.n,
            limit=TokenLimit(tokens=tokens, param=param, cut_to_fit=False),
            sampling=sampling(
                service, request, model, (request.top_logprobs or 0) if request.logprobs else None
            ),
            echo={"model": request.model},
            answer=chat_answer(
                stream=request.stream,
                choices=request.n,
                reasoning_field=service.reasoning_field,
                **shown_tokens(request, [prompt], logprobs=request.logprobs, pad=service.pad),
            ),
            **reading(request, model),
            **calling(request),
        )
        return await answer(service, plan, ignored)

    return routes
