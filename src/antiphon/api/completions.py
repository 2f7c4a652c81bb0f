"""``POST /v1/completions``."""

from __future__ import annotations

from quart import Blueprint, Response

from antiphon.api.answering import answer
from antiphon.api.body import read_request
from antiphon.api.planning import id_tail, ignored_fields, in_thread, sampling
from antiphon.api.service import Service
from antiphon.requests.completions import parse_completion
from antiphon.runs.answers import completions_answer
from antiphon.runs.plan import RunPlan, TokenLimit
from antiphon.runs.prompts import completion_prompts


def blueprint(service: Service) -> Blueprint:
    """The route."""
    routes = Blueprint("completions", __name__)

    @routes.post("/v1/completions")
    async def create() -> Response:
        request, unknown = await read_request(service, parse_completion)
        model = service.catalogue.require(request.model)
        ignored = ignored_fields(unknown, ())
        prompts = await in_thread(service, lambda: completion_prompts(model, request), "prompt")
        plan = RunPlan(
            tail=id_tail(service, request),
            model=model,
            prompts=prompts,
            prompt_param="prompt",
            n=request.n,
            limit=TokenLimit(tokens=request.max_tokens, param="max_tokens", cut_to_fit=False),
            sampling=sampling(service, request, model, request.logprobs),
            stop=request.stop_strings,
            include_stop=request.include_stop_str_in_output,
            echo={"model": request.model},
            answer=completions_answer(
                stream=request.stream,
                choices=len(prompts) * request.n,
                per_prompt=request.n,
                include_usage=request.wants_usage,
                logprobs=request.logprobs is not None,
            ),
        )
        return await answer(service, plan, ignored)

    return routes
