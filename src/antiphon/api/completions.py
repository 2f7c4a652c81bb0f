"""``POST /v1/completions``."""

from __future__ import annotations

from array import array

from quart import Blueprint, Response

from antiphon.api.answering import answer
from antiphon.api.body import read_request
from antiphon.api.planning import id_tail, in_thread, sampling
from antiphon.api.service import Service
from antiphon.requests.completions import CompletionRequest, parse_completion
from antiphon.runs.answers import completions_answer
from antiphon.runs.asked import reading, shown_tokens, unused_budget
from antiphon.runs.catalogue import ServedModel
from antiphon.runs.plan import EchoedPrompt, RunPlan, TokenLimit
from antiphon.runs.prompts import completion_prompts, echoed_prompts


def blueprint(service: Service) -> Blueprint:
    """The route."""
    routes = Blueprint("completions", __name__)

    @routes.post("/v1/completions")
    async def create() -> Response:
        request, ignored = await read_request(service, parse_completion)
        model = service.catalogue.require(request.model)
        prompts, echoed = await in_thread(service, lambda: _prompts(model, request), "prompt")
        plan = RunPlan(
            tail=id_tail(service, request),
            model=model,
            prompts=prompts,
            prompt_param="prompt",
            n=request.n,
            limit=TokenLimit(tokens=request.max_tokens, param="max_tokens", cut_to_fit=False),
            sampling=sampling(service, request, model, request.logprobs, echo=request.echo),
            echoed=echoed,
            echo={"model": request.model},
            answer=completions_answer(
                stream=request.stream,
                choices=len(prompts) * request.n,
                per_prompt=request.n,
                **shown_tokens(
                    request, prompts, logprobs=request.logprobs is not None, pad=service.pad
                ),
            ),
            **reading(request, model),
        )
        return await answer(service, plan, [*ignored, *unused_budget(request, model)])

    return routes


def _prompts(
    model: ServedModel, request: CompletionRequest
) -> tuple[list[array[int]], list[EchoedPrompt]]:
    prompts = completion_prompts(model, request)
    return prompts, echoed_prompts(model, request, prompts) if request.echo else []
