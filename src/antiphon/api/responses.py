"""``/v1/responses``: create; and, without a store, the 404 of everything that needs one."""

from __future__ import annotations

from quart import Blueprint, Response
from quart import request as http_request

from antiphon.api.answering import answer
from antiphon.api.body import read_request
from antiphon.api.planning import id_tail, ignored_fields, in_thread, sampling
from antiphon.api.service import Service
from antiphon.errors import NotFound
from antiphon.requests.responses import parse_response, resource_tail
from antiphon.runs.answers import responses_answer
from antiphon.runs.plan import RunPlan, TokenLimit
from antiphon.runs.prompts import check_tools, response_prompt, unused_settings


def blueprint(service: Service) -> Blueprint:
    """The routes."""
    routes = Blueprint("responses", __name__)

    @routes.post("/v1/responses")
    async def create() -> Response:
        request, unknown = await read_request(service, parse_response)
        model = service.catalogue.require(request.model)
        check_tools(model, request.tools)
        ignored = ignored_fields(unknown, unused_settings(model, request))
        prompt = await in_thread(service, lambda: response_prompt(model, request), "input")
        plan = RunPlan(
            tail=id_tail(service, request),
            model=model,
            prompts=[prompt],
            prompt_param="input",
            limit=TokenLimit(
                tokens=request.max_output_tokens, param="max_output_tokens", cut_to_fit=True
            ),
            sampling=sampling(service, request, model, request.logprobs),
            stop=request.stop_strings,
            include_stop=request.include_stop_str_in_output,
            format=model.format,
            include_reasoning=request.include_reasoning,
            echo=resource_tail(request),
            answer=responses_answer(stream=request.stream),
        )
        return await answer(service, plan, ignored)

    @routes.post("/v1/responses/input_tokens")
    @routes.post("/v1/responses/compact")
    async def not_offered() -> Response:
        raise NotFound(f"Unknown URL: POST {http_request.path}.")

    @routes.get("/v1/responses/<response_id>")
    @routes.delete("/v1/responses/<response_id>")
    @routes.post("/v1/responses/<response_id>/cancel")
    @routes.get("/v1/responses/<response_id>/input_items")
    async def not_stored(response_id: str) -> Response:
        raise NotFound(
            f"Response '{response_id}' not found.", code="response_not_found", param="response_id"
        )

    return routes
